/** The code of a start is not optimized; what runs afterwards is. */
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";

const PROGRAM = `
import { startLean } from "./src/platform/runtime/lean-start.ts";
await startLean(async () => {
  (function inStart() { for (let i = 0; i < 10_000_000; i++); })();
});
(function afterwards() { for (let i = 0; i < 10_000_000; i++); })();
`;

test("only what runs after a start is optimized", () => {
  const options = ["--trace-opt", "--no-maglev", "--no-concurrent-recompilation", "--input-type=module"];
  const output = execFileSync(process.execPath, [...options, "-e", PROGRAM], { encoding: "utf8" });
  expect(output).toMatch(/completed compiling .*afterwards/);
  expect(output).not.toContain("inStart");
});
