/** Tests which folders of `src/` (rooms) may import from which others, and that no file and no function is too long. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { parseSync } from "rolldown/utils";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const SRC = join(ROOT, "src");

/**
 * Maps each folder of `src/` to the folders and files that its files may import, besides their own folder and packages. If several of these
 * folders contain a file, the innermost one counts. A permission for a folder does not cover a subfolder that has its own entry:
 * `observability` does not cover `observability/telemetry`. `server` and `main` may import everything.
 */
const WALLS: Record<string, readonly string[]> = {
  session: [],
  "platform/clock": [],
  "platform/files": [],
  "platform/net": [],
  "platform/http2": ["platform/clock/after-reading.ts"],
  signals: ["session"],
  "signals/status-list": ["session", "listener/exchange.ts"],
  tokens: ["session", "platform/files", "verifier/known-signatures.ts", "verifier/public-key.ts", "verifier/dpop"],
  store: ["session", "signals", "platform/clock", "platform/files", "config/redis-url.ts"],
  api: [
    "session",
    "signals",
    "platform/clock/after-reading.ts",
    "platform/net",
    "gen",
    "connect-http-routes",
    "config/cookie.ts",
    "config/spelling.ts",
    "verifier/bearer-token.ts",
    "verifier/dpop",
    // This module writes OpenAPI documents, such as that of the admin API.
    "protoc-gen-openapi/document.ts",
  ],
  "api/limits": ["session/ports.ts", "platform/clock/processor-time.ts", "platform/clock/turns.ts"],
  observability: ["session"],
  "observability/telemetry": [
    ...["observability/logger.ts", "observability/metrics.ts", "connect-opentelemetry", "config/observability.ts"],
    ...["listener/exchange.ts", "session/ports.ts"],
  ],
  listener: [
    "platform/clock",
    "platform/http2/end-session.ts",
    "platform/net/subnet.ts",
    "platform/net/proxy-trust.ts",
  ],
  workers: ["observability"],
  "connect-opentelemetry": [],
  "grpc-health": ["gen/grpc"],
  "grpc-reflection": ["gen/grpc"],
  http: ["http/routes", "http/codec", "http/call", "http/response", "http/node", "http/fetch", "http/upstream"],
  "http/routes": ["gen/google"],
  "http/codec": ["http/routes", "gen/google"],
  "http/call": ["http/routes", "http/codec"],
  "http/response": ["http/routes", "http/codec", "http/call", "gen/google"],
  "http/connect": ["http/call", "http/response"],
  "http/grpc": ["http/codec", "http/call", "http/response"],
  "http/upstream": ["http/call"],
  "http/client": ["http/routes", "http/codec"],
  "http/node": [
    ...["http/routes", "http/codec", "http/call", "http/response", "http/connect", "http/grpc"],
    ...["http/handler.ts", "http/options.ts"],
  ],
  "http/fetch": ["http/routes", "http/codec", "http/call", "http/response", "http/handler.ts", "http/options.ts"],
  // The gateway serves HTTP by means of the service's own `listener`, so that the project has only one implementation of an HTTP server.
  gateway: [
    ...["connect-http-routes", "listener", "platform/http2", "gen/grpc", "gen/google/rpc"],
    ...["observability/line-limit.ts", "observability/line-sink.ts", "platform/net"],
  ],
  "protoc-gen-http": ["connect-http-routes"],
  "protoc-gen-rules": ["api/rules", "gen/buf", "protoc-gen-http/options.ts"],
  "protoc-gen-openapi": ["connect-http-routes", "protoc-gen-http", "gen/google", "gen/buf"],
  verifier: ["gen", "platform/clock/after-reading.ts", "platform/clock/pause.ts", "platform/http2"],
  "forward-auth": ["gen/envoy", "listener", "platform/net/cookie-values.ts", "verifier/index.ts"],
  browser: [],
  "server-kit": ["platform/net"],
  client: ["browser/authorized-calls.ts"],
  config: ["platform/net/proxy-trust.ts"],
  "pages/console": ["session", "gen/auth", "platform/net", "listener"],
  "pages/reference": ["listener"],
  cli: [
    ...["cli/doctor/command.ts", "tokens", "config", "platform/files", "session", "gen/auth", "verifier/index.ts"],
    ...["store", "forward-auth/serve.ts"],
  ],
  "cli/doctor": [
    ...["cli/context.ts", "cli/output/text.ts", "tokens", "config", "platform/files", "store/embedded/check.ts"],
    ...["store/redis/examination.ts", "store/redis/owner.ts"],
  ],
};

/** The packages that only some folders may import. */
const KEEPERS: Record<string, readonly string[]> = {
  ioredis: ["store"],
  "node:sqlite": ["store"],
  "@bufbuild/protoplugin": ["api", "protoc-gen-http", "protoc-gen-openapi", "protoc-gen-rules"],
  // Only tests import protovalidate, to compare the rules in gen/ with an independent implementation.
  "@bufbuild/protovalidate": [],
  // Only the verifier imports jose, for runtimes without node:crypto. Tests use jose as an independent implementation.
  jose: ["verifier"],
  "structured-headers": ["api"],
  pino: ["observability"],
  "prom-client": ["observability"],
  "@opentelemetry/api": ["connect-opentelemetry", "observability/telemetry"],
  "@opentelemetry/context-async-hooks": ["observability/telemetry"],
  "@opentelemetry/core": ["observability/telemetry"],
  "@opentelemetry/resources": ["observability/telemetry"],
  "@opentelemetry/sdk-metrics": ["observability/telemetry"],
  "@opentelemetry/sdk-trace-base": ["observability/telemetry"],
  react: ["browser"],
  commander: ["cli"],
};

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name) && statSync(join(SRC, name)).isFile())
  .map((name) => name.replaceAll("\\", "/"));

