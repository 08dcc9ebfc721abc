/** The releases from which an upgrade is supported, and where they are in this repository's history. */
import { execFileSync } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
/** The commits of the releases that were made before `npm run release`. */
const EARLIER: Readonly<Record<string, string>> = { "0.1.0": "558fe80" };

/** Returns the versions of all releases, from the first one on. Each has left its contracts in test/released. */
export const releases = (): readonly string[] =>
  readdirSync(join(ROOT, "test/released"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .sort(new Intl.Collator("en", { numeric: true }).compare);

/** Returns the commit of a release, which has the subject that RELEASING.md names. @throws Error if this clone does not have it */
export function commitOf(version: string): string {
  const grep = `--grep=^release: ${version.replaceAll(".", "\\.")}$`;
  const found =
    EARLIER[version] ?? execFileSync("git", ["log", "-1", "--format=%H", grep], { cwd: ROOT, encoding: "utf8" });
  if (found === "") throw new Error(`this clone has no commit "release: ${version}"`);
  return found.trim();
}
