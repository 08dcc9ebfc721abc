/** Rate limits, exactly at their edges, with a clock that the test moves. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { createRateLimit, NO_LIMIT } from "../../src/limits/rate-limit.ts";
import type { RateLimit } from "../../src/session/ports.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

async function takeMany(limit: RateLimit, key: string, times: number): Promise<(number | undefined)[]> {
  const waits: (number | undefined)[] = [];
  for (let time = 0; time < times; time++) waits.push(await limit.take(key));
  return waits;
}
const refused = (waits: readonly (number | undefined)[]) => waits.filter((wait) => wait !== undefined).length;

describe.each([1, 2, 3, 4, 5, 100, 127, 128, 129, 300])("a limit of %i", (count) => {
  test("serves exactly so many, and refuses the next", async () => {
    const limit = createRateLimit({ count, windowMs: 30_000, seed: 1 });
    const waits = await takeMany(limit, "a", count + 1);
    expect(refused(waits.slice(0, count))).toBe(0);
    expect(waits[count]).toBe(30_000);
  });

  test("serves again after the wait that it named, and not a millisecond before", async () => {
    const limit = createRateLimit({ count, windowMs: 30_000, seed: 1 });
    await takeMany(limit, "a", count);
    vi.advanceTimersByTime(12_000);
    const wait = await limit.take("a");
    expect(wait).toBe(18_000);
    vi.advanceTimersByTime(17_999);
    expect(await limit.take("a")).toBe(1);
    vi.advanceTimersByTime(1);
    expect(await limit.take("a")).toBeUndefined();
  });
});

test("a key at its limit takes nothing from others", async () => {
  const limit = createRateLimit({ count: 8, windowMs: 1_000, seed: 1 });
  await takeMany(limit, "a", 50);
  expect(refused(await takeMany(limit, "b", 8))).toBe(0);
});

test("of ten thousand keys in one window, each has most of its limit, whichever keys share its slot", async () => {
  const limit = createRateLimit({ count: 8, windowMs: 1_000, seed: 7 });
  const keys = Array.from({ length: 10_000 }, (_, at) => `key ${at}`);
  for (const key of keys) await takeMany(limit, key, 2);
  let over = 0;
  for (const key of keys) over += refused(await takeMany(limit, key, 4));
  expect(over).toBe(0);
});

test("the first quarter is accepted synchronously, without a promise", () => {
  const limit = createRateLimit({ count: 300, windowMs: 1_000, seed: 1 });
  for (let time = 0; time < 32; time++) expect(limit.take("a")).toBeUndefined();
  expect(limit.take("a")).toBeInstanceOf(Promise);
});

test("what is given back can be taken again", async () => {
  const limit = createRateLimit({ count: 8, windowMs: 1_000, seed: 1 });
  for (let time = 0; time < 100; time++) {
    expect(await limit.take("a")).toBeUndefined();
    limit.giveBack("a");
  }
  await takeMany(limit, "a", 8);
  for (let time = 0; time < 3; time++) limit.giveBack("a");
  await Promise.resolve();
  await Promise.resolve();
  expect(refused(await takeMany(limit, "a", 3))).toBe(0);
  expect(await limit.take("a")).toBe(1_000);
});

test("giving back what nobody took allows no more", async () => {
  const limit = createRateLimit({ count: 8, windowMs: 1_000, seed: 1 });
  for (let time = 0; time < 100; time++) limit.giveBack("a");
  expect(refused(await takeMany(limit, "a", 9))).toBe(1);
});

test("beyond the number of keys that are kept nobody is limited, and those that are kept stay limited", async () => {
  const limit = createRateLimit({ count: 1, windowMs: 1_000, seed: 1, maxKeys: 3 });
  for (const key of ["a", "b", "c"]) expect(refused(await takeMany(limit, key, 2))).toBe(1);
  expect(refused(await takeMany(limit, "d", 100))).toBe(0);
  expect(refused(await takeMany(limit, "a", 1))).toBe(1);
  expect(vi.getTimerCount()).toBe(3);
});

test("the memory of old keys is free for new ones, two windows later at most", async () => {
  const limit = createRateLimit({ count: 1, windowMs: 1_000, seed: 1, maxKeys: 3 });
  for (const key of ["a", "b", "c"]) await limit.take(key);
  vi.advanceTimersByTime(2_000);
  expect(vi.getTimerCount()).toBe(0);
  expect(refused(await takeMany(limit, "d", 2))).toBe(1);
});

test("keys count in their window and in the next, to the millisecond", async () => {
  const limit = createRateLimit({ count: 1, windowMs: 1_000, seed: 1, maxKeys: 3 });
  for (const key of ["a", "b", "c"]) await limit.take(key);
  vi.advanceTimersByTime(1_000);
  expect(refused(await takeMany(limit, "d", 2))).toBe(0);
  vi.advanceTimersByTime(999);
  expect(refused(await takeMany(limit, "e", 2))).toBe(0);
  vi.advanceTimersByTime(1);
  expect(refused(await takeMany(limit, "f", 2))).toBe(1);
});

test("a wall clock that is set back makes nobody wait for longer than a window", async () => {
  const limit = createRateLimit({ count: 1, windowMs: 1_000, seed: 1 });
  await limit.take("a");
  vi.setSystemTime(Date.now() - 3_600_000);
  expect(await limit.take("a")).toBe(1_000);
  vi.advanceTimersByTime(1_000);
  expect(await limit.take("a")).toBeUndefined();
});

test("trouble of the limiter itself refuses nobody", async () => {
  const limit = createRateLimit({ count: 1, windowMs: 1_000, seed: 1 });
  await limit.take("a");
  vi.spyOn(Date, "now").mockImplementation(() => {
    throw new Error("no clock");
  });
  expect(await limit.take("a")).toBeUndefined();
  vi.restoreAllMocks();
});

test("where there is no limit, nothing is refused", async () => {
  expect(refused(await takeMany(NO_LIMIT, "a", 1_000))).toBe(0);
});
