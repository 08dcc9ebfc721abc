/** `examples/sveltekit`, built and started by SvelteKit. */
import { expect, test } from "vitest";
import { compileProject } from "../support/compiler.ts";
import { describeApplication } from "./application-tests.ts";

describeApplication("sveltekit", (running) => {
  test("its types are right", async () => {
    expect(await compileProject(running().built.path)).toBe("");
  });
});
