/** The verifier and the HTTP layer in workerd, the runtime of Cloudflare's Workers. */
import { expect, test } from "vitest";
import { describeRuntime } from "./must-hold.ts";
import { startWorkerd, worker } from "./workerd.ts";

test("the bundle of a worker imports nothing of Node", () => {
  expect(worker.imports).toEqual([]);
});

describeRuntime({
  name: "workerd",
  start: async ({ adminUrl }) => ({ running: await startWorkerd(), adminUrl }),
  live: { pollIntervalMs: 20 },
});
