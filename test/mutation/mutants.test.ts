/** The mutators make the mistakes that they are meant to make, and only in code that has behaviour. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { applied } from "./change.ts";
import { EQUIVALENT } from "./equivalent.ts";
import { luaMutants } from "./lua-mutants.ts";
import { ROOMS, roomOf } from "./rooms.ts";
import { typescriptMutants } from "./typescript-mutants.ts";

const ROOT = join(import.meta.dirname, "../..");
const mutantsOf = (text: string) => typescriptMutants(text, "a.ts").map((change) => applied(text, change));

test.each([
  ["if (a < b) f();", ["if (!(a < b)) f();", "if (a <= b) f();", "if (a < b) ;"]],
  ["const x = a && b;", ["const x = (a || b);"]],
  ["const x = a ?? b;", ["const x = a;"]],
  ["const x = !a;", ["const x = (a);"]],
  ["const x = 60_000;", ["const x = 0;"]],
  ["const x = 3;", ["const x = 4;"]],
  ['const x = "a";', ['const x = "";']],
  ["const x = /^a$/;", ["const x = /a$/;", "const x = /^a/;"]],
  ["const x = Math.min(a, b);", ["const x = Math.max(a, b);"]],
  ["function f(): number { return 1; }", ["function f(): number { return; }", "function f(): number { return 2; }"]],
  ["function f() { return undefined; }", []],
  ["async function f() { await g(); }", ["async function f() { ; }", "async function f() { (g()); }"]],
])("TypeScript: %s", (text, mutants) => {
  expect(mutantsOf(text).sort()).toEqual([...mutants].sort());
});

test("TypeScript: types, imports and the texts of exceptions are left alone", () => {
  expect(
    mutantsOf('import a from "b"; type A = "x" | 1; interface B { c: "d" } const e: "f" | undefined = g;'),
  ).toEqual([]);
  expect(mutantsOf('const e = new TypeError("text");')).toEqual([]);
});

test("TypeScript: prose and classes of styles are left alone, other attributes are not", () => {
  expect(mutantsOf("const x = 'run the service'; const y = `it is not there`;")).toEqual([]);
  const page = 'const x = <p class="quiet" id="title">Text</p>;';
  const mutants = typescriptMutants(page, "a.tsx").map((change) => applied(page, change));
  expect(mutants).toEqual(['const x = <p class="quiet" id="">Text</p>;']);
});

test("Lua: operators, constants and statements, but no comments and no strings", () => {
  const text = "local a = b <= 2 and c -- not 1\nredis.call('SET', 'a and b')\nif not a then return 1 end\n";
  expect(
    luaMutants(text)
      .map((change) => applied(text, change))
      .sort(),
  ).toEqual(
    [
      text.replace("<=", "<"),
      text.replace("b <= 2", "b <= 3"),
      text.replace("2 and", "2 or"),
      text.replace("redis.call('SET', 'a and b')", ""),
      text.replace("if not a", "if a"),
      text.replace("return 1", "return 2"),
    ].sort(),
  );
});

test("every stage names tests that exist", () => {
  const named = ROOMS.flatMap(({ stages }) => stages.flat());
  expect(named.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
});

test("every source file belongs to a room", () => {
  const files = readdirSync(join(ROOT, "src"), { recursive: true, encoding: "utf8" }).map((name) => `src/${name}`);
  const sources = files.filter((file) => /\.(?:tsx?|lua)$/.test(file) && file !== "src/pages/console/page/main.js");
  expect(sources.filter((file) => roomOf(file) === undefined)).toEqual([]);
});

test.each(EQUIVALENT)("an excused mutant is still in the source: $file $source", ({ file, source, before, reason }) => {
  const lines = readFileSync(join(ROOT, file), "utf8").split("\n");
  expect(lines.find((line) => line.trim() === source)).toContain(before);
  expect(reason.length).toBeGreaterThan(20);
});
