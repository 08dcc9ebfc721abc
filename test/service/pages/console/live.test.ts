/**
 * The data that the service sends to the live page: the state at the time of the request, and no metric that the page does not display.
 */
import { expect, test } from "vitest";
import { liveData } from "../../../../src/service/pages/console/live.ts";

const state = (at: number) => ({
  metrics: [{ name: "session_renewed_total", values: [{ value: at, labels: {} }] }],
  feed: { ageMs: at, watchers: at, entries: at },
  ringLost: at === 2,
  keys: [{ kid: `k${at}` }],
  storeResponds: at === 1,
});

test("every reading is of its own time", async () => {
  let now = state(1);
  const read = () =>
    liveData({
      metrics: { values: async () => [...now.metrics, { name: "session_verified_total" }] },
      feed: { state: () => now.feed },
      ringLost: () => now.ringLost,
      keys: () => now.keys,
      ready: () => (now.storeResponds ? Promise.resolve() : Promise.reject(new Error("no response"))),
    });
  const readAtMs = [Date.now()];
  for (const at of [1, 2]) {
    now = state(at);
    const { now: givenMs, ...rest } = await read();
    expect(rest).toEqual(now);
    expect(givenMs).toBeGreaterThanOrEqual(readAtMs.at(-1) ?? 0);
    expect(givenMs).toBeLessThanOrEqual(Date.now());
    // Waits until the clock has moved, so that the two readings have different times.
    while (Date.now() <= givenMs);
    readAtMs.push(Date.now());
  }
});
