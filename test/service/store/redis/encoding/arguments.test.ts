/** The scripts name their arguments as the types of their callers do. The compiler checks the callers, and this test the scripts. */
import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

const STORE = new URL("../../../../../src/service/store/redis/", import.meta.url);
const read = (name: string) => readFileSync(new URL(name, STORE), "utf8");

/** `markerLifeMs` is `marker_life` in a script. */
const inLua = (label: string) => label.replace(/Ms$/, "").replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** The labels of each tuple in arguments.ts, by script. */
const typed = new Map(
  [...read("encoding/arguments.ts").matchAll(/^ {2}(\w+): (.+?);$/gms)].map(([, verb = "", tuple = ""]) => [
    verb,
    [...tuple.matchAll(/(\w+): /g)].map(([, label = ""]) => inLua(label)),
  ]),
);

/** Returns the names that a script gives its arguments at its beginning; none if it takes them one by one. */
function namesIn(script: string): readonly string[] {
  const [, names = ""] = /^local ([^=]+?)\s*= unpack\(ARGV, 1, ARGC\)$/m.exec(script.replaceAll(/ *--.*$/gm, "")) ?? [];
  return names.split(/,\s*/).filter(Boolean);
}

test("each script that names its arguments names them as arguments.ts does", () => {
  const verbs = globSync("*.lua", { cwd: new URL("lua/", STORE) }).map((file) => file.replace(".lua", ""));
  const named = verbs.map((verb) => [verb, namesIn(read(`lua/${verb}.lua`))] as const);
  const single = ["unbind", ["sid"]] as const;
  expect([...typed].toSorted()).toEqual([...named.filter(([, names]) => names.length > 0), single].toSorted());
});
