/**
 * Tests what the packages (wings, the folders of `src/`) and their rooms may import, and that no file and no function is too long.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { parseSync } from "rolldown/utils";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const SRC = join(ROOT, "src");

/**
 * What the folders of a wing may import, as the field `walls` of its manifest says: folders and files of the wing (`./session`), of other
 * wings and of the root (`platform/net`, `gen`), and packages. `.` is the wing itself, `*` means everything. If several folders contain a
 * file, the innermost one counts. A permission for a folder does not cover a subfolder that has its own entry: `./observability` does not
 * cover `observability/telemetry`. Node's own modules need no permission, but for its database.
 */
type Walls = Readonly<Record<string, readonly string[]>>;

/** The permissions by folder, both as paths from `src/`. */
const WALLS = new Map<string, readonly string[]>();
for (const wing of readdirSync(SRC).filter((name) => name !== "README.md")) {
  const { walls } = JSON.parse(readFileSync(join(SRC, wing, "package.json"), "utf8")) as { readonly walls: Walls };
  for (const [folder, allowed] of Object.entries(walls)) {
    const paths = allowed.map((wall) => (wall.startsWith("./") ? join(wing, wall) : wall));
    WALLS.set(join(wing, folder), paths);
  }
}

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name) && statSync(join(SRC, name)).isFile())
  .map((name) => name.replaceAll("\\", "/"));

const source = (file: string): string => readFileSync(join(SRC, file), "utf8");

/** Returns what a file imports, including what it loads later by `import()`. */
const importsOf = (file: string): string[] =>
  [/(?:^|\n)(?:import|export)[^;]*?from\s+"([^"]+)"/g, /(?<!\.)\bimport(?:\(|\s+)"([^"]+)"/g].flatMap((form) =>
    [...source(file).matchAll(form)].map((match) => match[1] as string),
  );

/** Returns what an import names: a path from `src/` (`service/session/model.ts`), one of the root (`gen/auth/v1/session_pb.ts`), or a package. */
const target = (file: string, specifier: string) =>
  specifier.startsWith(".")
    ? relative(ROOT, join(dirname(join(SRC, file)), specifier)).replace(/^src\//, "")
    : specifier;

const isFree = (specifier: string) => specifier.startsWith("node:") && specifier !== "node:sqlite";

/** Returns the wing of a file, or its room in the service: `verifier`, `service/store`. */
const roomOf = (file: string) => /^(service\/[^/]+|[^/]+)/.exec(file)?.[1] ?? "";

/** The composition root, and the file that starts it, import everything. */
const isRoot = (file: string) => ["service/server", "service/main.ts"].includes(roomOf(file));

const isIn = (file: string, folder: string) => file === folder || file.startsWith(`${folder}/`);

/** Returns the innermost folder with walls that a file lies in, or an empty text. */
const folderOf = (file: string) =>
  [...WALLS.keys()].reduce(
    (found, folder) => (isIn(file, folder) && folder.length > found.length ? folder : found),
    "",
  );

/** Returns whether the permission to import `wall`, a folder or a file, covers `inside`. */
const opens = (wall: string, inside: string) =>
  wall === "*" ||
  inside === wall ||
  (isIn(inside, wall) && !(folderOf(inside) !== wall && isIn(folderOf(inside), wall)));

test("every folder is behind its walls", () => {
  const breaches: string[] = [];
  for (const file of files) {
    const folder = folderOf(file);
    const allowed = WALLS.get(folder);
    expect(allowed, `the folder of ${file} has no walls: name it in the manifest of its wing`).toBeDefined();
    for (const specifier of importsOf(file).filter((one) => !isFree(one))) {
      const inside = target(file, specifier);
      const ok = folderOf(inside) === folder || allowed?.some((wall) => opens(wall, inside));
      if (!ok) breaches.push(`${file} → ${inside}`);
    }
  }
  expect(breaches).toEqual([]);
});

/** Libraries that talk to the world, with the only rooms that may import them, whatever the manifests say. */
const KEEPERS: Readonly<Record<string, readonly string[]>> = {
  ioredis: ["service/store"],
  "node:sqlite": ["service/store"],
  jose: ["verifier", "service/sign-in"],
};

test("the domain imports nothing, adapters do not know each other, and what talks to the world has one room", () => {
  const adapters = ["store", "tokens", "api", "signals", "observability", "workers", "cli"].map(
    (name) => `service/${name}`,
  );
  expect(WALLS.get("service/session")).toEqual([]);
  const between = files.flatMap((file) =>
    importsOf(file)
      .map((specifier) => target(file, specifier))
      .filter((inside) => adapters.includes(roomOf(inside)) && roomOf(inside) !== roomOf(file))
      .filter(() => adapters.includes(roomOf(file)) && roomOf(file) !== "service/cli")
      .map((inside) => `${roomOf(file)} → ${roomOf(inside)}`),
  );
  expect([...new Set(between)].sort()).toEqual([
    "service/api → service/signals",
    "service/store → service/signals",
    "service/workers → service/observability",
  ]);
  const strangers = files.flatMap((file) =>
    importsOf(file)
      .filter((specifier) => KEEPERS[specifier]?.every((room) => !isIn(file, room)))
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

test("no wall lets through what nobody imports", () => {
  const stale = [...WALLS].flatMap(([folder, walls]) => {
    const own = files.filter((file) => folderOf(file) === folder);
    const used = own.flatMap((file) => importsOf(file).map((specifier) => target(file, specifier)));
    return walls.filter((wall) => !used.some((inside) => opens(wall, inside))).map((wall) => `${folder} → ${wall}`);
  });
  expect(stale).toEqual([]);
});

/** The largest number of pairs of wings, or rooms of the service, of which one imports the other. The composition root does not count. */
const MAX_ARROWS = 62;

test("the rooms know few of each other", () => {
  const rooms = new Set(files.map(roomOf));
  const arrows = files
    .filter((file) => !isRoot(file))
    .flatMap((file) => importsOf(file).map((specifier) => [roomOf(file), roomOf(target(file, specifier))] as const))
    .filter(([from, to]) => from !== to && (rooms.has(to) || to === "gen"))
    .map((arrow) => arrow.join(" → "));
  expect(new Set(arrows).size).toBeLessThanOrEqual(MAX_ARROWS);
});

test("the composition root composes, and stays small", () => {
  expect(files.filter((file) => roomOf(file) === "service/server").length).toBeLessThanOrEqual(23);
});

/** The most lines that a file and a function may have. */
const MAX_FILE_LINES = 250;
const MAX_FUNCTION_LINES = 70;

/** Files that may have more than `MAX_FILE_LINES` lines. Each must consist of a single class. */
const LONG_FILES: readonly string[] = [];

test("no source file is too long", () => {
  const long = files.filter((file) => source(file).trimEnd().split("\n").length > MAX_FILE_LINES);
  expect(long).toEqual(LONG_FILES);
});

/**
 * Functions that may have more lines than the limit. `createRenewal` does the input and output of the browser kit: locks, channels,
 * requests and timers. Moving only what a tab knows out of it would add 116 compressed bytes to every page, whose limit is 3,500
 * (test/browser/size.test.ts).
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
