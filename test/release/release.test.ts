/** The changes that `npm run release` makes in the tree. release-whole.test.ts tests the whole command, with `npm run test:packages`. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { appendFileSync, cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { packageNames, readManifest, repositoryUrl } from "../../deploy/packages/build.ts";
import { cutRelease, sectionOf, versionsOf } from "../../deploy/release/changelog.ts";
import { publishFiles } from "../../deploy/release/publish.ts";
import { addSchemaRow, currentVersion, OTHER_FILES, setVersion } from "../../deploy/release/versions.ts";
import { scratch } from "../support/service.ts";

const ROOT = join(import.meta.dirname, "../..");
const CHANGELOG = `# Changelog

## [Unreleased]

### Added

- A thing.

## [0.1.0]

- The first.
`;

const REPOSITORY = "https://git.example/team/service";
const RELEASE = { version: "0.2.0", date: "2026-12-01", repository: REPOSITORY };

describe("the changelog of a release", () => {
  const first = cutRelease(CHANGELOG, RELEASE);

  test("dates what is unreleased, and begins anew above it", () => {
    const [text] = first.split("\n[Unreleased]: ");
    expect(text).toBe(CHANGELOG.replace("## [Unreleased]\n", "## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n"));
  });

  test("has links that compare each version with the one before, also after a second release", () => {
    const more = first.replace("## [Unreleased]\n", "## [Unreleased]\n\n- More.\n");
    const second = cutRelease(more, { ...RELEASE, version: "0.3.0" });
    expect(versionsOf(second)).toEqual(["0.3.0", "0.2.0", "0.1.0"]);
    expect(second.slice(second.indexOf("[Unreleased]: "))).toBe(`[Unreleased]: ${REPOSITORY}/compare/v0.3.0...HEAD
[0.3.0]: ${REPOSITORY}/compare/v0.2.0...v0.3.0
[0.2.0]: ${REPOSITORY}/compare/v0.1.0...v0.2.0
[0.1.0]: ${REPOSITORY}/releases/tag/v0.1.0
`);
  });

  test("gives the release's page its section, without the links", () => {
    expect(sectionOf(first, "0.2.0")).toBe("### Added\n\n- A thing.\n");
    expect(sectionOf(first, "0.1.0")).toBe("- The first.\n");
  });

  test("is refused where there is nothing to release, or twice", () => {
    expect(() => cutRelease("# Changelog\n", RELEASE)).toThrow("no section");
    expect(() => cutRelease(first, RELEASE)).toThrow("0.2.0 already");
    expect(() => cutRelease(first, { ...RELEASE, version: "0.3.0" })).toThrow("nothing unreleased");
  });
});

test("the table of schemas gets a row for the release, with the schema of this version", () => {
  const page = "| 0.2.0 | 8 |\n| this version | 9 |\n";
  expect(addSchemaRow(page, "0.3.0")).toBe("| 0.2.0 | 8 |\n| 0.3.0 | 9 |\n| this version | 9 |\n");
  expect(() => addSchemaRow("", "0.3.0")).toThrow("no row");
});

describe("the publication", () => {
  /** Makes a directory with a packed file and its sum, and an `npm` that notes how it is called. */
  function packedRelease(published: string) {
    const directory = scratch();
    const write = (file: string, text: string, mode = 0o644) => {
      mkdirSync(dirname(join(directory, file)), { recursive: true });
      writeFileSync(join(directory, file), text, { mode });
    };
    write("package/package.json", '{"name":"@team/thing","version":"1.2.3"}');
    execFileSync("tar", ["czf", "team-thing-1.2.3.tgz", "package"], { cwd: directory });
    const sum = createHash("sha256")
      .update(readFileSync(join(directory, "team-thing-1.2.3.tgz")))
      .digest("hex");
    write("SHA256SUMS", `${sum}  team-thing-1.2.3.tgz\n`);
    write("bin/npm", `#!/bin/sh\necho "$@" >>${directory}/calls\n[ "$1" = publish ] || echo "${published}"\n`, 0o755);
    vi.stubEnv("PATH", `${join(directory, "bin")}:${process.env.PATH}`);
    vi.spyOn(console, "log").mockImplementation(() => {});
    onTestFinished(() => void vi.unstubAllEnvs());
    return { directory, calls: () => readFileSync(join(directory, "calls"), "utf8").trim().split("\n") };
  }

  test("leaves out what the registry has", () => {
    const { directory, calls } = packedRelease("1.2.3");
    publishFiles(directory, ["--provenance"]);
    expect(calls()).toEqual(["view @team/thing@1.2.3 version"]);
  });

  test("passes its options on", () => {
    const { directory, calls } = packedRelease("");
    publishFiles(directory, ["--provenance"]);
    expect(calls()[1]).toBe("publish ./team-thing-1.2.3.tgz --access public --provenance");
  });

  test("refuses a file whose bytes are not those of SHA256SUMS", () => {
    const { directory } = packedRelease("");
    appendFileSync(join(directory, "team-thing-1.2.3.tgz"), "more");
    expect(() => publishFiles(directory, [])).toThrow("not the file of SHA256SUMS");
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

test("what npm does not build names the same repository", () => {
  const named = ["verifiers/python/pyproject.toml", "deploy/helm/session-service/Chart.yaml"].map((file) =>
    readFileSync(join(ROOT, file), "utf8").match(/https:\/\/[^\s"]+/g),
  );
  expect(named).toEqual([[repositoryUrl()], [repositoryUrl()]]);
});

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
        ...found("docs/tasks/deployment.md", /session-service-([\d.]+)\.tgz/g),
        ...found("docs/start/getting-started.md", /session-service-([\d.]+)\.tgz/g),
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
