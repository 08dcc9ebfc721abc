/**
 * Tests what the packages (the folders of `src/`) and their folders may import, that no file, function or comment is too long, and that
 * tests are in the folders of their sources.
 */
import { existsSync, globSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, dirname, join, relative } from "node:path";
import { parseSync } from "rolldown/utils";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const SRC = join(ROOT, "src");
const TEST = join(ROOT, "test");

/**
 * The import rules of a package, which are the field `mayImport` of its manifest. They say for each folder what it may import: folders and
 * files of the package (`./session`), of other packages and of the root (`platform/net`, `gen`), and libraries. `.` is the package itself,
 * `*` means everything. If several folders contain a file, the innermost one counts. A permission for a folder does not cover a subfolder
 * that has its own entry: `./observability` does not cover `observability/telemetry`. Node's own modules need no permission, but for its
 * database.
 */
type ImportRules = Readonly<Record<string, readonly string[]>>;

/** What each folder may import, both as paths from `src/`. */
const MAY_IMPORT = new Map<string, readonly string[]>();
for (const name of readdirSync(SRC).filter((entry) => entry !== "README.md")) {
  const manifest = JSON.parse(readFileSync(join(SRC, name, "package.json"), "utf8"));
  const { mayImport } = manifest as { readonly mayImport: ImportRules };
  for (const [folder, allowed] of Object.entries(mayImport)) {
    const paths = allowed.map((path) => (path.startsWith("./") ? join(name, path) : path));
    MAY_IMPORT.set(join(name, folder), paths);
  }
}

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name) && statSync(join(SRC, name)).isFile())
  .map((name) => name.replaceAll("\\", "/"));

const source = (file: string): string => readFileSync(join(SRC, file), "utf8");

