/**
 * A logout at the edge: an isolate refuses the token within its interval of polls, and during an outage of the origin within its maximum
 * staleness.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { logIn } from "../support/sessions.ts";
import { until } from "../support/until.ts";
import { type Edge, present, startEdge } from "./edge.ts";

const TIMES = { pollIntervalMs: 300, maxStalenessMs: 1_000 };
/** How old the revocations can be, in ms, in a response of the feed that the service still marks as up to date. */
const FEED_MS = 2_000;

let edge: Edge;
beforeAll(async () => {
  edge = await startEdge(TIMES);
});
afterAll(() => edge?.stop());

test("a logout is refused within the interval of polls", async () => {
  for (let round = 0; round < 3; round++) {
    const { acceptedForMs } = await present(edge, (verdict) => verdict === "revoked");
    expect(acceptedForMs).toBeLessThan(TIMES.pollIntervalMs + FEED_MS);
  }
});

test("in an outage of the origin no token is accepted beyond the bound, and after it the living ones are", async () => {
  const { service, relay, verdictOf } = edge;
  const living = await logIn(service);
  const isOver = (_: unknown, sinceMs: number) => sinceMs > TIMES.maxStalenessMs + FEED_MS;
  const { acceptedForMs, verdict } = await present(edge, isOver, async () => {
    relay.isDown = true;
  });
  expect(verdict).toBe("unavailable");
  expect(acceptedForMs).toBeLessThan(TIMES.maxStalenessMs + FEED_MS);
  expect(await verdictOf(living.accessToken)).toBe("unavailable");
  relay.isDown = false;
  await until(async () => expect(await verdictOf(living.accessToken)).toBe(living.subject));
});
