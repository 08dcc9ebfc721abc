/** The scripts name their arguments as the types of their callers do. The compiler checks the callers, and this test the scripts. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const STORE = new URL("../../../../../src/service/store/redis/", import.meta.url);
const read = (name: string) => readFileSync(new URL(name, STORE), "utf8");

/** `markerLifeMs` is `marker_life` in a script. */
const inLua = (label: string) => label.replace(/Ms$/, "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The labels of each tuple in arguments.ts, by script, but for those of a list of any length at its end. */
const typed = new Map(
  [...read("encoding/arguments.ts").matchAll(/^ {2}(\w+): (.+?);$/gms)].map(([, verb = "", tuple = ""]) => [
    verb,
    [...tuple.matchAll(/(?<![.\w])(\w+): /g)].map(([, label = ""]) => inLua(label)),
  ]),
);
const verbs = globSync("*.lua", { cwd: new URL("lua/", STORE) }).map((file) => file.replace(".lua", ""));

test("every script has its arguments in arguments.ts", () => {
  // sync.lua is called without a deadline (script-runner.ts).
  expect([...typed.keys(), "sync"].toSorted()).toEqual(verbs.toSorted());
});

test.each([...typed])("%s names its arguments as arguments.ts does, or has as many", (verb, labels) => {
  const script = read(`lua/${verb}.lua`).replaceAll(/ *--.*$/gm, "");
  const [, names] = /^local ([^=]+?)\s*= unpack\(ARGV, 1, ARGC\)$/m.exec(script) ?? [];
  if (names !== undefined) expect(names.split(/,\s*/)).toEqual(labels);
  else {
    const used = Array.from(script.matchAll(/\bARGV\[(\d+)\]/g), ([, at]) => Number(at));
    expect(Math.max(0, ...used)).toBe(labels.length);
  }
});
