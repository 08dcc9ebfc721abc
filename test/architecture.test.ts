/** The walls between the rooms, and that gen/ is what the contracts say. */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { expect, test } from "vitest";

const ROOT = join(import.meta.dirname, "..");
const SRC = join(ROOT, "src");

/** Which rooms a room may import, besides itself and packages. `server` and `main` may import all. */
const WALLS: Record<string, readonly string[]> = {
  session: [],
  files: [],
  tokens: ["session", "files"],
  store: ["session", "config/redis-url.ts"],
  api: ["session", "gen", "http", "config/cookie.ts", "verifier/bearer-token.ts"],
  observability: ["session"],
  listener: [],
  limits: ["session"],
  http: ["gen/google", "gen/grpc"],
  "protoc-gen-http": ["http", "gen/google"],
  "protoc-gen-openapi": ["http", "protoc-gen-http", "gen/google", "gen/buf"],
  verifier: ["gen"],
  browser: [],
  config: [],
  cli: ["tokens", "config", "files", "session"],
};

/** Which folders inside the HTTP layer a folder may import, besides itself. Files on top may import all of them. */
const HTTP_WALLS: Record<string, readonly string[]> = {
  routes: [],
  codec: ["routes"],
  call: ["routes", "codec"],
  response: ["routes", "codec", "call"],
  upstream: ["call"],
  gateway: ["upstream", "routes", "codec", "call", "response", "node", "handler.ts", "options.ts"],
  client: ["routes", "codec"],
  node: ["codec", "call", "response", "handler.ts", "options.ts"],
  fetch: ["codec", "call", "response", "handler.ts", "options.ts"],
};

/** Packages that one room alone may use. */
const KEEPERS: Record<string, readonly string[]> = {
  ioredis: ["store"],
  "node:sqlite": ["store"],
  // The independent oracle of token tests: at runtime, node:crypto does what is needed of it.
  jose: [],
  "rate-limiter-flexible": ["limits"],
  "rate-limiter-flexible/lib/RateLimiterMemory.js": ["limits"],
  pino: ["observability"],
  "prom-client": ["observability"],
  react: ["browser"],
};

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((name) => name.endsWith(".ts") && statSync(join(SRC, name)).isFile())
  .map((name) => name.replaceAll("\\", "/"));

const importsOf = (file: string): string[] =>
  [...readFileSync(join(SRC, file), "utf8").matchAll(/(?:^|\n)(?:import|export)[^;]*?from\s+"([^"]+)"/g)].map(
    (match) => match[1] as string,
  );

/** A relative import as a path from the root without `src/`: `session/words.ts`, `gen/auth/v1/session_pb.ts`. */
const target = (file: string, specifier: string) =>
  relative(ROOT, join(dirname(join(SRC, file)), specifier)).replace(/^src\//, "");

const roomOf = (file: string) => (file.includes("/") ? (file.split("/")[0] as string) : "");

test("every room is behind its walls", () => {
  const breaches: string[] = [];
  for (const file of files) {
    const room = roomOf(file);
    if (room === "server" || room === "") continue;
    const allowed = WALLS[room];
    expect(allowed, `the room ${room} has no walls: name it here`).toBeDefined();
    for (const specifier of importsOf(file)) {
      const inside = specifier.startsWith(".") ? target(file, specifier) : undefined;
      if (inside === undefined) {
        const noPackages = room === "session" || room === "browser";
        if (noPackages && file !== "browser/react.ts") breaches.push(`${file} → ${specifier}`);
        continue;
      }
      const ok = roomOf(inside) === room || allowed?.some((wall) => inside === wall || inside.startsWith(`${wall}/`));
      if (!ok) breaches.push(`${file} → ${inside}`);
    }
  }
  expect(breaches).toEqual([]);
});

test("every folder of the HTTP layer is behind its walls", () => {
  const breaches: string[] = [];
  for (const file of files.filter((name) => /^http\/.+\//.test(name))) {
    const folder = file.split("/")[1] as string;
    const allowed = HTTP_WALLS[folder];
    expect(allowed, `the folder http/${folder} has no walls: name it here`).toBeDefined();
    for (const specifier of importsOf(file).filter((name) => name.startsWith("."))) {
      const inside = target(file, specifier);
      if (/^gen\/(?:google|grpc)\//.test(inside)) continue;
      const ok = [folder, ...(allowed ?? [])].includes(inside.split("/")[1] ?? "");
      if (!ok || roomOf(inside) !== "http") breaches.push(`${file} → ${inside}`);
    }
  }
  expect(breaches).toEqual([]);
});

test("generated code imports nothing from src but the types of the HTTP layer's routes", () => {
  const gen = join(ROOT, "gen");
  const imports = readdirSync(gen, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .flatMap((name) =>
      [...readFileSync(join(gen, name), "utf8").matchAll(/^import (.*?)\{[^}]*\} from "([^"]+)"/gms)]
        .map(([, kind, specifier]) => `${kind}${relative(ROOT, join(dirname(join(gen, name)), specifier as string))}`)
        .filter((line) => line.includes("src/")),
    );
  expect([...new Set(imports)]).toEqual(["type src/http/routes/model.ts"]);
});

test("what talks to the world has one room", () => {
  const breaches = files.flatMap((file) =>
    importsOf(file)
      .filter((specifier) => specifier in KEEPERS && !KEEPERS[specifier]?.includes(roomOf(file)))
      .map((specifier) => `${file} → ${specifier}`),
  );
  expect(breaches).toEqual([]);
});

test("only entry points read the environment", () => {
  const readers = files.filter((file) => /process\.env/.test(readFileSync(join(SRC, file), "utf8")));
  expect(readers.filter((file) => file.includes("/") && !file.startsWith("cli/"))).toEqual([]);
});

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
