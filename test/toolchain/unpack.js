/**
 * Unpacks the Node that a lock file has for this platform: `node unpack.js <package-lock.json> <directory>`. It does nothing if there is
 * none. `npm ci` could do the same, but would also write the headers for compiling native modules, a fifth of all installed files.
 */
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";

const [lock, directory] = process.argv.slice(2);
const found = Object.entries(JSON.parse(readFileSync(lock, "utf8")).packages).find(
  ([, { os, cpu }]) => os === process.platform && cpu === process.arch,
);
if (found !== undefined) {
  const [path, { version, integrity }] = found;
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const name = path.replace("node_modules/", "");
  const pack = ["pack", "--loglevel", "error", "--pack-destination", directory, `${name}@${version}`];
  execFileSync("npm", pack, { stdio: ["ignore", "ignore", "inherit"] });
  const file = join(directory, readdirSync(directory)[0]);
  const hash = createHash("sha512").update(readFileSync(file)).digest("base64");
  if (`sha512-${hash}` !== integrity) throw new Error(`${name}@${version} is not the package that ${lock} names`);
  execFileSync("tar", ["-xzf", file, "-C", directory, "--strip-components=1", "package/bin/node", "package/LICENSE"]);
  rmSync(file);
}
