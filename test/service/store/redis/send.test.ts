/** What the sender of commands leaves behind in memory. */
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const MEASUREMENT = fileURLToPath(import.meta.resolve("./promoted.ts"));

test("collections of the young generation free a command that has its reply", () => {
  const flags = ["--expose-gc", "--no-concurrent-recompilation"];
  const printed = execFileSync(process.execPath, [...flags, MEASUREMENT], { encoding: "utf8" });
  const { argumentBytes, median } = JSON.parse(printed);
  expect(median).toBeLessThan(argumentBytes / 2);
});
