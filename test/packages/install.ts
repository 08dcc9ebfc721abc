/** The directory of a consumer, with packages installed as by `npm install`. */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { access, chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { packageNames, readManifest } from "../../deploy/packages/build.ts";
import { builtPackages, packed } from "../support/packages.ts";
import { compiled } from "../support/program.ts";

const run = promisify(execFile);
const ROOT = resolve(import.meta.dirname, "../..");
const MODULES = join(ROOT, "node_modules");

/** The packages of this repository, by name. They are installed as built, not from `node_modules`, which links to their sources. */
const OWN = new Map(packageNames().map((folder) => [readManifest(folder).name, folder]));

export type PackageJson = {
  readonly name: string;
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly dependencies: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
  readonly peerDependencies?: Record<string, string>;
  readonly peerDependenciesMeta?: Record<string, { readonly optional?: boolean }>;
  /** The names of the dependencies that the package contains. */
  readonly bundleDependencies?: readonly string[];
  readonly exports?: object;
  readonly bin?: Record<string, string>;
};

export type Directory = {
  readonly path: string;
  write(files: Readonly<Record<string, string>>): Promise<void>;
  /** Runs a command. PATH has the executables of this directory first, and then those of this repository. */
  run(command: string, args: readonly string[]): Promise<{ stdout: string; stderr: string }>;
  remove(): Promise<void>;
};

/** The contract of a small service with a JSON route, and how code is generated from it. */
export const SHELF: Readonly<Record<string, string>> = {
  "buf.yaml": "version: v2\nmodules:\n  - path: proto\n",
  "buf.gen.yaml": `version: v2
plugins:
  - local: protoc-gen-es
    out: gen
    include_imports: true
    opt: [target=ts, import_extension=js]
  - local: protoc-gen-connect-http
    out: gen
    opt: [target=ts, import_extension=js]
  - local: protoc-gen-http-openapi
    out: gen
    strategy: all
`,
  "proto/shelf.proto": `syntax = "proto3";
package shelf;
import "google/api/annotations.proto";
service Shelf {
  rpc GetBook(GetBookRequest) returns (Book) { option (google.api.http) = {get: "/v1/{name=books/*}"}; }
}
message GetBookRequest { string name = 1; int32 page = 2; }
message Book { string name = 1; int32 page = 2; }
`,
};

/**
 * Unpacks packages and links the dependencies and peers that they declare, and no other package. `alsoLinked` are the consumer's own
 * dependencies. `own` is a `node_modules` with the versions that the consumer has; the packages that are not there are those of this
 * repository.
 */
export async function installPacked(
  folders: string | readonly string[],
  alsoLinked: readonly string[] = [],
  own = MODULES,
): Promise<Directory> {
  const path = await mkdtemp(join(tmpdir(), "packed-"));
  await mkdir(join(path, "node_modules/.bin"), { recursive: true });
  const built = await builtPackages([folders].flat());
  const linked: string[] = [];
  for (const folder of [folders].flat()) linked.push(...(await unpack(path, packed(folder))));
  for (const name of [...linked, ...alsoLinked]) {
    await mkdir(dirname(join(path, "node_modules", name)), { recursive: true });
    const folder = OWN.get(name);
    const modules = existsSync(join(own, name)) ? own : MODULES;
    const target = folder === undefined ? join(modules, name) : join(built, folder);
    await symlink(target, join(path, "node_modules", name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "EEXIST") throw error;
    });
  }
  const PATH = [join(path, "node_modules/.bin"), join(own, ".bin"), join(MODULES, ".bin"), process.env.PATH].join(":");
  return {
    path,
    async write(files) {
      for (const [name, text] of Object.entries(files)) {
        await mkdir(dirname(join(path, name)), { recursive: true });
        await writeFile(join(path, name), text);
      }
    },
    run: (command, args) => run(command, [...args], { cwd: path, env: { PATH, HOME: path, ...compiled() } }),
    remove: () => rm(path, { recursive: true }),
  };
}

/** Unpacks a package below a directory. Returns the names of the dependencies that are not in the package. */
async function unpack(path: string, file: string): Promise<readonly string[]> {
  await run("tar", ["xzf", file, "-C", path]);
  const manifest = JSON.parse(await readFile(join(path, "package/package.json"), "utf8")) as PackageJson;
  const installed = join(path, "node_modules", manifest.name);
  await mkdir(dirname(installed), { recursive: true });
  await run("mv", [join(path, "package"), installed]);
  for (const [name, file] of Object.entries(manifest.bin ?? {})) {
    await chmod(join(installed, file), 0o755);
    await symlink(join(installed, file), join(path, "node_modules/.bin", name));
  }
  const { dependencies, bundleDependencies = [], peerDependencies = {}, peerDependenciesMeta = {} } = manifest;
  const peers = Object.keys(peerDependencies).filter((name) => !peerDependenciesMeta[name]?.optional);
  return [...Object.keys(dependencies).filter((name) => !bundleDependencies.includes(name)), ...peers];
}

/** Returns the compiler settings of a consumer. Declarations of packages are only checked if asked for, since that takes most of the time. */
export const tsconfig = (include: readonly string[], skipLibCheck = true): string =>
  JSON.stringify({
    compilerOptions: {
      module: "nodenext",
      target: "es2024",
      // The library `dom` is needed because Connect's declarations use the types of fetch.
      lib: ["es2024", "esnext.typedarrays", "dom", "dom.iterable", "dom.asynciterable"],
      types: ["node"],
      strict: true,
      exactOptionalPropertyTypes: true,
      skipLibCheck,
      outDir: "out",
      rootDir: ".",
    },
    include,
  });

/** Returns the Node versions that packages must run on: the pinned one, and the oldest that their manifests promise. */
export async function nodes(): Promise<readonly string[]> {
  const modules = join(ROOT, "test/dependencies/oldest-node/node_modules");
  const [name] = (await readdir(modules)).filter((entry) => entry.startsWith("node-"));
  const oldest = join(modules, name ?? "", "bin/node");
  await access(oldest);
  return [process.execPath, oldest];
}
