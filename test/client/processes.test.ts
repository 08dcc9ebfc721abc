/** Processes that share one file of tokens are never signed out while no request takes longer than half the reuse interval. */
import { expect, test } from "vitest";
import { play, R } from "./world.ts";

test.each([1, 2, 3, 4])(
  "50 processes, 100 token lives, kills, lost responses, clocks off by an hour (seed %i)",
  async (seed) => {
    const outcome = await play({ seed, processes: 50, tokenLives: 100, requestMs: R / 2 });
    expect(outcome.wrongLogouts).toBe(0);
    expect(outcome.refreshes).toBeGreaterThan(500);
    expect(outcome.kills).toBeGreaterThan(100);
    expect(outcome.lost).toBeGreaterThan(100);
  },
);

test("requests that take several R sign processes out: the bound is what the promise needs", async () => {
  const outcomes = [];
  for (let seed = 1; seed <= 5; seed++) {
    outcomes.push(await play({ seed, processes: 20, tokenLives: 50, requestMs: 8 * R }));
  }
  expect(outcomes.some(({ wrongLogouts }) => wrongLogouts > 0)).toBe(true);
});
