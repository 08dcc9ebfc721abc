/** The published packages, each built and packed once for all tests of a run that use it. */
import { execFile, execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { buildPackages, packageNames } from "../../deploy/packages/build.ts";
import { onExit } from "./on-exit.ts";

type PackageJson = { readonly name: string; readonly version: string };

const DIST = join(import.meta.dirname, "../../dist");

export default function setup(): void {
  if (process.env.PACKAGES_DIR !== undefined) return;
  mkdirSync(DIST, { recursive: true });
  const directory = mkdtempSync(join(DIST, "tests-"));
  process.env.PACKAGES_DIR = directory;
  onExit(() => rmSync(directory, { recursive: true, force: true }));
}

const directory = () => process.env.PACKAGES_DIR ?? "";

/** Returns the directory that has each of these packages in a directory of its name, as it is published. */
export async function builtPackages(folders: readonly string[] = packageNames()): Promise<string> {
  // The tests are in several processes, of which one builds at a time.
  await promisify(execFile)("flock", [join(directory(), "lock"), process.execPath, import.meta.filename, ...folders]);
  return directory();
}

/** Returns the path of a packed package. */
export function packed(folder: string): string {
  const { name, version } = JSON.parse(readFileSync(join(directory(), folder, "package.json"), "utf8")) as PackageJson;
  return join(directory(), `${name.replace(/^@/, "").replace("/", "-")}-${version}.tgz`);
}

if (import.meta.main) {
  const isBuilt = (folder: string) => existsSync(join(directory(), folder, "package.json"));
  const folders = process.argv.slice(2).filter((folder) => !isBuilt(folder) || !existsSync(packed(folder)));
  if (folders.length > 0) {
    buildPackages(folders, directory(), isBuilt);
    const sources = folders.map((folder) => `./${folder}`);
    execFileSync("npm", ["pack", "--silent", "--pack-destination", directory(), ...sources], { cwd: directory() });
  }
}
