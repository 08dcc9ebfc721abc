/**
 * Builds the published packages from the one source tree into `dist/packages/<folder>`: `node build.ts [<folder> …]`.
 *
 * The packages are the workspaces of the root manifest, and the service. Each holds exactly the modules that its entry points
 * reach, and depends on exactly the packages that those modules import, at the versions of the root manifest. So nothing is
 * listed twice, and nothing can be forgotten.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { bundleLibrary } from "./bundle.ts";
import { conditionsOf, type Entry, publishEntryPoints, typedSource } from "./entry-points.ts";
import { addCommonJs, compiledOf, declarationOf, finishDeclarations } from "./forms.ts";

const ROOT = join(import.meta.dirname, "../..");
const OUT = join(ROOT, "dist/packages");
/** The service has a manifest of its own, since the root's manifest is for developers. */
const SERVICE = join(ROOT, "src/service");

/** A manifest as it is in the tree, where its entry points are sources. */
export type Manifest = {
  readonly name: string;
  readonly description: string;
  readonly exports?: Readonly<Record<string, Entry>>;
  readonly bin?: Readonly<Record<string, string>>;
  readonly engines: { readonly node: string };
  readonly peerDependencies?: Readonly<Record<string, string>>;
  /** The settings that only the build reads. They are not published. */
  readonly build: {
    /** Modules that no entry point imports, because the package's own commands load them. Paths are from the root. */
    readonly modules?: readonly string[];
    /** Files and directories that are not modules. Paths are from the root. */
    readonly assets: readonly string[];
    /** The path of the changelog from the root. Default: none. */
    readonly changelog?: string;
    /** The upper limit of the unpacked size in kB, which a test checks. */
    readonly maxUnpackedKb: number;
  };
};

type RootManifest = {
  readonly version: string;
  readonly license: string;
  /** The one place with the URL of the repository, from which the fields of all packages follow. */
  readonly repository: { readonly type: "git"; readonly url: string };
  readonly workspaces: readonly string[];
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
};

const readJson = <T>(path: string) => JSON.parse(readFileSync(path, "utf8")) as T;
const root = readJson<RootManifest>(join(ROOT, "package.json"));
/** The directory of each package, by the last part of its path. The build and the tests use that part as the package's name. */
const DIRECTORIES = new Map(
  [...root.workspaces.map((workspace) => join(ROOT, workspace)), SERVICE].map((path) => [basename(path), path]),
);

export const packageNames = (): string[] => [...DIRECTORIES.keys()].sort();

/** Returns the URL of the repository's web page. */
export const repositoryUrl = (): string => root.repository.url.replace(/^git\+/, "").replace(/\.git$/, "");

/** @throws Error for a folder that is no package */
export function packageDirectory(folder: string): string {
  const directory = DIRECTORIES.get(folder);
  if (directory === undefined) throw new Error(`${folder} is no package; there are ${packageNames().join(", ")}`);
  return directory;
}

export const readManifest = (folder: string) => readJson<Manifest>(join(packageDirectory(folder), "package.json"));

/** The packages on which others depend, as their names and directories. They are built first. */
const LIBRARIES = new Map(
  packageNames()
    .map((folder) => [readManifest(folder).name, folder] as const)
    .filter(([name]) => name in root.dependencies),
);

/** Returns the names of all packages. Each follows those on which it depends. */
export const namesInOrder = (): string[] => [...new Set([...LIBRARIES.values(), ...packageNames()])];

/**
 * Returns the paths of the declarations of the libraries' entry points, by import name. Packages that import a library are compiled against
 * them.
 */
function declarations(out: string): Record<string, readonly string[]> {
  const entries = [...LIBRARIES].flatMap(([name, folder]) =>
    Object.entries(entriesOf(folder).exports).map(([path, entry]) => [
      join(name, path),
      [join(out, folder, declarationOf(typedSource(entry)))],
    ]),
  );
  return Object.fromEntries(entries);
}

/** Returns the paths of the sources of a package's entry points, relative to the root. */
function entriesOf(folder: string) {
  const { exports = {}, bin = {} } = readManifest(folder);
  const fromRoot = <Files extends Readonly<Record<string, string>>>(files: Files) =>
    Object.fromEntries(
      Object.entries(files).map(([name, file]) => [name, relative(ROOT, join(packageDirectory(folder), file))]),
    ) as Files;
  const entries = Object.entries(exports).map(([name, entry]): [string, Entry] => [
    name,
    typeof entry === "string" ? fromRoot({ entry }).entry : fromRoot(entry),
  ]);
  return { exports: Object.fromEntries(entries), bin: fromRoot(bin) };
}

