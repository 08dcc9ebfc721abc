/** Commands to the store run a few at a time. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, test } from "vitest";
import { forEachConcurrently } from "../../../src/service/session/concurrently.ts";

test("sixteen operations run at the same time at most, and the others follow as those end", async () => {
  const ends: (() => void)[] = [];
  const begun: number[] = [];
  const values = Array.from({ length: 20 }, (_, at) => at);
  const all = forEachConcurrently(values, (value) => {
    begun.push(value);
    return new Promise((resolve) => ends.push(resolve));
  });
  await nextTurn();
  expect(begun).toEqual(values.slice(0, 16));
  ends[3]?.();
  await nextTurn();
  expect(begun).toEqual(values.slice(0, 17));
  for (let at = 0; at < 20; at++) {
    ends[at]?.();
    await nextTurn();
  }
  await all;
  expect(begun).toEqual(values);
});

test("a failure is reported after all others have ended", async () => {
  let ended = 0;
  const all = forEachConcurrently([1, 2, 3], async (value) => {
    if (value === 1) throw new Error("out");
    await nextTurn();
    ended++;
  });
  await expect(all).rejects.toThrow("out");
  expect(ended).toBe(2);
});
