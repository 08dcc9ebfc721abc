/** The formulas and the simulation behind docs/why/capacity.md. */
import { readFileSync } from "node:fs";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { maxBackoffMs } from "../../../src/browser/waits.ts";
import { TAGS } from "../../../src/service/store/redis/partitions.ts";
import { MEASURED } from "./costs.ts";
import { backoffS, type Day, simulate, summary } from "./day.ts";
import { needs, PARTITIONS, PLAN } from "./needs.ts";
import { costsTable, INCIDENTS, incidentTable, needsTable, ofSessions, TABLES } from "./tables.ts";

const demands = fc
  .tuple(fc.integer({ min: 1, max: 1e7 }), fc.integer({ min: 1, max: 1e9 }), fc.integer({ min: 0, max: 1e6 }))
  .map(([refreshes, sessions, verifiers]) => ofSessions(refreshes, sessions, verifiers));

describe("what a load needs", () => {
  test("what is planned for leaves its share of each core and each node free", () => {
    fc.assert(
      fc.property(demands, (demand) => {
        const needed = needs(demand, MEASURED);
        const { rest, reading } = MEASURED.instance;
        const ofEach = (rest + demand.endingsPerSecond * reading) / 1e6;
        fc.pre(needed.beyond.length === 0);
        const busy = needed.requestCores + needed.feedCores + needed.instances * ofEach;
        expect(busy).toBeLessThanOrEqual(PLAN.use * needed.instances * 1.0001);
        expect(needed.redisCores).toBeLessThanOrEqual(PLAN.use * needed.redisNodes * 1.0001);
        expect(needed.redisGiB).toBeLessThanOrEqual(PLAN.nodeMemoryGiB * PLAN.copies * needed.redisNodes * 1.0001);
      }),
    );
  });

  test("more of anything never needs less", () => {
    fc.assert(
      fc.property(
        demands,
        fc.constantFrom("refreshesPerSecond", "sessions", "verifiers", "endingsPerSecond"),
        (demand, what) => {
          const less = needs(demand, MEASURED);
          const more = needs({ ...demand, [what]: 2 * demand[what] + 1 }, MEASURED);
          for (const figure of ["instances", "redisNodes", "redisGiB", "instanceGiB", "usdPerMonth"] as const) {
            expect(more[figure], figure).toBeGreaterThanOrEqual(less[figure]);
          }
        },
      ),
    );
  });

  test("it is said where one deployment ends", () => {
    expect(PARTITIONS).toBe(TAGS.length);
    expect(needs(ofSessions(1e4, 1e6, 10), MEASURED).beyond).toEqual([]);
    expect(needs(ofSessions(1e8, 1e9, 10), MEASURED).beyond.join()).toContain(`at most ${PARTITIONS} nodes`);
    expect(needs({ ...ofSessions(1e4, 1e6, 10), endingsPerSecond: 1e5 }, MEASURED).beyond.join()).toContain(
      "remembers",
    );
  });
});

describe("a day", () => {
  const quiet: Day = { clients: 1e6, tokenLifeS: 300, capacity: 1e4, seconds: 3000, incidents: [] };

  test("without an incident is what the formula says: one refresh for each life of a token", () => {
    for (const { offered, served } of simulate(quiet)) {
      expect(served).toBe(offered);
      expect(offered / (quiet.clients / (0.9 * quiet.tokenLifeS))).toBeGreaterThan(0.95);
      expect(offered / (quiet.clients / (0.9 * quiet.tokenLifeS))).toBeLessThan(1.05);
    }
  });

  test("clients wait as those of the browser kit do", () => {
    for (let failures = 0; failures < 10; failures++) expect(backoffS(failures) * 1000).toBe(maxBackoffMs(failures));
  });

  test.each(INCIDENTS)("%s: no client is lost, and no more is served than can be", (_, day) => {
    const seconds = simulate(day);
    for (const { served } of seconds) expect(served).toBeLessThanOrEqual(day.capacity);
    const { recoveryS } = summary(seconds, day);
    const end = Math.max(...day.incidents.map(({ toS }) => toS)) + recoveryS;
    const after = seconds.slice(end + 1000);
    const mean = after.reduce((sum, { served }) => sum + served, 0) / after.length;
    expect(mean / (day.clients / (0.9 * day.tokenLifeS))).toBeCloseTo(1, 1);
  });

  test("an outage is felt as long as it lasts, by everybody once a minute at least", () => {
    const outage = { ...quiet, incidents: [{ fromS: 600, toS: 1200, left: 0 }] };
    const seconds = simulate(outage);
    expect(seconds.slice(600, 1200).every(({ served }) => served === 0)).toBe(true);
    expect(seconds[1199]?.offered).toBeGreaterThan(quiet.clients / 60);
    expect(summary(seconds, outage).recoveryS).toBeGreaterThan(0);
  });
});

test("docs/why/capacity.md has the tables that `npm run capacity` prints", () => {
  const page = readFileSync("docs/why/capacity.md", "utf8");
  for (const demands of TABLES) expect(page).toContain(needsTable(demands, MEASURED));
  expect(page).toContain(costsTable(MEASURED));
  expect(page).toContain(incidentTable());
});
