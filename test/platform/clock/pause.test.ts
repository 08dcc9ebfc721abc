import { spawnSync } from "node:child_process";
import { getEventListeners } from "node:events";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { pause } from "../../../src/platform/clock/pause.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** Returns a function that reports whether a promise has resolved. */
function watch(promise: Promise<void>): () => Promise<boolean> {
  let isOver = false;
  void promise.then(() => {
    isOver = true;
  });
  return async () => {
    await vi.advanceTimersByTimeAsync(0);
    return isOver;
  };
}

test("a pause ends after its time, and not before", async () => {
  const { signal } = new AbortController();
  const isOver = watch(pause(100, signal));
  await vi.advanceTimersByTimeAsync(99);
  expect(await isOver()).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await isOver()).toBe(true);
  expect(getEventListeners(signal, "abort")).toEqual([]);
});

test("a pause ends at once when its signal is aborted, and leaves no timer", async () => {
  const over = new AbortController();
  const isOver = watch(pause(100, over.signal));
  expect(await isOver()).toBe(false);
  over.abort();
  expect(await isOver()).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test("a signal that is aborted already allows no pause", async () => {
  expect(await watch(pause(100, AbortSignal.abort()))()).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test("a pause does not keep a process running", () => {
  const program = `import { pause } from ${JSON.stringify(import.meta.resolve("../../../src/platform/clock/pause.ts"))}; void pause(2 ** 30);`;
  expect(spawnSync(process.execPath, ["--input-type=module", "-e", program]).status).toBe(0);
});
