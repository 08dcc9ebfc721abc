import fc from "fast-check";
import { expect, test } from "vitest";
import { RecentlyUsed } from "../../../src/platform/caches/recently-used.ts";

test("never holds more than its size, and returns the last value of a key", () => {
  const step = fc.record({ key: fc.integer({ min: 0, max: 30 }).map(String), set: fc.boolean() });
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 20 }), fc.array(step, { maxLength: 200 }), (size, steps) => {
      const cache = new RecentlyUsed<number>(size);
      const last = new Map<string, number>();
      for (const [at, { key, set }] of steps.entries()) {
        if (set) {
          cache.set(key, at);
          last.set(key, at);
        } else if (cache.get(key) !== undefined) {
          expect(cache.get(key)).toBe(last.get(key));
        }
      }
      const held = [...last.keys()].filter((key) => cache.get(key) !== undefined);
      expect(held.length).toBeLessThanOrEqual(size);
    }),
  );
});

test("keeps an entry in constant use, however many others are added", () => {
  const cache = new RecentlyUsed<string>(10);
  cache.set("hot", "value");
  for (let passing = 0; passing < 1000; passing += 1) {
    cache.set(`p${passing}`, "x");
    expect(cache.get("hot")).toBe("value");
  }
});

test.each([2, 3, 10, 11])("of %i, drops the first entries when one more than its size is added", (size) => {
  const cache = new RecentlyUsed<number>(size);
  for (let key = 0; key <= size; key += 1) cache.set(String(key), key);
  expect(cache.get("0")).toBeUndefined();
  expect(cache.get(String(size))).toBe(size);
});

test("keeps half its size, in whatever order and whatever else is asked for", () => {
  const cache = new RecentlyUsed<number>(10);
  for (let key = 0; key < 5; key += 1) cache.set(String(key), key);
  for (let absent = 5; absent < 50; absent += 1) expect(cache.get(String(absent))).toBeUndefined();
  expect([0, 1, 2, 3, 4].map((key) => cache.get(String(key)))).toEqual([0, 1, 2, 3, 4]);
});