/** Returns what a text imports, including what it loads later by `import()`. */
const importsIn = (text: string): string[] =>
  [/(?:^|\n)(?:import|export)[^;]*?from\s+"([^"]+)"/g, /(?<!\.)\bimport(?:\(|\s+)"([^"]+)"/g].flatMap((form) =>
    [...text.matchAll(form)].map((match) => match[1] as string),
  );

const importsOf = (file: string): string[] => importsIn(source(file));

/** Returns what an import names: a path from `src/` (`service/session/model.ts`), one of the root (`gen/auth/v1/session_pb.ts`), or a package. */
const target = (file: string, specifier: string) =>
  specifier.startsWith(".")
    ? relative(ROOT, join(dirname(join(SRC, file)), specifier)).replace(/^src\//, "")
    : specifier;

const isFree = (specifier: string) => specifier.startsWith("node:") && specifier !== "node:sqlite";

/** Returns the package of a file, or its folder in the service: `verifier`, `service/store`. */
const partOf = (file: string) => /^(service\/[^/]+|[^/]+)/.exec(file)?.[1] ?? "";

/** The composition root, and the file that starts it, import everything. */
const isRoot = (file: string) => ["service/composition", "service/main.ts"].includes(partOf(file));

const isIn = (file: string, folder: string) => file === folder || file.startsWith(`${folder}/`);

/** Returns the innermost folder with an import rule that a file lies in, or an empty text. */
const folderOf = (file: string) =>
  [...MAY_IMPORT.keys()].reduce(
    (found, folder) => (isIn(file, folder) && folder.length > found.length ? folder : found),
    "",
  );

/** Returns whether the permission to import `path`, a folder or a file, covers `inside`. */
const covers = (path: string, inside: string) =>
  path === "*" ||
  inside === path ||
  (isIn(inside, path) && !(folderOf(inside) !== path && isIn(folderOf(inside), path)));

test("every folder imports only what its rule allows", () => {
  const breaches: string[] = [];
  for (const file of files) {
    const folder = folderOf(file);
    const allowed = MAY_IMPORT.get(folder);
    expect(allowed, `the folder of ${file} has no import rule: name it in mayImport of its package.json`).toBeDefined();
    for (const specifier of importsOf(file).filter((one) => !isFree(one))) {
      const inside = target(file, specifier);
      const ok = folderOf(inside) === folder || allowed?.some((path) => covers(path, inside));
      if (!ok) breaches.push(`${file} → ${inside}`);
    }
  }
  expect(breaches).toEqual([]);
});

/** Libraries that talk to the world, with the only folders that may import them, whatever the manifests say. */
const KEEPERS: Readonly<Record<string, readonly string[]>> = {
  ioredis: ["service/store"],
  "node:sqlite": ["service/store"],
  jose: ["verifier", "service/sign-in"],
};

test("the domain imports nothing, adapters do not know each other, and what talks to the world has one folder", () => {
  const adapters = ["store", "tokens", "api", "signals", "observability", "workers", "cli"].map(
    (name) => `service/${name}`,
  );
  expect(MAY_IMPORT.get("service/session")).toEqual([]);
  const between = files.flatMap((file) =>
    importsOf(file)
      .map((specifier) => target(file, specifier))
      .filter((inside) => adapters.includes(partOf(inside)) && partOf(inside) !== partOf(file))
      .filter(() => adapters.includes(partOf(file)) && partOf(file) !== "service/cli")
      .map((inside) => `${partOf(file)} → ${partOf(inside)}`),
  );
  expect([...new Set(between)].sort()).toEqual([
    "service/api → service/signals",
    "service/store → service/signals",
    "service/workers → service/observability",
  ]);
  const strangers = files.flatMap((file) =>
    importsOf(file)
      .filter((specifier) => KEEPERS[specifier]?.every((folder) => !isIn(file, folder)))
      .map((specifier) => `${file} → ${specifier}`),
  );
  expect(strangers).toEqual([]);
});

test("generated code imports nothing from src", () => {
  const gen = join(ROOT, "gen");
  const imports = readdirSync(gen, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) =>
      [...readFileSync(join(gen, name), "utf8").matchAll(/^import (.*?)\{[^}]*\} from "([^"]+)"/gms)]
        .map(([, kind, specifier]) => `${kind}${relative(ROOT, join(dirname(join(gen, name)), specifier as string))}`)
        .filter((line) => line.includes("src/")),
    );
  expect(imports).toEqual([]);
});

test("only entry points touch the environment, and only config reads variables from it", () => {
  const uses = files.flatMap((file) =>
    [...source(file).matchAll(/process\.env\S*/g)].map(([use]) => `${file}: ${use}`),
  );
  expect([...new Set(uses)].sort()).toEqual(["service/main.ts: process.env);", "service/main.ts: process.env,"]);
});

/** Redis has no other code of an error than the word with which its reply begins. */
const KNOWS_ERRORS_BY_TEXT = ["service/store/redis/", "service/cli/doctor/redis.ts"];

