/** Real processes that share one file of tokens are never signed out: with a proof at any time, without one while requests take less than R/2. */
import { expect, test } from "vitest";
import { play } from "./client-processes/play.ts";
import { long } from "./support/run-length.ts";

const R = 2_000;
/** `npm run proof:clients` has 50 processes and 100 token lives. */
const SIZE = long ? { processes: 50, tokenLives: 100 } : { processes: 4, tokenLives: 4 };

test("with a proof, any token of the session, and however long requests take", async () => {
  const outcome = await play({ ...SIZE, tokenLifeMs: 1.5 * R, reuseIntervalMs: R, proves: true });
  console.log(JSON.stringify(outcome));
  expect(outcome).toMatchObject({ wrongLogouts: 0, isLive: true });
  expect(outcome.served).toBeGreaterThan(0);
  expect(outcome.kills).toBeGreaterThan(0);
});

test("without one, by the client, while no request takes longer than R/2", async () => {
  const own = long ? 10_000 : R;
  const outcome = await play({ ...SIZE, tokenLifeMs: 1.2 * own, reuseIntervalMs: own, proves: false });
  console.log(JSON.stringify(outcome));
  expect(outcome.served).toBeGreaterThan(0);
  // On a busy machine a process may be stopped for longer. Nothing is promised then.
  if (outcome.longestMs <= own / 2) expect(outcome).toMatchObject({ wrongLogouts: 0, isLive: true });
});
