import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch } from "../support/service.ts";
import { linkInstalled } from "./worker.ts";

test("a package of the tree is the one of the copy, so that what imports it by name sees mutants", () => {
  const [root, copy] = [join(scratch(), "root"), join(scratch(), "copy")];
  for (const [tree, text] of [
    [root, "original"],
    [copy, "mutant"],
  ] as const) {
    for (const name of ["plain", "scoped"]) {
      mkdirSync(join(tree, "src", name), { recursive: true });
      writeFileSync(join(tree, "src", name, "index.ts"), text);
    }
  }
  const installed = join(root, "node_modules");
  mkdirSync(join(installed, "@scope"), { recursive: true });
  mkdirSync(join(installed, "other"));
  writeFileSync(join(installed, "other", "index.ts"), "installed");
  symlinkSync("../src/plain", join(installed, "plain"));
  symlinkSync("../../src/scoped", join(installed, "@scope", "scoped"));
  linkInstalled(installed, join(copy, "node_modules"));
  const names = ["plain", "@scope/scoped", "other"];
  const read = names.map((name) => readFileSync(join(copy, "node_modules", name, "index.ts"), "utf8"));
  expect(read).toEqual(["mutant", "mutant", "installed"]);
});
