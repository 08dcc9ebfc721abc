/** Root directories with a small Debian, for tests on a machine where little is installed. */
import { execFile } from "node:child_process";
import { existsSync, realpathSync } from "node:fs";
import { cp, mkdir, symlink } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const OUTPUT = { maxBuffer: 256 * 1024 * 1024 };

/** Installs Debian's smallest variant from its archive, which takes a minute. */
export async function debootstrap(root: string, include: readonly string[] = []): Promise<void> {
  const more = include.length === 0 ? [] : [`--include=${include.join(",")}`];
  await run("debootstrap", ["--variant=minbase", ...more, "bookworm", root], OUTPUT);
}

/** Installs Debian's smallest variant by copying the packages of this machine, which must run Debian. It takes seconds. */
export async function copyDebian(root: string, include: readonly string[] = []): Promise<void> {
  await run("sh", [join(import.meta.dirname, "copy-debian.sh"), root, ...include], OUTPUT);
}

/** Returns the path of a program that is installed on this machine. Directories inside `node_modules` are ignored. */
export function ownProgram(name: string): string {
  const directories = (process.env.PATH ?? "").split(":").filter((directory) => !directory.includes("node_modules"));
  const path = directories.map((directory) => join(directory, name)).find((file) => existsSync(file));
  if (path === undefined) throw new Error(`this machine has no ${name}`);
  return realpathSync(path);
}

/** Copies a Node program and this machine's npm into a root directory, at the paths that the official Node images use. */
export async function addNode(root: string, node: string): Promise<void> {
  const [bin, npm] = [join(root, "usr/local/bin"), join(root, "usr/local/lib/node_modules/npm")];
  for (const directory of [bin, dirname(npm)]) await mkdir(directory, { recursive: true });
  await cp(dirname(dirname(ownProgram("npm"))), npm, { recursive: true });
  await cp(node, join(bin, "node"));
  for (const name of ["npm", "npx"]) await symlink(`../lib/node_modules/npm/bin/${name}-cli.js`, join(bin, name));
}
