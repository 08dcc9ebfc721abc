import { expect, onTestFinished, test, vi } from "vitest";
import { afterReading } from "../../../src/platform/clock/after-reading.ts";

test("what has arrived is read within two turns, without a timer", async () => {
  vi.useFakeTimers({ toFake: ["setTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  await new Promise<void>((resolve) => afterReading(resolve));
  expect(vi.getTimerCount()).toBe(0);
});