const source = (file: string): string => readFileSync(join(SRC, file), "utf8");

/** Returns what a file imports, including what it loads later by `import()`. */
const importsOf = (file: string): string[] =>
  [/(?:^|\n)(?:import|export)[^;]*?from\s+"([^"]+)"/g, /\bimport(?:\(|\s+)"([^"]+)"/g].flatMap((form) =>
    [...source(file).matchAll(form)].map((match) => match[1] as string),
  );

/** Returns the path of an imported file from the root, without `src/`: `session/model.ts`, `gen/auth/v1/session_pb.ts`. */
const target = (file: string, specifier: string) =>
  !specifier.startsWith(".")
    ? specifier
    : relative(ROOT, join(dirname(join(SRC, file)), specifier)).replace(/^src\//, "");

/**
 * Returns whether an import is one of the project's own files: a relative path, or a file of the HTTP layer, which is a separate package
 * and is imported by its package name.
 */
const isOwn = (specifier: string) => /^(\.|connect-http-routes(\/|$))/.test(specifier);

const roomOf = (file: string) => (file.includes("/") ? (file.split("/")[0] as string) : "");

/** Returns the innermost folder named in `WALLS` that a file lies in, or an empty text. */
const folderOf = (file: string) =>
  FOLDERS.reduce((found, folder) => (isIn(file, folder) && folder.length > found.length ? folder : found), "");

const FOLDERS = Object.keys(WALLS);

const isIn = (file: string, folder: string) => file.startsWith(`${folder}/`);

/** Returns whether the permission to import `wall`, a folder or a file, covers the file `inside`. */
const opens = (wall: string, inside: string) =>
  inside === wall || (isIn(inside, wall) && !isIn(folderOf(inside), wall));

test("every folder is behind its walls", () => {
  const breaches: string[] = [];
  for (const file of files) {
    const room = roomOf(file);
    if (room === "server" || room === "") continue;
    const folder = folderOf(file);
    const allowed = WALLS[folder];
    expect(allowed, `the folder of ${file} has no walls: name it here`).toBeDefined();
    for (const specifier of importsOf(file)) {
      const inside = isOwn(specifier) ? target(file, specifier) : undefined;
      if (inside === undefined) {
        const noPackages = ["session", "browser", "server-kit"].includes(room);
        if (noPackages && file !== "browser/react.ts") breaches.push(`${file} → ${specifier}`);
        continue;
      }
      const ok = folderOf(inside) === folder || allowed?.some((wall) => opens(wall, inside));
      if (!ok) breaches.push(`${file} → ${inside}`);
    }
  }
  expect(breaches).toEqual([]);
});

test("generated code imports nothing from src but the types of routes and rules", () => {
  const gen = join(ROOT, "gen");
  const imports = readdirSync(gen, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) =>
      [...readFileSync(join(gen, name), "utf8").matchAll(/^import (.*?)\{[^}]*\} from "([^"]+)"/gms)]
        .map(([, kind, specifier]) => `${kind}${relative(ROOT, join(dirname(join(gen, name)), specifier as string))}`)
        .filter((line) => line.includes("src/")),
    );
  expect([...new Set(imports)].sort()).toEqual(["type src/api/rules/model.ts"]);
});

test("what talks to the world has one folder", () => {
  const breaches = files.flatMap((file) =>
    importsOf(file)
      .filter((specifier) => KEEPERS[specifier]?.every((keeper) => !isIn(file, keeper)))
      .map((specifier) => `${file} → ${specifier}`),
  );
  expect(breaches).toEqual([]);
});

test("only entry points touch the environment, and only config reads variables from it", () => {
  const uses = files.flatMap((file) =>
    [...source(file).matchAll(/process\.env\S*/g)].map(([use]) => `${file.replace(/^cli\/.*/, "cli")}: ${use}`),
  );
  expect([...new Set(uses)].sort()).toEqual(["main.ts: process.env);", "main.ts: process.env,"]);
});

test("no wall lets through what nobody imports", () => {
  const stale = Object.entries(WALLS).flatMap(([folder, walls]) => {
    const own = files.filter((file) => folderOf(file) === folder);
    const used = own.flatMap((file) => importsOf(file).map((specifier) => target(file, specifier)));
    return walls.filter((wall) => !used.some((inside) => opens(wall, inside))).map((wall) => `${folder} → ${wall}`);
  });
  expect(stale).toEqual([]);
});

/**
 * The largest number of pairs of rooms (folders of `src/`) of which one imports the other. `server` and `main` do not count, because they
 * import all rooms.
 */
const MAX_ARROWS = 62;

test("the rooms know few of each other", () => {
  const arrows = new Set(
    files
      .filter((file) => !["server", ""].includes(roomOf(file)))
      .flatMap((file) =>
        importsOf(file)
          .filter(isOwn)
          .map((specifier) => [roomOf(file), target(file, specifier).split("/")[0]])
          .filter(([from, to]) => from !== to)
          .map((rooms) => rooms.join(" → ")),
      ),
  );
  expect([...arrows].length).toBeLessThanOrEqual(MAX_ARROWS);
});

test("the composition root composes, and stays small", () => {
  const { length } = files.filter((file) => roomOf(file) === "server");
  expect(length).toBeLessThanOrEqual(22);
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
 * Functions that may have more lines than the limit. `createRenewal` does all input and output of the browser kit: locks, messages,
 * requests and timers. Splitting it would add 250 compressed bytes to every page, whose limit is 3,460 (test/browser/size.test.ts).
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
