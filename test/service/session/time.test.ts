/**
 * Times of the store's clock and of the wall clock are converted to each other only at the edges of the domain. mixed-times.ts shows that
 * the compiler refuses code that mixes them.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import {
  earliest,
  later,
  latest,
  secondsLeft,
  storeMs,
  toStoreTime,
  toWallClock,
} from "../../../src/service/session/time.ts";

const SRC = join(import.meta.dirname, "../../../src/service");
const SHIFT_MS = 3_600_000;
const store = storeMs(1_000);

test("times are compared and moved, and conversions are each other's reverse", () => {
  expect(later(store, 5)).toBe(1_005);
  expect(earliest(store, storeMs(900))).toBe(900);
  expect(latest(store, storeMs(900))).toBe(1_000);
  expect(toWallClock(store, SHIFT_MS)).toBe(3_601_000);
  expect(toStoreTime(toWallClock(store, SHIFT_MS), SHIFT_MS)).toBe(store);
});

test.each([
  [2_000, 2],
  [1_999, 1],
  [999, 0],
  [0, 0],
  [-1, 0],
])("%i ms before a time, %i whole seconds are left", (leftMs, seconds) => {
  expect(secondsLeft(storeMs(1_000 + leftMs), store)).toBe(seconds);
});

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((name) => /\.tsx?$/.test(name))
  .map((name) => name.replaceAll("\\", "/"));
const filesWith = (word: RegExp) => files.filter((file) => word.test(readFileSync(join(SRC, file), "utf8"))).sort();

/** The list includes files of the stores, which may convert times because a store knows both its own clock and the wall clock. */
test("times are converted where tokens are signed and checked, and where times are shown or given", () => {
  const conversions = filesWith(/\bto(?:WallClock|StoreTime)\(|\bsecondsOf\([^()]+, /);
  expect(conversions).toEqual([
    "api/admin/introspect-token.ts",
    "api/public/dpop.ts",
    "api/public/oauth-parameters.ts",
    "api/times.ts",
    "observability/audit.ts",
    "session/admin/session-of-login.ts",
    "session/endings/upstream.ts",
    "session/events/due-lines.ts",
    "session/time.ts",
    "signals/kinds/context.ts",
    "signals/manage.ts",
    "store/embedded/clock.ts",
    "store/redis/partitions.ts",
    "tokens/access-token.ts",
  ]);
});

test("the API makes timestamps in one place, which asks for the scale", () => {
  expect(filesWith(/\btimestampFromMs\b/).filter((file) => file.startsWith("api/"))).toEqual(["api/times.ts"]);
});
