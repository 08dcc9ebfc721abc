/** Runs the whole of `npm run release` on a copy of the tree. It uses the registry, so only `npm run test:packages` runs it. */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, readdirSync, readFileSync, symlinkSync } from "node:fs";
import { basename, join } from "node:path";
import { expect, test } from "vitest";
import { packageNames, readManifest, repositoryUrl } from "../../deploy/packages/build.ts";
import { scratch } from "../support/service.ts";

const ROOT = join(import.meta.dirname, "../..");
const TIMEOUT_MS = 1_800_000;
/** The directories that a clone does not have, or that this test creates. */
const LEFT_OUT = new Set(["node_modules", "dist", ".git", "data"]);

test("a release is prepared by one command, and leaves everything for its publication", { timeout: TIMEOUT_MS }, () => {
  const copy = join(scratch(), "tree");
  cpSync(ROOT, copy, { recursive: true, verbatimSymlinks: true, filter: (path) => !LEFT_OUT.has(basename(path)) });
  symlinkSync(join(ROOT, "node_modules"), join(copy, "node_modules"));
  const run = (command: string, ...args: string[]) =>
    execFileSync(command, args, { cwd: copy, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const git = (...args: string[]) => run("git", "-c", "user.name=test", "-c", "user.email=test@example.com", ...args);
  git("init", "--quiet");
  git("add", "--all");
  git("commit", "--quiet", "--message=tree");
  git("remote", "add", "origin", `${repositoryUrl()}.git`);

  run(process.execPath, "deploy/release/release.ts", "99.0.0");

  const files = readdirSync(join(copy, "dist/release"));
  const names = packageNames().map((folder) => readManifest(folder).name.replace(/^@/, "").replace("/", "-"));
  expect(files.toSorted()).toEqual(
    ["NOTES.md", "SHA256SUMS", "sbom.cdx.json", ...names.map((name) => `${name}-99.0.0.tgz`)].sort(),
  );
  const sums = readFileSync(join(copy, "dist/release/SHA256SUMS"), "utf8").trim().split("\n");
  expect(sums).toHaveLength(files.length - 2);
  for (const line of sums) {
    const [sum, file = ""] = line.split("  ");
    expect(
      createHash("sha256")
        .update(readFileSync(join(copy, "dist/release", file)))
        .digest("hex"),
    ).toBe(sum);
  }
  const { components } = JSON.parse(readFileSync(join(copy, "dist/release/sbom.cdx.json"), "utf8"));
  const urls = components.map(({ purl = "" }: { purl?: string }) => purl.replace(/@[^@]*$/, ""));
  expect(urls).toEqual(
    expect.arrayContaining(
      ["ioredis", "pino", "connect-http-routes", "standard-as-callback"].map((n) => `pkg:npm/${n}`),
    ),
  );
  expect(urls).not.toContain("pkg:npm/vitest");
  const changelog = readFileSync(join(copy, "CHANGELOG.md"), "utf8");
  expect(changelog).toMatch(/## \[Unreleased\]\n\n## \[99\.0\.0\] - \d{4}-\d\d-\d\d\n/);
  expect(changelog).toContain(`\n[99.0.0]: ${repositoryUrl()}/compare/v`);
  expect(readdirSync(join(copy, "test/released"))).toContain("99.0.0");
  expect(git("status", "--porcelain")).not.toContain("dist/");

  // The commit of the release passes the tests that know releases, and is what the hosted CI packs again.
  expect(() => run(process.execPath, "deploy/release/release.ts", "--pack", "99.0.0")).toThrow("commit first");
  git("add", "--all");
  git("commit", "--quiet", "--message=release: 99.0.0");
  run("npm", "run", "test:run", "--", "test/upgrade", "test/release/release.test.ts", "test/verifiers/frozen.test.ts");
  expect(() => run(process.execPath, "deploy/release/release.ts", "--pack", "98.0.0")).toThrow(
    "has the version 99.0.0",
  );
  run(process.execPath, "deploy/release/release.ts", "--pack", "99.0.0");
  expect(readFileSync(join(copy, "dist/release/NOTES.md"), "utf8")).toContain("### ");
  git("remote", "set-url", "origin", "https://git.example/somebody/else.git");
  expect(() => run(process.execPath, "deploy/release/release.ts", "--pack", "99.0.0")).toThrow('correct "repository"');
});