/**
 * @param declaration whether the package has exports, and so needs declarations
 * @param paths the directories of libraries that are imported and not part of this package
 */
function compile(
  directory: string,
  sources: readonly string[],
  declaration: boolean,
  paths: Readonly<Record<string, readonly string[]>>,
): void {
  const config = `${directory}.tsconfig.json`;
  const compilerOptions = { noEmit: false, declaration, rootDir: ROOT, outDir: directory, paths };
  const files = sources.map((source) => join(ROOT, source));
  writeFileSync(config, JSON.stringify({ extends: join(ROOT, "tsconfig.json"), compilerOptions, files, include: [] }));
  // A package is small, so several checkers would mostly check the same declarations, and the compiler needs to free no memory.
  const env = { ...process.env, GOGC: "off", GOMEMLIMIT: "1GiB" };
  execFileSync("tsc", ["--checkers", "1", "-p", config], { stdio: "inherit", env });
  rmSync(config);
}

/** The modules of these libraries are joined with those of the service (join.ts), so that it no longer depends on them. */
const JOINED = [
  ...["@bufbuild/protobuf", "@connectrpc/connect", "@connectrpc/connect-node", "connect-http-routes"],
  ...["prom-client", "bintrees", "tdigest", "@opentelemetry/api", "structured-headers"],
];

/** Matches a line of a comment, because comments may name modules that the code does not import. */
const COMMENT_LINE = /^\s*(?:\/\*\*|\*|\/\/).*$/gm;

