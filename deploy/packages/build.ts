/**
 * Builds the published packages from the one source tree into `dist/packages/<name>`.
 *
 * Each package holds exactly the modules that its entry points reach, and depends on exactly the packages that those
 * modules import, at the versions of the root manifest. So nothing is listed twice, and nothing can be forgotten.
 */
import { execFileSync } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

const ROOT = join(import.meta.dirname, "../..");
const PACKAGES = import.meta.dirname;
const OUT = join(ROOT, "dist/packages");

type Manifest = {
  readonly name: string;
  readonly description: string;
  /** Source files by the name under which users import or run them. */
  readonly entries: {
    readonly exports?: Record<string, string>;
    readonly bin?: Record<string, string>;
    /** Without a name: what the package's own commands load. */
    readonly modules?: readonly string[];
  };
  /** Commands that are no modules of the tree: files of the folder `bin` beside this manifest. */
  readonly bin?: Record<string, string>;
  readonly engines: { readonly node: string };
  readonly peerDependencies?: Record<string, string>;
  /** Files and directories that are not modules, from the root. */
  readonly assets: readonly string[];
  /** Upper bound of the unpacked size, kB; held by a test. */
  readonly maxUnpackedKb: number;
};

type RootManifest = {
  readonly version: string;
  readonly license: string;
  readonly dependencies: Record<string, string>;
  readonly optionalDependencies?: Record<string, string>;
};

const readJson = <T>(path: string) => JSON.parse(readFileSync(path, "utf8")) as T;

/** The folders below `deploy/packages`: one package each. */
export const packageNames = () =>
  readdirSync(PACKAGES, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => entry.name);

export const readManifest = (name: string) => readJson<Manifest>(join(PACKAGES, name, "package.json"));

/** The compiled form of a source file, from the package's root. */
const compiled = (source: string, extension: ".js" | ".d.ts") => `./${source.replace(/\.ts$/, extension)}`;

/** @param declaration whether the package has exports, and so needs declarations */
function compile(directory: string, sources: readonly string[], declaration: boolean): void {
  const config = `${directory}.tsconfig.json`;
  const compilerOptions = { noEmit: false, declaration, rootDir: ROOT, outDir: directory };
  const files = sources.map((source) => join(ROOT, source));
  writeFileSync(config, JSON.stringify({ extends: join(ROOT, "tsconfig.json"), compilerOptions, files, include: [] }));
  execFileSync("tsc", ["-p", config], { stdio: "inherit" });
  rmSync(config);
}

/** The packages that compiled modules import, types included. */
function importedPackages(directory: string): Set<string> {
  const found = new Set<string>();
  for (const file of readdirSync(directory, { recursive: true, encoding: "utf8" })) {
    if (!/\.(js|d\.ts)$/.test(file)) continue;
    const text = readFileSync(join(directory, file), "utf8");
    for (const [, specifier] of text.matchAll(
      /(?:\bfrom|\bimport|\bimport\(|\.resolve\()\s*["'`]([^."'`][^"'`]*)["'`$]/g,
    )) {
      const [, name] = /^((?:@[^/]+\/)?[^/:]+)(?:\/|$)/.exec(specifier as string) ?? [];
      if (name !== undefined) found.add(name);
    }
  }
  return found;
}

/**
 * What a package imports, by how the root manifest depends on it; its peers are its user's affair. A program has exactly the versions that
 * it is tested with; what others import shares the versions of its user (both ends of the ranges: test/packages/newest.test.ts).
 */
function dependencies(directory: string, root: RootManifest, peers: Readonly<Record<string, string>>, range: "" | "^") {
  const imported = [...importedPackages(directory)].filter((name) => !(name in peers)).sort();
  const among = (known: Readonly<Record<string, string>>) =>
    Object.fromEntries(imported.filter((name) => name in known).map((name) => [name, range + known[name]]));
  const optional = among(root.optionalDependencies ?? {});
  return {
    dependencies: among(root.dependencies),
    ...(Object.keys(optional).length > 0 && { optionalDependencies: optional }),
  };
}

/** The console's page: what is bundled, instead of its sources. */
function buildConsole(directory: string): void {
  const page = join(directory, "src/console/page");
  mkdirSync(page, { recursive: true });
  for (const file of ["index.html", "style.css", "icon.svg"])
    cpSync(join(ROOT, "src/console/page", file), join(page, file));
  const script = `import { buildConsolePage } from ${JSON.stringify(join(ROOT, "src/console/build.ts"))};
    process.stdout.write(await buildConsolePage());`;
  writeFileSync(join(page, "main.js"), execFileSync(process.execPath, ["--input-type=module", "-e", script]));
}

/** The files of the page of the API, instead of their package, which runs a script that reports its installation. */
function copySwaggerUi(directory: string): void {
  const files = ["swagger-ui-bundle.js", "swagger-ui-bundle.js.LICENSE.txt", "swagger-ui.css", "LICENSE", "NOTICE"];
  for (const file of files) {
    cpSync(join(ROOT, "node_modules/swagger-ui-dist", file), join(directory, "src/server/swagger-ui", file));
  }
}

function build(name: string, directory: string, root: RootManifest): void {
  const { entries, assets, maxUnpackedKb: _, ...manifest } = readManifest(name);
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(directory, { recursive: true });
  const bin = Object.entries(entries.bin ?? {});
  const exported = Object.entries(entries.exports ?? {});
  compile(
    directory,
    [...[...exported, ...bin].map(([, source]) => source), ...(entries.modules ?? [])],
    exported.length > 0,
  );
  for (const [, source] of bin) chmodSync(join(directory, compiled(source, ".js")), 0o755);
  if (name === "service") {
    buildConsole(directory);
    copySwaggerUi(directory);
  }
  for (const asset of assets) {
    mkdirSync(join(directory, dirname(asset)), { recursive: true });
    cpSync(join(ROOT, asset), join(directory, asset), { recursive: true });
  }
  if (manifest.bin !== undefined) cpSync(join(PACKAGES, name, "bin"), join(directory, "bin"), { recursive: true });
  for (const file of Object.values(manifest.bin ?? {})) chmodSync(join(directory, file), 0o755);
  for (const file of ["LICENSE", `deploy/packages/${name}/README.md`]) {
    cpSync(join(ROOT, file), join(directory, file.split("/").at(-1) as string));
  }
  const published = {
    ...manifest,
    version: root.version,
    license: root.license,
    type: "module",
    sideEffects: false,
    ...(exported.length > 0 && {
      exports: Object.fromEntries(
        exported.map(([path, source]) => [
          path,
          { types: compiled(source, ".d.ts"), default: compiled(source, ".js") },
        ]),
      ),
    }),
    ...(bin.length > 0 && {
      bin: Object.fromEntries(bin.map(([command, source]) => [command, compiled(source, ".js")])),
    }),
    ...dependencies(directory, root, manifest.peerDependencies ?? {}, exported.length > 0 ? "^" : ""),
  };
  writeFileSync(join(directory, "package.json"), `${JSON.stringify(published, null, 2)}\n`);
}

/** Builds all packages, or those named, into directories of their names. */
export function buildPackages(names: readonly string[] = packageNames(), out = OUT): void {
  const root = readJson<RootManifest>(join(ROOT, "package.json"));
  for (const name of names) build(name, join(out, name), root);
}

if (import.meta.main) buildPackages();
