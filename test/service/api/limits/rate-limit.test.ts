/** Rate limits, at their exact limits, with a clock that the test moves. */
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  createRateLimit as createLimit,
  createRateLimits,
  NO_LIMIT,
} from "../../../../src/service/api/limits/rate-limit.ts";
import type { RateLimit } from "../../../../src/service/session/ports.ts";

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "performance"] });
});
afterEach(() => {
  vi.useRealTimers();
});

const createRateLimit = (options: Parameters<typeof createLimit>[0]) =>
  createLimit({ clock: () => performance.now(), ...options });
const takeMany = (limit: RateLimit, key: string, times: number): (number | undefined)[] =>
  Array.from({ length: times }, () => limit.take(key));
const refused = (waits: readonly (number | undefined)[]) => waits.filter((wait) => wait !== undefined).length;

describe.each([1, 2, 3, 4, 5, 100, 127, 128, 129, 300])("a limit of %i", (count) => {
  test("serves exactly so many, and refuses the next", () => {
    const limit = createRateLimit({ count, windowMs: 30_000 });
    const waits = takeMany(limit, "a", count + 1);
    expect(refused(waits.slice(0, count))).toBe(0);
    expect(waits[count]).toBe(30_000);
  });

  test("serves again after the wait that it named, and not a millisecond before", () => {
    const limit = createRateLimit({ count, windowMs: 30_000 });
    takeMany(limit, "a", count);
    vi.advanceTimersByTime(12_000);
    const wait = limit.take("a");
    expect(wait).toBe(18_000);
    vi.advanceTimersByTime(17_999);
    expect(limit.take("a")).toBe(1);
    vi.advanceTimersByTime(1);
    expect(limit.take("a")).toBeUndefined();
  });
});

test("a key at its limit takes nothing from others", () => {
  const limit = createRateLimit({ count: 8, windowMs: 1_000 });
  takeMany(limit, "a", 50);
  expect(refused(takeMany(limit, "b", 8))).toBe(0);
});

test("each of ten thousand keys in one window has its whole limit", () => {
  const limit = createRateLimit({ count: 8, windowMs: 1_000 });
  const keys = Array.from({ length: 10_000 }, (_, at) => `key ${at}`);
  for (const key of keys) takeMany(limit, key, 2);
  let over = 0;
  for (const key of keys) over += refused(takeMany(limit, key, 6));
  expect(over).toBe(0);
  for (const key of keys) expect(limit.take(key)).toBe(1_000);
});

test("what is given back can be taken again", () => {
  const limit = createRateLimit({ count: 8, windowMs: 1_000 });
  for (let time = 0; time < 100; time++) {
    expect(limit.take("a")).toBeUndefined();
    limit.giveBack("a");
  }
  takeMany(limit, "a", 8);
  for (let time = 0; time < 3; time++) limit.giveBack("a");
  expect(refused(takeMany(limit, "a", 3))).toBe(0);
  expect(limit.take("a")).toBe(1_000);
});

test("looking at a key counts nothing", () => {
  let now = 0;
  const limit = createRateLimit({ count: 2, windowMs: 1_000, clock: () => now });
  for (let time = 0; time < 5; time++) expect(limit.peek("a")).toBeUndefined();
  limit.take("a");
  expect(limit.peek("a")).toBeUndefined();
  limit.take("a");
  now = 400;
  expect([limit.peek("a"), limit.peek("b")]).toEqual([600, undefined]);
  now = 1_000;
  expect(limit.peek("a")).toBeUndefined();
});

test("giving back what nobody took allows no more", () => {
  const limit = createRateLimit({ count: 8, windowMs: 1_000 });
  for (let time = 0; time < 100; time++) limit.giveBack("a");
  expect(refused(takeMany(limit, "a", 9))).toBe(1);
  limit.take("b");
  for (let time = 0; time < 3; time++) limit.giveBack("b");
  expect(refused(takeMany(limit, "b", 9))).toBe(1);
});

test("a busy key stays limited, however many others come", () => {
  const limit = createRateLimit({ count: 1, windowMs: 1_000, maxKeys: 100 });
  limit.take("busy");
  for (let at = 0; at < 10_000; at++) {
    limit.take(`other ${at}`);
    if (at % 50 === 0) expect(limit.take("busy")).toBe(1_000);
  }
});

test("of more keys than are kept, those that were not seen recently are forgotten, and no others", () => {
  const limit = createRateLimit({ count: 1, windowMs: 1_000, maxKeys: 100 });
  const keys = Array.from({ length: 150 }, (_, at) => `key ${at}`);
  for (const key of keys) limit.take(key);
  expect(keys.slice(100).filter((key) => limit.take(key) === undefined)).toEqual([]);
  expect(limit.take("key 0")).toBeUndefined();
});

test("half of the keys that are kept are forgotten when one more comes", () => {
  const limit = createRateLimit({ count: 1, windowMs: 1_000, maxKeys: 100 });
  for (let at = 0; at < 100; at++) limit.take(`key ${at}`);
  expect(limit.peek("key 0")).toBe(1_000);
  limit.take("key 100");
  expect([limit.peek("key 49"), limit.peek("key 50")]).toEqual([undefined, 1_000]);
});

test("a wall clock that is set back makes nobody wait for longer than a window", () => {
  const limit = createRateLimit({ count: 1, windowMs: 1_000 });
  limit.take("a");
  vi.setSystemTime(Date.now() - 3_600_000);
  expect(limit.take("a")).toBe(1_000);
  vi.advanceTimersByTime(1_000);
  expect(limit.take("a")).toBeUndefined();
});

test("where there is no limit, nothing is refused", () => {
  expect(refused(takeMany(NO_LIMIT, "a", 1_000))).toBe(0);
});

describe("the limits of the service", () => {
  const rate = { count: 1, windowMs: 3_600_000 };
  const network = (address: string) => address.slice(0, 2);

  test("count refreshes and updates by session, bad credentials by the network of the caller, and logins by subject", () => {
    const limits = createRateLimits({ refresh: rate, failures: rate, create: rate, update: rate }, network);
    for (const limit of [limits.refreshLimit, limits.createLimit, limits.updateLimit, limits.failureLimit]) {
      expect(takeMany(limit, "aa1", 2)).toEqual([undefined, expect.any(Number)]);
    }
    expect(limits.refreshLimit.take("aa2")).toBeUndefined();
    expect(limits.createLimit.take("aa2")).toBeUndefined();
    expect(limits.failureLimit.take("aa2")).toBeDefined();
    expect(limits.failureLimit.take("bb1")).toBeUndefined();
    limits.failureLimit.giveBack("aa3");
    expect(limits.failureLimit.take("aa4")).toBeUndefined();
  });

  test("leave callers without an address alone, and are absent where nothing is configured", () => {
    const limits = createRateLimits(
      { refresh: undefined, failures: rate, create: undefined, update: undefined },
      network,
    );
    expect(refused(takeMany(limits.failureLimit, "", 100))).toBe(0);
    expect(refused(takeMany(limits.refreshLimit, "a", 100))).toBe(0);
    expect(refused(takeMany(limits.createLimit, "a", 100))).toBe(0);
  });
});
