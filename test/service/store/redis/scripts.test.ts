/** The scripts say where each name comes from: a file of lua/ uses what it defines itself, what it includes by name, and Lua's own names. */
import { globSync } from "node:fs";
import { expect, test } from "vitest";
import { KEY } from "../../../../src/service/store/redis/keys.ts";
import { readLua } from "../../../../src/service/store/redis/lua-files.ts";
import { loadScripts } from "../../../../src/service/store/redis/scripts.ts";

const LUA = new URL("../../../../src/service/store/redis/lua/", import.meta.url);
const named = (pattern: string) => globSync(pattern, { cwd: LUA }).map((file) => file.replace(/\.lua$/, ""));
const files = named("**/*.lua").sort();

/** A file of lua/ without its comments and texts. */
const codeOf = (name: string) => readLua(name).replaceAll(/'(?:\\.|[^'\\\n])*'|--.*/g, "''");

/** What a library offers: the locals outside of any block. */
const definitions = (name: string) =>
  [...codeOf(name).matchAll(/^local (?:function (\w+)|([^=\n]+?) =)/gm)].flatMap(([, one, several = ""]) =>
    one === undefined ? several.split(", ") : [one],
  );
const offered = new Map(named("lib/*.lua").map((name) => [name, new Set(definitions(name))]));

/** All names that a file declares anywhere, those of parameters and loops included. */
function declared(code: string): Set<string> {
  const lists = [
    ...code.matchAll(/\blocal (?!function)([\w,\s]+?)\s*(?==|;|\n(?!\s*[\w=]+,?))/g),
    ...code.matchAll(/\bfunction\b[^(]*\(([^)]*)\)/g),
    ...code.matchAll(/\bfor ([\w, ]+?) (?:in|=)/g),
    ...code.matchAll(/\blocal function (\w+)/g),
  ];
  return new Set(lists.flatMap(([, names = ""]) => names.split(/[,\s]+/)));
}

const included = (name: string) =>
  [...readLua(name).matchAll(/^ *-- @include (lib\/\w+)\.lua(?:: (.*))?$/gm)].map(([, library = "", names = ""]) => ({
    library,
    names: names.split(", ").filter(Boolean),
  }));

test.each(files)("%s names what it uses of other files, and nothing else", (name) => {
  const used = new Set(codeOf(name).match(/(?<![\w.:])[A-Za-z_]\w*/g));
  const own = declared(codeOf(name));
  const listed = included(name).flatMap(({ library, names }) => names.map((one) => ({ library, one })));
  expect(listed.filter(({ library, one }) => !offered.get(library)?.has(one) || !used.has(one))).toEqual([]);
  const known = new Set(listed.map(({ one }) => one));
  const foreign = [...offered.values()].flatMap((names) => [...names]).filter((one) => used.has(one));
  expect(foreign.filter((one) => !own.has(one) && !known.has(one))).toEqual([]);
});

test("two libraries do not offer the same name", () => {
  const all = [...offered.values()].flatMap((names) => [...names]);
  expect(all).toEqual([...new Set(all)]);
});

test("every script begins with the step that refuses it when it is late, but that which reads the clock", () => {
  const others = Object.keys(loadScripts()).filter((name) => included(name)[0]?.library !== "lib/deadline");
  expect(others).toEqual(["sync"]);
});

test("no line that includes a file is left", () => {
  for (const { text } of Object.values(loadScripts())) expect(text).not.toMatch(/^\s*-- @include/m);
});

test("scripts use the names of all keys, and no others", () => {
  const used = new Set(files.flatMap((name) => [...codeOf(name).matchAll(/\bKEY\.(\w+)/g)].map(([, key]) => key)));
  // claim_owner.lua gets the whole key of the owner, before the deployment is known to be the right one.
  expect(Object.keys(KEY).sort()).toEqual([...used, "owner"].sort());
});
