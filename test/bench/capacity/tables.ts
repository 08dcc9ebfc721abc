/** The tables of docs/why/capacity.md. A test compares them with the page. */
import { table } from "../machine.ts";
import type { Costs } from "./costs.ts";
import { type Day, simulate, summary } from "./day.ts";
import { type Demand, INSTANCE_GIB, type Needs, needs, PLAN } from "./needs.ts";

/**
 * The average life of a session is two weeks, and users end a third of all sessions. This assumes that users come back within two weeks,
 * and that a third of them log out.
 */
const SESSION_LIFE_S = 14 * 86_400;
const ENDED = 1 / 3;

/** @returns a demand in which as many sessions are created as end, so that their number stays the same */
export function ofSessions(refreshesPerSecond: number, sessions: number, verifiers: number): Demand {
  const creationsPerSecond = sessions / SESSION_LIFE_S;
  return { refreshesPerSecond, sessions, verifiers, creationsPerSecond, endingsPerSecond: creationsPerSecond * ENDED };
}

/** The demands in the tables of docs/why/capacity.md. One table varies the load, another one the number of verifiers. */
export const TABLES: readonly (readonly Demand[])[] = [
  [
    ofSessions(1e3, 1e6, 100),
    ofSessions(1e4, 1e7, 1e3),
    ofSessions(1e5, 1e8, 1e4),
    ofSessions(1e6, 1e9, 1e4),
    ofSessions(1e7, 1e9, 1e4),
  ],
  [ofSessions(1e5, 1e8, 1e4), ofSessions(1e5, 1e8, 1e5), ofSessions(1e5, 1e8, 1e6)],
];

type Row = { readonly demand: Demand; readonly needed: Needs };

const COLUMNS: readonly (readonly [title: string, value: (row: Row) => string])[] = [
  ["refreshes/s", ({ demand }) => count(demand.refreshesPerSecond)],
  ["sessions", ({ demand }) => count(demand.sessions)],
  ["verifiers", ({ demand }) => count(demand.verifiers)],
  ["endings/s", ({ demand }) => fixed(demand.endingsPerSecond)],
  ["cores busy with requests", ({ needed }) => fixed(needed.requestCores)],
  ["and with the feed", ({ needed }) => fixed(needed.feedCores)],
  ["instances", ({ needed }) => count(needed.instances)],
  ["GiB each", ({ needed }) => needed.instanceGiB.toFixed(1)],
  ["Redis nodes", ({ needed }) => count(needed.redisNodes)],
  ["GiB of all, copies included", ({ needed }) => count(needed.redisGiB)],
  ["Gbit/s to clients and verifiers", ({ needed }) => fixed(needed.clientGbits)],
  ["Gbit/s to Redis", ({ needed }) => fixed(needed.redisGbits)],
  ["USD a month", ({ needed }) => count(needed.usdPerMonth)],
  ["one deployment?", ({ needed }) => needed.beyond.join("; ") || "yes"],
];

export function needsTable(demands: readonly Demand[], costs: Costs): string {
  const rows = demands.map((demand): Row => ({ demand, needed: needs(demand, costs) }));
  return table(
    COLUMNS.map(([title]) => title),
    rows.map((row) => COLUMNS.map(([, value]) => value(row))),
  );
}

/** The costs from which the others are computed, in µs of CPU. */
export function costsTable({ instance, redis, memory, machine }: Costs): string {
  const row = (what: string, ...costs: readonly number[]) => [what, ...costs.map(count)];
  const rows = [
    row("refresh", instance.refresh, redis.refresh),
    row("creation", instance.creation, redis.creation),
    row("ending", instance.ending, redis.ending),
    row("reading an ending, at each other instance", instance.reading, redis.reading),
    row("a second at rest", instance.rest, redis.rest),
    [...row("message of the feed", instance.message), ""],
  ];
  const costs = table(["µs of CPU", "an instance", "Redis"], rows);
  const perSecond = Math.floor((PLAN.use * 1e4) / instance.refresh) * 100;
  const carried =
    `**One instance** takes ${count(perSecond)} refreshes a second on half of a core, ` +
    `which ${count(perSecond * 0.9 * TOKEN_LIFE_S)} sessions in use make, in ${INSTANCE_GIB} GiB.`;
  return `${costs}\n\n${carried} A session takes ${memory.session} bytes of Redis, with the event of its creation. ${machine}.`;
}

/** The clients of the simulation. Their tokens live for five minutes, and the capacity is twice what they need. */
const CLIENTS = 1_000_000;
const TOKEN_LIFE_S = 300;
const NEEDED = CLIENTS / (0.9 * TOKEN_LIFE_S);
const day = (toS: number, left: number, spare = 2): Day => ({
  clients: CLIENTS,
  tokenLifeS: TOKEN_LIFE_S,
  capacity: NEEDED * spare,
  seconds: toS + 4_000,
  incidents: toS === 0 ? [] : [{ fromS: 600, toS, left }],
});

export const INCIDENTS: readonly (readonly [what: string, day: Day])[] = [
  ["the store is away for 10 s (a failover)", day(610, 0)],
  ["for 1 min", day(660, 0)],
  ["for 10 min", day(1200, 0)],
  ["for 10 min, with a tenth of capacity to spare", day(1200, 0, 1.1)],
  ["half of the instances are away for 10 min (a region)", day(1200, 0.5)],
  ["two thirds are", day(1200, 1 / 3)],
  ["slots move for 30 min, which takes a tenth", day(2400, 0.9)],
];

export const incidentTable = (): string =>
  table(
    ["incident", "most that is offered, of the usual", "until all is served again, s", "refused, per client"],
    INCIDENTS.map(([what, day]) => {
      const { peak, recoveryS, refused } = summary(simulate(day), day);
      return [what, peak.toFixed(1), String(recoveryS), (refused / CLIENTS).toFixed(1)];
    }),
  );

const fixed = (value: number) => (value < 10 ? value.toFixed(1) : count(value));
const count = (value: number) =>
  value < 1e6 ? Math.round(value).toLocaleString("en") : `${(value / 1e6).toLocaleString("en")} M`;
