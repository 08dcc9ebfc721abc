/**
 * Builds a package and puts it and its production dependencies into one directory: `node assemble.ts <directory> [<package>]`. The default
 * is the service.
 *
 * The dependencies are copied from `node_modules`, so they are those of the lock file, byte for byte. Files that a running
 * service never reads are left out: declarations, source maps, tests, and texts other than licenses.
 */
import { cpSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { basename, dirname, join, relative, resolve } from "node:path";
import { buildPackages } from "../packages/build.ts";

const ROOT = resolve(import.meta.dirname, "../..");
/** The build for the container has a directory of its own, because it may run at the same time as `npm run build`. */
const BUILT = join(ROOT, "dist/container");
const NOT_READ = /(\.d\.[cm]?ts|\.d\.[cm]?ts\.map|\.[cm]?js\.map|\.css\.map|\.flow|\.tsbuildinfo)$|\.(md|markdown)$/i;
const NOT_RUN = /^(tests?|__tests__|bench(marks?)?|examples?|docs?|\.github)$|\.(test|spec)\.[cm]?js$/;
const LICENSE = /^(licen[cs]e|notice|copying)/i;
/** Parts of packages that the service never loads, such as copies of the same modules in another module format. */
const UNUSED: readonly (readonly [name: RegExp, path: RegExp])[] = [[/^@opentelemetry\//, /^build\/(esm|esnext)$/]];

export type Manifest = {
  readonly name: string;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
};

export const readManifest = (directory: string) =>
  JSON.parse(readFileSync(join(directory, "package.json"), "utf8")) as Manifest;

/** Returns the directory of a package as Node finds it from another package. */
function find(name: string, from: string): string | undefined {
  const candidate = join(from, "node_modules", name);
  if (existsSync(join(candidate, "package.json"))) return candidate;
  return from === ROOT ? undefined : find(name, dirname(from));
}

/** Returns the directories of all packages that a package needs at run time. @throws if one is not installed */
export function closure(manifest: Manifest, from: string, found = new Set<string>()): Set<string> {
  const peers = Object.entries(manifest.peerDependencies ?? {}).filter(
    ([name]) => manifest.peerDependenciesMeta?.[name]?.optional !== true,
  );
  const optional = { ...manifest.optionalDependencies, ...Object.fromEntries(peers) };
  for (const name of Object.keys({ ...manifest.dependencies, ...optional })) {
    const directory = find(name, from);
    if (directory === undefined && !(name in optional)) throw new Error(`${manifest.name} needs ${name}: run npm ci`);
    if (directory === undefined || found.has(directory)) continue;
    found.add(directory);
    closure(readManifest(directory), directory, found);
  }
  return found;
}

/** Copies a package without the packages inside it, since those that are needed are copied separately. */
function copyPackage(name: string, from: string, to: string): void {
  const unused = UNUSED.filter(([names]) => names.test(name)).map(([, paths]) => paths);
  cpSync(from, to, {
    recursive: true,
    filter(path) {
      const inside = relative(from, path);
      if (inside.startsWith("node_modules") || NOT_RUN.test(inside)) return false;
      if (unused.some((paths) => paths.test(inside))) return false;
      return !NOT_READ.test(path) || LICENSE.test(basename(path));
    },
  });
}

export function assemble(out: string, folder = "service"): void {
  buildPackages([folder], BUILT);
  const built = join(BUILT, folder);
  const manifest = readManifest(built);
  mkdirSync(out, { recursive: true });
  copyPackage(manifest.name, built, out);
  for (const directory of closure(manifest, built)) {
    const { name } = readManifest(directory);
    const base = directory.startsWith(built) ? built : ROOT;
    // The root's node_modules have links to the sources of our own packages.
    const source = existsSync(join(BUILT, name)) ? join(BUILT, name) : directory;
    copyPackage(name, source, join(out, relative(base, directory)));
  }
}

if (import.meta.main) {
  const [out, folder] = process.argv.slice(2);
  if (out === undefined) throw new Error("usage: node deploy/container/assemble.ts <directory> [<package>]");
  assemble(resolve(out), folder);
}
