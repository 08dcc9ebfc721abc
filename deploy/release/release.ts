/**
 * Prepares a release: `npm run release -- <version>`. Sets the version, dates the changelogs, records what later versions are compared with, builds
 * and packs every package into `dist/release` with checksums, an SBOM and the text of the release's page, and tries to publish each
 * (`npm publish --dry-run`). Nothing leaves the machine and nothing is committed. RELEASING.md has the steps that follow.
 *
 * `npm run release -- --pack <version>` does not change the tree, which must have that version: it only fills `dist/release`.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { namesInOrder, repositoryUrl } from "../packages/build.ts";
import { cutRelease, sectionOf } from "./changelog.ts";
import { publishFiles } from "./publish.ts";
import { productionSbom, type Sbom } from "./sbom.ts";
import { addSchemaRow, currentVersion, setVersion } from "./versions.ts";

const ROOT = join(import.meta.dirname, "../..");
const PACKAGES = join(ROOT, "dist/packages");
const OUT = join(ROOT, "dist/release");

/** The changelog of the service and its libraries, and the one of the HTTP layer. */
const CHANGELOGS = ["CHANGELOG.md", "src/connect-http-routes/CHANGELOG.md"];

const run = (cwd: string, command: string, ...args: string[]) =>
  execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** @throws Error if the packages would name another repository than the one that publishes them, which npm refuses with a provenance */
function checkRemote(): void {
  const remotes = run(ROOT, "git", "remote").split("\n");
  if (!remotes.includes("origin")) return;
  const remote = run(ROOT, "git", "remote", "get-url", "origin").trim();
  const [, host, path] = /^(?:https:\/\/|git@)([^/:]+)[/:](.+?)(?:\.git)?$/.exec(remote) ?? [];
  if (host === undefined || `https://${host}/${path}` === repositoryUrl()) return;
  throw new Error(
    `package.json names the repository ${repositoryUrl()}, but origin is ${remote}: correct "repository" in package.json`,
  );
}

function edit(file: string, change: (text: string) => string): void {
  writeFileSync(join(ROOT, file), change(readFileSync(join(ROOT, file), "utf8")));
}

/** Changes the tree: versions, lock file, generated files, changelog, the copy of the contracts. */
function prepareTree(version: string): void {
  setVersion(ROOT, version);
  run(ROOT, "npm", "install", "--package-lock-only", "--ignore-scripts");
  run(ROOT, "npm", "run", "generate");
  const date = new Date().toISOString().slice(0, 10);
  const repository = repositoryUrl();
  for (const file of CHANGELOGS) edit(file, (text) => cutRelease(text, { version, date, repository }));
  cpSync(join(ROOT, "proto"), join(ROOT, "test/released", version), { recursive: true });
  edit("docs/tasks/upgrade.md", (page) => addSchemaRow(page, version));
  run(ROOT, process.execPath, "test/vectors/freeze.ts");
}

/** Builds the files that are published. @returns their names */
function makeArtifacts(version: string): string[] {
  // The packages are built in a separate process, because this one has read the old versions.
  run(ROOT, "npm", "run", "build");
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  // Each file follows those on which it depends, which is the order of SHA256SUMS and of the publication.
  const files = namesInOrder().map((folder) =>
    run(join(PACKAGES, folder), "npm", "pack", "--silent", "--pack-destination", OUT).trim(),
  );
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const sbom = JSON.parse(run(ROOT, "npm", "sbom", "--sbom-format", "cyclonedx", "--package-lock-only")) as Sbom;
  const ofService = productionSbom(sbom, Object.keys({ ...dependencies, ...optionalDependencies }));
  writeFileSync(join(OUT, "sbom.cdx.json"), JSON.stringify(ofService, null, 2));
  const sums = [...files, "sbom.cdx.json"].map(
    (file) =>
      `${createHash("sha256")
        .update(readFileSync(join(OUT, file)))
        .digest("hex")}  ${file}\n`,
  );
  writeFileSync(join(OUT, "SHA256SUMS"), sums.join(""));
  const sections = CHANGELOGS.map((file) => sectionOf(readFileSync(join(ROOT, file), "utf8"), version));
  writeFileSync(join(OUT, "NOTES.md"), sections.join("\n## HTTP layer\n\n"));
  publishFiles(OUT, ["--dry-run"]);
  return readdirSync(OUT);
}

function release(version: string, isPrepared: boolean): void {
  if (run(ROOT, "git", "status", "--porcelain") !== "") throw new Error("commit first: the tree has changes");
  checkRemote();
  if (!isPrepared) prepareTree(version);
  else if (currentVersion(ROOT) !== version) throw new Error(`this tree has the version ${currentVersion(ROOT)}`);
  for (const file of makeArtifacts(version)) console.log(`dist/release/${file}`);
  if (!isPrepared) console.log(`\nVersion ${version} is prepared. What comes next: RELEASING.md, step 3.`);
}

const { values, positionals } = parseArgs({ options: { pack: { type: "boolean" } }, allowPositionals: true });
const [version] = positionals;
if (version === undefined) {
  console.error("usage: npm run release -- [--pack] <version>");
  process.exitCode = 1;
} else {
  try {
    release(version, values.pack === true);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
