/** A process compiles what no earlier one has stored, and stores functions that were compiled late, too. */
import { spawnSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import { crc32 } from "node:zlib";
import { beforeEach, expect, onTestFinished, test } from "vitest";
import { scratch } from "../../support/service.ts";

const LOADER = join(import.meta.dirname, "../../../src/platform/runtime/code-cache.ts");
/** V8 compiles this function when it is called. It is so large that its code is noticed in the size of a file. */
const LATE = `exports.late = (a) => { ${Array.from({ length: 200 }, (_, i) => `a = { n: a.n * ${i} + ${i} };`).join(" ")} return a; };`;

let directory: string;
let cache: string;
beforeEach(() => {
  directory = scratch();
  cache = join(directory, "cache");
  writeModules("first");
});

/** Returns the path of the only file with code. */
function stored(): string {
  const files = readdirSync(cache);
  expect(files).toHaveLength(1);
  return join(cache, files[0] as string);
}

function writeModules(word: string): void {
  writeFileSync(
    join(directory, "main.cjs"),
    `const { late, word } = require("./other.cjs"); const { sep } = require("node:path");
     exports.called = () => late({ n: 1 }); exports.word = word; exports.sep = sep; exports.at = __filename; // no newline`,
  );
  writeFileSync(
    join(directory, "other.cjs"),
    `${LATE} exports.word = "${word}"; exports.main = require("./main.cjs");`,
  );
}

/** Loads the module in a new process, and returns what the expression gives there. */
function run(expression: string, { flags = [] as string[], path = cache } = {}): unknown {
  const program = `
    import { createCachedLoad } from ${JSON.stringify(LOADER)};
    import { startLean } from ${JSON.stringify(join(LOADER, "../lean-start.ts"))};
    let main;
    await startLean(async () => {
      main = createCachedLoad(${JSON.stringify(path)})(${JSON.stringify(join(directory, "main.cjs"))});
    });
    console.log(JSON.stringify(await (${expression})));`;
  const { status, stdout, stderr } = spawnSync(process.execPath, [...flags, "--input-type=module", "-e", program]);
  expect(stderr.toString()).toBe("");
  expect(status).toBe(0);
  return JSON.parse(stdout.toString());
}

test("modules are those of CommonJS: names of files, circles, modules of Node", () => {
  for (const _ of ["compiled", "stored"])
    expect(run("[main.word, main.sep, main.at]")).toEqual(["first", "/", join(directory, "main.cjs")]);
});

test("stored code is replaced only by more code", () => {
  run("main.word");
  const start = readFileSync(stored());
  run("main.word");
  expect(readFileSync(stored()).equals(start)).toBe(true);

  run("main.called().n");
  const called = readFileSync(stored());
  expect(called.length).toBeGreaterThan(start.length + 1000);
  run("main.word");
  expect(readFileSync(stored()).equals(called)).toBe(true);
});

test("code of an older source of the same length is not used", () => {
  run("main.called().n");
  writeModules("other");
  expect(run("main.word")).toBe("other");
});

test.each([
  ["was cut", (bytes: Buffer) => bytes.subarray(0, -100)],
  ["was damaged", (bytes: Buffer) => bytes.fill(0, 2000, 3000)],
  ["is empty", () => Buffer.of()],
])("code that %s is replaced", (_, damage) => {
  run("main.called().n");
  const damaged = damage(readFileSync(stored()));
  writeFileSync(stored(), damaged);
  expect(run("main.word")).toBe("first");
  const written = readFileSync(stored());
  expect(written.equals(damaged)).toBe(false);
  run("main.word");
  expect(readFileSync(stored()).equals(written)).toBe(true);
});

test("other flags of V8 have code of their own", () => {
  run("main.word");
  const usual = readFileSync(stored());
  run("main.word", { flags: ["--no-opt"] });
  expect(readdirSync(cache)).toHaveLength(2);
  run("main.word");
  expect(readdirSync(cache).map((name) => readFileSync(join(cache, name)).equals(usual))).toContain(true);
});

test("nothing is stored where that is impossible", () => {
  const file = join(directory, "file");
  writeFileSync(file, "");
  expect(run("main.word", { path: join(file, "code") })).toBe("first");
  run("main.word");
  const path = stored();
  rmSync(path);
  mkdirSync(path);
  expect(run("main.word")).toBe("first");
  expect(readdirSync(cache)).toHaveLength(1);
});

/** Stores code that says "other" where the module says "first". */
function storeForeignCode(): void {
  writeModules("other");
  run("main.called().n");
  const foreign = deserialize(readFileSync(stored()).subarray(4)) as Map<string, { source: number }>;
  writeModules("first");
  run("main.word");
  const own = deserialize(readFileSync(stored()).subarray(4)) as Map<string, { source: number }>;
  for (const [name, code] of foreign) code.source = own.get(name)?.source ?? 0;
  const rest = serialize(foreign);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32LE(crc32(rest));
  writeFileSync(stored(), Buffer.concat([checksum, rest]));
}

test("code is run only from files that nobody else can have written", () => {
  storeForeignCode();
  // This is what must not happen.
  expect(run("main.word")).toBe("other");
  storeForeignCode();
  chmodSync(stored(), 0o664);
  expect(run("main.word")).toBe("first");
  expect(statSync(stored()).mode & 0o777).toBe(0o644);
  // Only root can give a file to another user; CI runs as root.
  if (process.geteuid?.() !== 0) return;
  storeForeignCode();
  chownSync(stored(), 65_534, 65_534);
  expect(run("main.word")).toBe("first");
});

test("a user who lets others write everywhere does not let them write code", () => {
  const before = process.umask(0);
  onTestFinished(() => void process.umask(before));
  run("main.word");
  expect([cache, stored()].map((path) => (statSync(path).mode & 0o777).toString(8))).toEqual(["755", "644"]);
});
