/**
 * Real processes that share one file of tokens are never signed out. With a proof of possession this always holds; without a proof it holds
 * while every request takes less than half of the reuse interval (R).
 */
import { expect, test } from "vitest";
import { play } from "./client-processes/play.ts";
import { long } from "./support/run-length.ts";

/** The size of the test. `npm run proof:clients` runs the long form, with 50 processes and 100 lives of a token. */
const SIZE = long ? { processes: 50, tokenLives: 100 } : { processes: 4, tokenLives: 3 };

test("with a proof, any token of the session, and however long requests take", async () => {
  const outcome = await play({
    ...SIZE,
    tokenLifeMs: long ? 4_000 : 1_500,
    reuseIntervalMs: long ? 3_000 : 1_000,
    proves: true,
  });
  expect(outcome).toMatchObject({ wrongLogouts: 0, isLive: true });
  expect(outcome.served).toBeGreaterThan(0);
  expect(outcome.kills).toBeGreaterThan(0);
});

test("without one, by the client, while no request takes longer than R/2", async () => {
  const R = long ? 10_000 : 2_000;
  const outcome = await play({ ...SIZE, tokenLifeMs: 1.2 * R, reuseIntervalMs: R, proves: false });
  expect(outcome.served).toBeGreaterThan(0);
  // On a busy machine a process may be suspended for longer than half of the reuse interval (R/2). The client then guarantees nothing.
  if (outcome.longestMs <= R / 2) expect(outcome).toMatchObject({ wrongLogouts: 0, isLive: true });
});
