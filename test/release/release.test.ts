/** The changes that `npm run release` makes in the tree. release-whole.test.ts tests the whole command, with `npm run test:packages`. */
import { cpSync, mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { packageNames, readManifest } from "../../deploy/packages/build.ts";
import { cutRelease, versionsOf } from "../../deploy/release/changelog.ts";
import { currentVersion, OTHER_FILES, setVersion } from "../../deploy/release/versions.ts";
import { scratch } from "../support/service.ts";

const ROOT = join(import.meta.dirname, "../..");
const CHANGELOG = `# Changelog

## [Unreleased]

### Added

- A thing.

## [0.1.0]

- The first.
`;

describe("the changelog of a release", () => {
  test("dates what is unreleased, and begins anew above it", () => {
    expect(cutRelease(CHANGELOG, { version: "0.2.0", date: "2026-12-01" })).toBe(
      CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n"),
    );
  });

  test("has links that compare each version with the one before, also after a second release", () => {
    const repository = "https://git.example/team/service";
    const first = cutRelease(CHANGELOG, { version: "0.2.0", date: "2026-12-01", repository });
    const more = first.replace("## [Unreleased]\n", "## [Unreleased]\n\n- More.\n");
    const second = cutRelease(more, { version: "0.3.0", date: "2026-12-02", repository });
    expect(versionsOf(second)).toEqual(["0.3.0", "0.2.0", "0.1.0"]);
    expect(second.slice(second.indexOf("[Unreleased]: "))).toBe(`[Unreleased]: ${repository}/compare/v0.3.0...HEAD
[0.3.0]: ${repository}/compare/v0.2.0...v0.3.0
[0.2.0]: ${repository}/compare/v0.1.0...v0.2.0
[0.1.0]: ${repository}/releases/tag/v0.1.0
`);
  });

  test("is refused where there is nothing to release, or twice", () => {
    expect(() => cutRelease("# Changelog\n", { version: "0.2.0", date: "" })).toThrow("no section");
    const cut = cutRelease(CHANGELOG, { version: "0.2.0", date: "2026-12-01" });
    expect(() => cutRelease(cut, { version: "0.2.0", date: "2026-12-01" })).toThrow("0.2.0 already");
    expect(() => cutRelease(cut, { version: "0.3.0", date: "2026-12-01" })).toThrow("nothing unreleased");
  });
});

/** Copies the files that contain the version into a new directory. Returns the directory. */
function copyOfVersions(): string {
  const copy = scratch();
  const { workspaces } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as { workspaces: string[] };
  for (const file of [
    "package.json",
    ...OTHER_FILES,
    ...workspaces.map((workspace) => join(workspace, "package.json")),
  ]) {
    mkdirSync(dirname(join(copy, file)), { recursive: true });
    cpSync(join(ROOT, file), join(copy, file));
  }
  return copy;
}

describe("the version", () => {
  test("is the same everywhere, before and after", () => {
    const before = currentVersion(ROOT);
    const copy = copyOfVersions();
    setVersion(copy, "99.0.1");
    const texts = (root: string, version: string) => {
      const read = (file: string) => readFileSync(join(root, file), "utf8");
      const found = (file: string, pattern: RegExp) => [...read(file).matchAll(pattern)].map(([, place]) => place);
      const { workspaces, dependencies } = JSON.parse(read("package.json"));
      return [
        JSON.parse(read("package.json")).version,
        dependencies["connect-http-routes"],
        ...workspaces.map((workspace: string) => JSON.parse(read(join(workspace, "package.json"))).version),
        ...found("deploy/helm/session-service/Chart.yaml", /^(?:appVersion|version): (.*)$/gm),
        ...found("docs/deployment.md", /session-service-([\d.]+)\.tgz/g),
        ...found("docs/getting-started.md", /session-service-([\d.]+)\.tgz/g),
        ...found("verifiers/python/pyproject.toml", /^version = "(.*)"$/gm),
      ].map((place) => (place === version ? "" : place));
    };
    const places = texts(ROOT, before);
    expect(places.length).toBeGreaterThan(packageNames().length + 4);
    expect(places.join("")).toBe("");
    expect(texts(copy, "99.0.1")).toEqual(places);
    expect(readFileSync(join(copy, "package.json"), "utf8").replaceAll("99.0.1", before)).toBe(
      readFileSync(join(ROOT, "package.json"), "utf8"),
    );
  });

  test.each(["0.0.9", "next", "1.0", "1.0.0-rc.1"])("may not be %s", (version) => {
    expect(() => setVersion(copyOfVersions(), version)).toThrow();
  });

  test("of a workspace is not published by accident", () => {
    const publishable = packageNames().filter((folder) => folder !== "service" && !("private" in readManifest(folder)));
    expect(publishable).toEqual([]);
  });
});
