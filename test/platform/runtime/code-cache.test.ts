/** A process compiles what no earlier one has stored, and stores functions that were compiled late, too. */
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, test } from "vitest";
import { scratch } from "../../support/service.ts";

const LOADER = join(import.meta.dirname, "../../../src/platform/runtime/code-cache.ts");
/** V8 compiles this function when it is called. It is so large that its code is noticed in the size of a file. */
const LATE = `exports.late = (a) => { ${Array.from({ length: 200 }, (_, i) => `a = { n: a.n * ${i} + ${i} };`).join(" ")} return a; };`;

let directory: string;
let cache: string;
beforeEach(() => {
  directory = scratch();
  cache = join(directory, "cache/code");
  writeModules("first");
});

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
    const main = await startLean(async () => createCachedLoad(${JSON.stringify(path)})(${JSON.stringify(join(directory, "main.cjs"))}));
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
  const start = readFileSync(cache);
  run("main.word");
  expect(readFileSync(cache).equals(start)).toBe(true);

  run("main.called().n");
  const called = readFileSync(cache);
  expect(called.length).toBeGreaterThan(start.length + 1000);
  run("main.word");
  expect(readFileSync(cache).equals(called)).toBe(true);
});

test("code of an older source of the same length is not used", () => {
  run("main.called().n");
  writeModules("other");
  expect(run("main.word")).toBe("other");
});

test.each([
  ["is for other flags of V8", (bytes: Buffer) => bytes, ["--no-opt"]],
  ["was cut", (bytes: Buffer) => bytes.subarray(0, -100), []],
  ["was damaged", (bytes: Buffer) => bytes.fill(0, 2000, 3000), []],
  ["is empty", () => Buffer.of(), []],
])("code that %s is replaced", (_, damage, flags) => {
  expect(run("main.called().n")).toBe(run("main.called().n", { flags }));
  const damaged = damage(readFileSync(cache));
  writeFileSync(cache, damaged);
  expect(run("main.word")).toBe("first");
  const written = readFileSync(cache);
  expect(written.equals(damaged)).toBe(false);
  run("main.word");
  expect(readFileSync(cache).equals(written)).toBe(true);
});

test("nothing is stored where that is impossible", () => {
  const file = join(directory, "file");
  writeFileSync(file, "");
  expect(run("main.word", { path: join(file, "code") })).toBe("first");
  mkdirSync(cache, { recursive: true });
  expect(run("main.word")).toBe("first");
});
