/** What the sender of commands leaves behind in memory. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { scriptCall } from "../../../../../src/service/store/redis/connection/send.ts";
import { grownWithEachCall } from "../../../../support/old-generation.ts";

const MEASUREMENT = fileURLToPath(import.meta.resolve("./promoted.ts"));

test("collections of the young generation free a command that has its reply", () => {
  const flags = ["--expose-gc", "--no-concurrent-recompilation"];
  const printed = execFileSync(process.execPath, [...flags, MEASUREMENT], { encoding: "utf8" });
  const { argumentBytes, median } = JSON.parse(printed);
  expect(median).toBeLessThan(argumentBytes / 2);
});

test("the numbers of a command are not written into the old generation", () => {
  let next = 1_700_000_000_000;
  const call = (step: number) => {
    next += 5 * step;
    const args = ["sid", next, next + step, next + 2 * step];
    return scriptCall("0".repeat(40), ["key"], args, { from: next + 3 * step, until: next + 4 * step, shift: 0 });
  };
  const ofKnownNumbers = grownWithEachCall(() => call(0));
  // With String, each of the five new numbers would take 32 bytes there.
  expect(grownWithEachCall(() => call(1))).toBeLessThan(ofKnownNumbers + 32);
});
