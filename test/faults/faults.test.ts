/** The short form of run.ts: each fault for a few seconds, most at the same time. test/proofs covers a failover. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { ALL_FAULTS } from "./all.ts";
import { MIN_REQUESTS } from "./browsers.ts";
import { busyMachine, DEFAULTS, limitsFor, PATIENT, STORES, stopped } from "./no-faults.ts";
import { flushedAndKilled, heldBytes, killedWithAof, repliesLost } from "./redis.ts";
import { rolling, serviceClockSteps } from "./services.ts";
import { tableHead, tableRow } from "./tally.ts";

const PACE = { browsers: 4, instances: 1, beforeMs: 500, afterMs: 1_500 };
const FAULTS = [killedWithAof, flushedAndKilled, heldBytes(1_000), repliesLost, rolling, serviceClockSteps(300)];
const NO_FAULTS = STORES.flatMap((store) => [
  stopped(store, 1, PATIENT),
  busyMachine(store, { seconds: 4, loopsPerProcessor: 1, limits: PATIENT }),
]);

describe("no live session is refused, nothing that was ended comes back, and service resumes without help", () => {
  test.concurrent.each(FAULTS)("$name", async ({ run }) => {
    const row = await run(PACE);
    console.log(`${tableHead()}\n${tableRow(row)}`);
    expect(row).toMatchObject({ wrong401: 0, deadAccepted: 0, undone: 0, recoveredMs: expect.any(Number) });
    expect(row.requests).toBeGreaterThanOrEqual(MIN_REQUESTS);
  });
});

describe("every request is served where nothing is wrong but the machine", () => {
  // One after the other: when ten services ran at once, responses took up to 33 s on a busy machine, and a request was cut.
  test.each(NO_FAULTS)("$name", async ({ run }) => {
    const row = await run(PACE);
    console.log(`${tableHead()}\n${tableRow(row)}`);
    expect(row).toMatchObject({ unavailable: 0, stalled: 0, wrong401: 0, deadAccepted: 0, undone: 0 });
    expect(row.requests).toBeGreaterThanOrEqual(MIN_REQUESTS);
  });
});

test("the long form keeps the defaults of the service only on a machine that does nothing else", () => {
  expect(limitsFor([1, 1.1, 1, 1.2, 8])).toBe(DEFAULTS);
  expect(limitsFor([1, 6, 3, 1.2, 8])).toBe(PATIENT);
});

test("docs/why/faults.md has a row for every fault of the long form", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/why/faults.md"), "utf8");
  const rows = [...page.matchAll(/^\| ([^|]+?)(?: ¹)? \| \d/gm)].map(([, name]) => name);
  expect(rows).toEqual(ALL_FAULTS.map(({ name }) => name));
});
