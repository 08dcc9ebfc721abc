/**
 * Prepares a release: `npm run release -- <version>`. Sets the version, dates the changelog, copies the contracts, builds and packs every
 * package into `dist/release` with checksums and an SBOM, and tries to publish each (`npm publish --dry-run`). Nothing leaves the machine
 * and nothing is committed. RELEASING.md has the steps that follow.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { packageNames } from "../packages/build.ts";
import { cutRelease } from "./changelog.ts";
import { productionSbom, type Sbom } from "./sbom.ts";
import { setVersion } from "./versions.ts";

const ROOT = join(import.meta.dirname, "../..");
const PACKAGES = join(ROOT, "dist/packages");
const OUT = join(ROOT, "dist/release");

/** The changelog of the service and its libraries, and the one of the HTTP layer. */
const CHANGELOGS = ["CHANGELOG.md", "src/http/CHANGELOG.md"];

const run = (cwd: string, command: string, ...args: string[]) =>
  execFileSync(command, args, { cwd, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

/** Returns the URL of the repository's web page, derived from its remote; undefined if it has none. */
function repositoryUrl(): string | undefined {
  try {
    const remote = run(ROOT, "git", "remote", "get-url", "origin").trim();
    const [, host, path] = /^(?:https:\/\/|git@)([^/:]+)[/:](.+?)(?:\.git)?$/.exec(remote) ?? [];
    return host === undefined ? undefined : `https://${host}/${path}`;
  } catch {
    return undefined;
  }
}

/** Changes the tree: versions, lock file, generated files, changelog, the copy of the contracts. */
function prepareTree(version: string): void {
  setVersion(ROOT, version);
  run(ROOT, "npm", "install", "--package-lock-only", "--ignore-scripts");
  run(ROOT, "npm", "run", "generate");
  const repository = repositoryUrl();
  const date = new Date().toISOString().slice(0, 10);
  for (const file of CHANGELOGS) {
    const text = readFileSync(join(ROOT, file), "utf8");
    const cut = cutRelease(text, { version, date, ...(repository !== undefined && { repository }) });
    writeFileSync(join(ROOT, file), cut);
  }
  cpSync(join(ROOT, "proto"), join(ROOT, "test/released", version), { recursive: true });
}

/** Builds the files that are published. @returns their names */
function makeArtifacts(): string[] {
  // The packages are built in a separate process, because this one has read the old versions.
  run(ROOT, "npm", "run", "build");
  rmSync(OUT, { recursive: true, force: true });
  mkdirSync(OUT, { recursive: true });
  for (const folder of packageNames()) {
    const directory = join(PACKAGES, folder);
    run(directory, "npm", "pack", "--silent", "--pack-destination", OUT);
    run(directory, "npm", "publish", "--dry-run", "--access", "public");
  }
  const { dependencies, optionalDependencies } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const sbom = JSON.parse(run(ROOT, "npm", "sbom", "--sbom-format", "cyclonedx", "--package-lock-only")) as Sbom;
  const ofService = productionSbom(sbom, Object.keys({ ...dependencies, ...optionalDependencies }));
  writeFileSync(join(OUT, "sbom.cdx.json"), JSON.stringify(ofService, null, 2));
  const files = readdirSync(OUT).toSorted();
  const sums = files.map(
    (file) =>
      `${createHash("sha256")
        .update(readFileSync(join(OUT, file)))
        .digest("hex")}  ${file}\n`,
  );
  writeFileSync(join(OUT, "SHA256SUMS"), sums.join(""));
  return files;
}

function release(version: string): void {
  if (run(ROOT, "git", "status", "--porcelain") !== "") throw new Error("commit first: the tree has changes");
  prepareTree(version);
  for (const file of makeArtifacts()) console.log(`dist/release/${file}`);
  console.log(`\nVersion ${version} is prepared. What comes next: RELEASING.md, step 3.`);
}

const [version] = process.argv.slice(2);
if (version === undefined) {
  console.error("usage: npm run release -- <version>");
  process.exitCode = 1;
} else {
  try {
    release(version);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}