/** Returns the packages that compiled modules import, including those that only their types import. */
function importedPackages(directory: string): Set<string> {
  const found = new Set<string>();
  for (const file of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    if (!/\.(c?js|d\.ts)$/.test(file)) continue;
    const code = readFileSync(join(directory, file), "utf8").replaceAll(COMMENT_LINE, "");
    for (const [, specifier] of code.matchAll(
      /(?:\bfrom|\bimport|\bimport\(|\.resolve\(|\brequire\()\s*["'`]([^."'`][^"'`]*)["'`$]/g,
    )) {
      const [, name] = /^((?:@[^/]+\/)?[^/:]+)(?:\/|$)/.exec(specifier as string) ?? [];
      if (name !== undefined) found.add(name);
    }
  }
  return found;
}

/**
 * Returns the imported packages by the kind of dependency that the root manifest gives them. The user of a package installs its peers. A
 * program depends on exactly the versions that it is tested with, and contains our own libraries, so that one file installs it. A library
 * shares the versions of its user (test/packages/ranges.test.ts tests both ends of the ranges).
 */
function dependencies(directory: string, root: RootManifest, peers: Readonly<Record<string, string>>, range: "" | "^") {
  const imported = [...importedPackages(directory)].filter((name) => !(name in peers)).sort();
  const among = (known: Readonly<Record<string, string>>) =>
    Object.fromEntries(imported.filter((name) => name in known).map((name) => [name, range + known[name]]));
  const optional = among(root.optionalDependencies ?? {});
  const bundled = range === "" ? imported.filter((name) => LIBRARIES.has(name)) : [];
  return {
    dependencies: among(root.dependencies),
    ...(bundled.length > 0 && { bundleDependencies: bundled }),
    ...(Object.keys(optional).length > 0 && { optionalDependencies: optional }),
  };
}

/** Writes the page of the console, with its script bundled instead of as separate sources. */
function buildConsole(directory: string): void {
  const page = join(directory, "src/service/pages/console/page");
  mkdirSync(page, { recursive: true });
  for (const file of ["index.html", "style.css", "icon.svg"])
    cpSync(join(ROOT, "src/service/pages/console/page", file), join(page, file));
  const script = `import { buildConsolePage } from ${JSON.stringify(join(ROOT, "src/service/pages/console/build.ts"))};
    process.stdout.write(await buildConsolePage());`;
  writeFileSync(join(page, "main.js"), execFileSync(process.execPath, ["--input-type=module", "-e", script]));
}

/**
 * Copies the files of Swagger UI, which displays the API. Its package is not a dependency, because it runs a script that reports each
 * installation.
 */
function copySwaggerUi(directory: string): void {
  const files = ["swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt", "swagger-ui.css", "LICENSE", "NOTICE"];
  for (const file of files) {
    cpSync(
      join(ROOT, "node_modules/swagger-ui-dist", file),
      join(directory, "src/service/pages/reference/swagger-ui", file),
    );
  }
}

function build(folder: string, out: string): void {
  const directory = join(out, folder);
  const { build: settings, exports: _, bin, ...manifest } = readManifest(folder);
  const isService = packageDirectory(folder) === SERVICE;
  const entries = entriesOf(folder);
  const commands = isService ? {} : entries.bin;
  const exported = Object.entries(entries.exports);
  const sources = [
    ...exported.flatMap(([, entry]) => Object.values(conditionsOf(entry))),
    ...Object.values(commands),
    ...(settings.modules ?? []),
  ];
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const isLibrary = LIBRARIES.has(manifest.name);
  compile(directory, sources, exported.length > 0, isLibrary ? {} : declarations(out));
  if (exported.length > 0) {
    finishDeclarations(
      directory,
      exported.map(([, entry]) => typedSource(entry)),
    );
    addCommonJs(
      directory,
      exported.flatMap(([, entry]) => Object.values(conditionsOf(entry))),
    );
  }
  if (isService) {
    buildConsole(directory);
    copySwaggerUi(directory);
    execFileSync(process.execPath, [join(import.meta.dirname, "join.ts"), directory, ...JOINED]);
    cpSync(join(SERVICE, "bin"), join(directory, "bin"), { recursive: true });
  }
  for (const asset of settings.assets) {
    mkdirSync(join(directory, dirname(asset)), { recursive: true });
    cpSync(join(ROOT, asset), join(directory, asset), { recursive: true });
  }
  cpSync(join(packageDirectory(folder), "README.md"), join(directory, "README.md"));
  cpSync(join(ROOT, "LICENSE"), join(directory, "LICENSE"));
  if (settings.changelog !== undefined) cpSync(join(ROOT, settings.changelog), join(directory, "CHANGELOG.md"));
  const isProgram = exported.length === 0;
  if (isProgram) bundleLibraries(directory, out);
  const published = {
    ...publishedFields(folder, manifest),
    ...(exported.length > 0 && publishEntryPoints(entries.exports)),
    ...(bin !== undefined && {
      bin: isService
        ? bin
        : Object.fromEntries(Object.entries(commands).map(([name, source]) => [name, `./${compiledOf(source)}`])),
    }),
    ...dependencies(directory, root, manifest.peerDependencies ?? {}, isProgram ? "" : "^"),
  };
  for (const file of Object.values(published.bin ?? {})) chmodSync(join(directory, file), 0o755);
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
}

/** Returns the published fields of a manifest. Left out are those that are only for developers in this tree. */
function publishedFields(folder: string, manifest: object): object {
  const { private: _, scripts: __, mayImport: ___, ...fields } = manifest as Readonly<Record<string, unknown>>;
  const { version, license, repository } = root;
  const directory = relative(ROOT, packageDirectory(folder));
  return {
    ...fields,
    ...{ version, license, homepage: `${repositoryUrl()}/tree/main/${directory}#readme` },
    ...{ repository: { ...repository, directory }, bugs: { url: `${repositoryUrl()}/issues` } },
    ...{ type: "module", sideEffects: false },
  };
}

/** Puts what a program uses of our own libraries into its package, so that one file installs it. */
function bundleLibraries(directory: string, out: string): void {
  for (const [name, folder] of LIBRARIES) {
    if (!importedPackages(directory).has(name)) continue;
    const entries = Object.entries(entriesOf(folder).exports);
    bundleLibrary(directory, {
      ...{ name, version: root.version, directory: join(out, folder) },
      entries: Object.fromEntries(entries.map(([path, entry]) => [path, compiledOf(typedSource(entry))])),
    });
  }
}

/**
 * Builds all packages, or the named ones, into directories of their names. The packages on which they depend are built first.
 *
 * @param isBuilt whether a package is there already, and is not built again. Default: none is
 */
export function buildPackages(
  folders: readonly string[] = packageNames(),
  out = OUT,
  isBuilt: (folder: string) => boolean = () => false,
): void {
  for (const folder of new Set([...LIBRARIES.values(), ...folders])) if (!isBuilt(folder)) build(folder, out);
}

if (import.meta.main) {
  const folders = process.argv.slice(2);
  buildPackages(folders.length > 0 ? folders : undefined);
}
