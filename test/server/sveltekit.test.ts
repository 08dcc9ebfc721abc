/** `examples/sveltekit`, built and started by SvelteKit. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { describeApplication } from "./application-tests.ts";

describeApplication("sveltekit", (running) => {
  test("its types are right", async () => {
    const project = running().built.path;
    const compiled = await promisify(execFile)("tsc", ["-p", project]).catch((error: { stdout: string }) => error);
    expect(compiled.stdout).toBe("");
  });
});
