import { expect, onTestFinished, test, vi } from "vitest";
import { afterReading } from "../../../src/platform/clock/after-reading.ts";

test("what has arrived is read within two turns, without a timer", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await new Promise<void>((resolve) => afterReading(resolve));
  expect(vi.getTimerCount()).toBe(0);
});

test.each([
  ["lacks it", undefined],
  [
    "only throws",
    () => {
      throw new Error("A Node.js API is used (setImmediate) which is not supported in the Edge Runtime.");
    },
  ],
])("a timer is in the place of setImmediate in a runtime that %s", async (_, setImmediate) => {
  vi.stubGlobal("setImmediate", setImmediate);
  onTestFinished(() => void vi.unstubAllGlobals());
  await new Promise<void>((resolve) => afterReading(resolve));
});
