/** The short form of run.ts: the faults that cost honest users most, each for a few seconds. */
import { describe, expect, test } from "vitest";
import { plannedFailover } from "./clusters.ts";
import { flushedAndKilled, heldBytes, killedWithAof } from "./redis.ts";
import { rolling, serviceClockSteps } from "./services.ts";
import { tableRow } from "./tally.ts";

const PACE = { browsers: 6, beforeMs: 1_000, afterMs: 2_500 };

describe("nobody honest is logged out, nothing that was ended comes back, and service resumes alone", () => {
  test.each([killedWithAof, flushedAndKilled, heldBytes, plannedFailover, rolling, serviceClockSteps])(
    "$name",
    async ({ run }) => {
      const row = await run(PACE);
      console.log(tableRow(row));
      expect(row).toMatchObject({ wrong401: 0, deadAccepted: 0, undone: 0, recoveredMs: expect.any(Number) });
      expect(row.requests).toBeGreaterThan(50);
    },
  );
});