test("errors of others are recognized by their code or class, never by their text", () => {
  const byText =
    /\b[mM]essage\.(?:includes|match|search|startsWith|endsWith)\(.*|\b(?:test|exec)\((?:\w+\.)*[mM]essage\).*|(?:error|cause|reason)\.message [!=]==? .*/g;
  const uses = files
    .filter((file) => !KNOWS_ERRORS_BY_TEXT.some((place) => file.startsWith(place)))
    .flatMap((file) => [...source(file).matchAll(byText)].map(([use]) => `${file}: ${use}`));
  expect(uses).toEqual([]);
});

test("no rule allows an import that nobody makes", () => {
  const stale = [...MAY_IMPORT].flatMap(([folder, allowed]) => {
    const own = files.filter((file) => folderOf(file) === folder);
    const used = own.flatMap((file) => importsOf(file).map((specifier) => target(file, specifier)));
    return allowed.filter((path) => !used.some((inside) => covers(path, inside))).map((path) => `${folder} → ${path}`);
  });
  expect(stale).toEqual([]);
});

/** The largest number of pairs of packages, or folders of the service, of which one imports the other. The composition root does not count. */
const MAX_ARROWS = 59;

test("packages, and folders of the service, import few of each other", () => {
  const parts = new Set(files.map(partOf));
  const arrows = files
    .filter((file) => !isRoot(file))
    .flatMap((file) => importsOf(file).map((specifier) => [partOf(file), partOf(target(file, specifier))] as const))
    .filter(([from, to]) => from !== to && (parts.has(to) || to === "gen"))
    .map((arrow) => arrow.join(" → "));
  expect(new Set(arrows).size).toBeLessThanOrEqual(MAX_ARROWS);
});

test("the composition root composes, and stays small", () => {
  expect(files.filter((file) => partOf(file) === "service/composition").length).toBeLessThanOrEqual(23);
});

/** The most lines that a file and a function may have. */
const MAX_FILE_LINES = 250;
const MAX_FUNCTION_LINES = 70;

/** Files that may have more than `MAX_FILE_LINES` lines. Each must consist of a single class. */
test("no source file is too long", () => {
  const long = files.filter((file) => source(file).trimEnd().split("\n").length > MAX_FILE_LINES);
  expect(long).toEqual([]);
});

/**
 * Functions that may have more lines than the limit. `createRenewal` does the input and output of the browser kit: locks, channels,
 * requests and timers. Moving only what a tab knows out of it would add 116 compressed bytes to every page, moving only the calls of the
 * application 102, and a class of short methods 148. The limit is 3,600 (test/browser/size.test.ts).
 */
const LONG_FACTORIES = ["browser/renewal.ts: createRenewal"];

test("no function is too long", () => {
  const long = files.flatMap((file) => longFunctions(file, source(file)));
  const allowed = (found: string) => LONG_FACTORIES.find((factory) => found.startsWith(`${factory}, `));
  expect(long.filter((found) => allowed(found) === undefined)).toEqual([]);
  expect(LONG_FACTORIES).toEqual([...new Set(long.map(allowed))].sort());
});

type SyntaxNode = { readonly type?: string; readonly start: number; readonly end: number } & Record<string, unknown>;

/** Functions, closures included, with more lines than allowed. */
function longFunctions(file: string, text: string): string[] {
  const found: string[] = [];
  const visit = (value: unknown, name: string): void => {
    if (Array.isArray(value)) for (const item of value) visit(item, name);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return;
    const node = value as SyntaxNode;
    const { name: own = name } = (node.id ?? node.key ?? {}) as { readonly name?: string };
    const lines = /Function/.test(node.type ?? "") ? text.slice(node.start, node.end).split("\n").length : 0;
    if (lines > MAX_FUNCTION_LINES) found.push(`${file}: ${own}, ${lines} lines`);
    for (const child of Object.values(node)) visit(child, own);
  };
  visit(parseSync(file, text).program, "");
  return found;
}

test("no import goes in a circle", () => {
  const graph = new Map(
    files.map((file) => [
      file,
      importsOf(file)
        .filter((s) => s.startsWith("."))
        .map((s) => target(file, s)),
    ]),
  );
  const done = new Set<string>();
  const visit = (file: string, way: readonly string[]): void => {
    if (way.includes(file)) throw new Error(`a circle: ${[...way.slice(way.indexOf(file)), file].join(" → ")}`);
    if (done.has(file)) return;
    for (const next of graph.get(file) ?? []) visit(next, [...way, file]);
    done.add(file);
  };
  for (const file of files) visit(file, []);
  expect(done.size).toBeGreaterThan(files.length - 1);
});

/** Returns the sources of its own package that a test imports and has the name of: `rotation.rules.test.ts` has that of `rotation.ts`. */
const namesakes = (file: string): string[] =>
  importsIn(readFileSync(join(TEST, file), "utf8"))
    .map((specifier) => relative(SRC, join(TEST, dirname(file), specifier)))
    .filter((path) => files.includes(path) && path.split("/")[0] === file.split("/")[0])
    .filter((path) => basename(path).split(".")[0] === basename(file).split(".")[0]);

test("a test with the name of a source that it imports is in the folder of that source, or below it", () => {
  const named = globSync("**/*.test.ts", { cwd: TEST, exclude: ["**/node_modules"] })
    .map((file) => ({ file, sources: namesakes(file) }))
    .filter(({ sources }) => sources.length > 0);
  const elsewhere = named.filter(({ file, sources }) => !sources.some((path) => isIn(dirname(file), dirname(path))));
  expect(elsewhere).toEqual([]);
  expect(named.length).toBeGreaterThan(100);
});

test("no two types that the service and what it shares export have the same name", () => {
  const places = new Map<string, string[]>();
  for (const file of files.filter((path) => path.startsWith("service/") || path.startsWith("platform/"))) {
    for (const [, name = ""] of source(file).matchAll(/^export (?:abstract )?(?:type|interface|class) (\w+)/gm)) {
      places.set(name, [...(places.get(name) ?? []), file]);
    }
  }
  expect(places.size).toBeGreaterThan(300);
  expect([...places].filter(([, found]) => found.length > 1)).toEqual([]);
});

/** A file that a comment names, if it is no part of a longer path or address. */
const NAMED_FILE = /(?<![\w/.@:-])[a-z][\w-]*(?:\/[\w.-]+)*\.(?:tsx?|lua)\b/g;

test("every file that a comment of the service names is beside it, above it or below it, or named with its folder", () => {
  const own = files.filter((file) => file.startsWith("service/"));
  const near = [...own, ...globSync("service/**/*.lua", { cwd: SRC })];
  const isNear = (file: string, name: string) =>
    near.some((other) => {
      if (!`/${other}`.endsWith(`/${name}`)) return false;
      const [here, there] = [dirname(file), dirname(other)];
      return (
        name.includes("/") ||
        here === there ||
        dirname(here) === there ||
        dirname(there) === here ||
        dirname(there) === dirname(here)
      );
    });
  const named = own.flatMap((file) =>
    [...source(file).matchAll(/^ *(?:\*|\/\/|\/\*\*) .*$/gm)].flatMap(([comment]) =>
      [...comment.matchAll(NAMED_FILE)].map(([name]) => ({ file, name })),
    ),
  );
  const isThere = (name: string) => existsSync(join(ROOT, name)) || existsSync(join(SRC, name));
  expect(named.filter(({ file, name }) => !isNear(file, name) && !isThere(name))).toEqual([]);
  expect(named.length).toBeGreaterThan(50);
});

test("every file that a comment of a script names exists", () => {
  const scripts = globSync("service/**/*.lua", { cwd: SRC });
  const known = [...files, ...scripts].map((file) => `/${file}`);
  const named = scripts.flatMap((file) =>
    [...source(file).matchAll(/--.*/g)].flatMap(([comment]) =>
      [...comment.matchAll(NAMED_FILE)].map(([name]) => ({ file, name })),
    ),
  );
  const isThere = (name: string) => existsSync(join(ROOT, name)) || known.some((file) => file.endsWith(`/${name}`));
  expect(named.filter(({ name }) => !isThere(name))).toEqual([]);
  expect(named.length).toBeGreaterThan(200);
});

/** The most columns of a comment. The formatter breaks only lines of code. */
const MAX_COMMENT_COLUMNS = 140;

test("no line of a comment is too long", () => {
  const long = readdirSync(SRC, { recursive: true, encoding: "utf8" })
    .filter((name) => /\.(?:tsx?|lua)$/.test(name))
    .flatMap((file) =>
      source(file)
        .split("\n")
        .map((line, at) => ({ line, place: `${file}:${at + 1}` })),
    )
    .filter(({ line }) => line.length > MAX_COMMENT_COLUMNS && /^\s*(?:\/\/|\/?\*|--)/.test(line));
  expect(long.map(({ place }) => place)).toEqual([]);
});
