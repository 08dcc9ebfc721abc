/**
 * A short form of the soak test in soak.ts: during thousands of refreshes with faults, no legitimate user is logged out, and every theft is
 * detected.
 */
import { expect, test } from "vitest";
import { round } from "./round.ts";

test.each([
  ["crashes of Redis and restarts of instances", 2],
  ["failovers that lose the last writes", 1],
])(
  "ten thousand concurrent refreshes over 200 sessions, with %s: no legitimate user is logged out, no attacker stays",
  async (_, seed) => {
    const report = await round({ seed, sessions: 200, refreshes: 10_000, crashes: 5 });
    expect(report.refreshes).toBeGreaterThanOrEqual(10_000);
    expect(report.crashes).toBeGreaterThan(2);
    expect(report.outcomes).toMatchObject({
      rotate: expect.any(Number),
      repeat: expect.any(Number),
      recover: expect.any(Number),
    });
    expect(report.thefts).toBe(512);
  },
);
