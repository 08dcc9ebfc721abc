/**
 * Compares this service with node-oidc-provider, better-auth and, if `PEER_HYDRA` has the path of its program, Ory Hydra (on
 * PostgreSQL, whose programs are in `PEER_POSTGRES`), each by default and by its best settings: tabs that refresh with one token, a lost response, a stolen credential, a store that is away, how soon
 * services refuse what a logout has ended, CPU and memory. It prints the tables of docs/why/comparison.md.
 *
 *     npm run bench:peers [-- --users 20 --refreshes 1000] [--only faults|costs]
 *
 * It takes a quarter of an hour. All contenders run on loopback, and are measured in turns, so other load on the machine changes the ratios
 * less than the figures. What mostly waits runs at the same time.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { buildPackages } from "../../../deploy/packages/build.ts";
import { median } from "../../support/median.ts";
import { serverVersion } from "../../support/redis.ts";
import { machine, table } from "../machine.ts";
import { cpuTime, residentMemory } from "../refresh/proc.ts";
import { type Held, type Running, refresh, repeat, type Store } from "./contenders/contender.ts";
import { CONTENDERS, PEER_HYDRA } from "./contenders.ts";

const { values } = parseArgs({
  options: {
    users: { type: "string", default: "20" },
    refreshes: { type: "string", default: "1000" },
    only: { type: "string", default: "faults,costs" },
  },
});
const [USERS, REFRESHES] = [Number(values.users), Number(values.refreshes)];
const TABS = 10;
/** How far apart tabs refresh that do not do so at the same moment: a response takes longer on most networks. */
const APART_MS = 20;
/** When a client repeats a refresh whose response was lost. */
const RETRY_MS = 15_000;
/** How long a user and a thief wait for their turns, and how many turns there are. */
const [TURN_MS, TURNS] = [12_000, 10];
/** How long the store is away, how often a user refreshes meanwhile, and afterwards, and how long afterwards a user is waited for. */
const [OUTAGE_MS, USE_MS, AGAIN_MS, WAIT_MS] = [20_000, 1_000, 100, 60_000];
/** How many services ask at the same time after a logout, how often it is measured, and how often and how long each service asks. */
const [SERVICES, LOGOUTS, ASK_MS, ASKED_MS] = [50, 10, 5, 5_000];
/** How long a server rests before its memory is read, and how many logins there are before it is read again. */
const [REST_MS, LOGINS] = [45_000, 2_100];
/** In how many rounds CPU is measured, and how many requests are under way at the same time. */
const [ROUNDS, PARALLEL] = [5, 16];
/** How far rounds are apart: more than the reuse interval of this service, within which a refresh does not rotate. */
const ROUND_MS = 11_000;

const users = <T>(act: () => Promise<T>) => Promise.all(Array.from({ length: USERS }, act));
const count = (outcomes: readonly boolean[], what: boolean) => String(outcomes.filter((is) => is === what).length);

async function served(running: Running, held: Held): Promise<Held> {
  const outcome = await refresh(running, held);
  if (outcome.result !== "served") throw new Error("a refresh of an honest user was refused");
  return outcome;
}

/** Signs a user in, and refreshes once. On a busy machine the response to that may be late, and it is done again. */
const logIn = (running: Running) => repeat(async () => served(running, await running.logIn()));
const isSignedIn = async (running: Running, held: Held) => (await refresh(running, held)).result === "served";

/**
 * Tabs of one browser refresh with the same token, and the browser keeps the last response that brings something. A server that reads a
 * token before it marks the token as used may serve tabs of the same moment, and not those that are some ms apart.
 */
function tabs(apartMs: number) {
  return async (running: Running): Promise<readonly string[]> => {
    const signedIn = await users(async () => {
      const held = await logIn(running);
      let last = held;
      const inTab = async (_: unknown, tab: number) => {
        await sleep(tab * apartMs);
        const outcome = await refresh(running, held);
        if (outcome.result === "served") last = outcome;
      };
      await Promise.all(Array.from({ length: TABS }, inTab));
      return isSignedIn(running, last);
    });
    return [count(signedIn, false)];
  };
}

/** The response to a refresh is lost, and the client refreshes again with what it has. */
async function lostResponse(running: Running): Promise<readonly string[]> {
  const signedIn = await users(async () => {
    const held = await logIn(running);
    await refresh(running, held);
    await sleep(RETRY_MS);
    return isSignedIn(running, await refresh(running, held));
  });
  return [count(signedIn, false)];
}

/** A thief has a copy of what a user holds. Both refresh in turns, and the user begins. */
async function theft(running: Running): Promise<readonly string[]> {
  const stolen = await logIn(running);
  const hands = [stolen, stolen];
  let thiefServed = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    await sleep(TURN_MS);
    const who = turn % 2;
    const outcome = await refresh(running, hands[who] ?? stolen);
    if (outcome.result !== "served") return [String(thiefServed), `${((turn + 1) * TURN_MS) / 1_000} s`];
    hands[who] = outcome;
    thiefServed += who;
  }
  return [String(thiefServed), "never"];
}

const ABSENCES: readonly ((store: Store) => Promise<() => Promise<void>>)[] = [
  async (store) => {
    store.pause();
    return async () => store.resume();
  },
  async (store) => {
    await store.shutDown();
    return store.start;
  },
];

/** The store stalls, and later is stopped and started again. Users refresh all the time, and give a request up after 15 s. */
async function outages(running: Running): Promise<readonly string[]> {
  const { store } = running;
  if (store === undefined) return ["–", "–", "–"];
  const [refused, out, waits]: [boolean[], boolean[], number[]] = [[], [], []];
  for (const begin of ABSENCES) {
    const sessions = await users(() => logIn(running));
    const end = await begin(store);
    let backAt: number | undefined;
    const using = sessions.map(async (session) => {
      let held: Held = session;
      let isRefused = false;
      for (;;) {
        const outcome = await running.refresh(held);
        held = outcome;
        isRefused ||= outcome.result === "refused";
        const sinceBack = backAt === undefined ? undefined : performance.now() - backAt;
        if (sinceBack !== undefined && (outcome.result === "served" || sinceBack > WAIT_MS)) {
          refused.push(isRefused);
          out.push(outcome.result !== "served");
          if (outcome.result === "served") waits.push(sinceBack);
          return;
        }
        await sleep(sinceBack === undefined ? USE_MS : AGAIN_MS);
      }
    });
    await sleep(OUTAGE_MS);
    await end();
    backAt = performance.now();
    await Promise.all(using);
  }
  return [
    count(refused, true),
    count(out, true),
    waits.length === 0 ? "–" : `${(Math.max(...waits) / 1_000).toFixed(1)} s`,
  ];
}

/** Returns the results of all contenders, which are measured in turns. */
async function inTurns<T, R>(all: readonly T[], act: (each: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (const each of all) results.push(await act(each));
  return results;
}

/** Returns the cells of each contender. What mostly waits runs at the same time. */
async function faults(all: readonly Running[]): Promise<string[][]> {
  const columns: (readonly string[])[][] = [];
  for (const scenario of [tabs(0), tabs(APART_MS)]) columns.push(await inTurns(all, scenario));
  for (const scenario of [lostResponse, outages, theft]) columns.push(await Promise.all(all.map(scenario)));
  return all.map((_, at) => columns.flatMap((column) => column[at] ?? []));
}

/** Measures from the acknowledgement of a logout until services refuse what the user held. */
async function refusals(running: Running): Promise<string[]> {
  const { services, stop } = await running.startServices(SERVICES);
  const delays: number[] = [];
  try {
    while (delays.length < SERVICES * LOGOUTS) {
      const held = await logIn(running);
      const before = await Promise.all(services.map((accepts) => accepts(held.access)));
      if (before.includes(false)) throw new Error("a service refuses an honest user");
      await running.logOut(held);
      const endedAt = performance.now();
      const untilRefused = services.map(async (accepts) => {
        while (await accepts(held.access)) {
          if (performance.now() - endedAt > ASKED_MS) return Number.POSITIVE_INFINITY;
          await sleep(ASK_MS);
        }
        return performance.now() - endedAt;
      });
      delays.push(...(await Promise.all(untilRefused)));
      if (delays.includes(Number.POSITIVE_INFINITY)) {
        return [running.checkedBy, `expiry, ${running.lifeSeconds(held.access)} s`, "–"];
      }
    }
  } finally {
    stop();
  }
  const sorted = delays.toSorted((one, other) => one - other);
  const at = (share: number) => `${(sorted[Math.ceil(share * sorted.length) - 1] ?? Number.NaN).toFixed(0)} ms`;
  return [running.checkedBy, at(0.5), at(0.99)];
}

/** Does something a number of times, with several under way at the same time. */
async function inParallel(times: number, act: (at: number) => Promise<void>): Promise<void> {
  let begun = 0;
  const work = async () => {
    while (begun < times) await act(begun++);
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
}

/** Measures memory, CPU and logouts. The first round, in which code is compiled, is not counted. */
async function costs(all: readonly Running[]): Promise<string[][]> {
  const memoryOf = ({ pid }: Running) => (residentMemory(pid) ?? Number.NaN).toFixed(0);
  await sleep(REST_MS);
  const rest = all.map(memoryOf);
  const prepare = async (running: Running) => {
    const sessions: Held[] = [];
    await inParallel(LOGINS, async () => void sessions.push(await repeat(running.logIn)));
    const figures = { server: [] as number[], both: [] as number[] };
    return { running, sessions: sessions.slice(0, REFRESHES), memory: memoryOf(running), ...figures };
  };
  const measured = await Promise.all(all.map(prepare));
  const secondsOf = (pids: readonly number[]) => pids.reduce((sum, pid) => sum + (cpuTime(pid) ?? 0), 0);
  const used = async ({ pid, store }: Running) => [secondsOf([pid]), secondsOf((await store?.pids()) ?? [])] as const;
  for (let round = 0; round <= ROUNDS; round++) {
    const passed = sleep(ROUND_MS);
    for (const { running, sessions, server, both } of measured) {
      const before = await used(running);
      await inParallel(REFRESHES, async (at) => {
        sessions[at] = await served(running, sessions[at] as Held).catch(() => logIn(running));
      });
      if (round === 0) continue;
      const after = await used(running);
      const ofServer = ((after[0] - before[0]) * 1e6) / REFRESHES;
      server.push(ofServer);
      both.push(ofServer + ((after[1] - before[1]) * 1e6) / REFRESHES);
    }
    await passed;
  }
  const first = median(measured[0]?.both ?? []);
  const ofLogouts = await inTurns(all, refusals);
  return measured.map(({ server, both, memory }, at) => {
    const cpu = [median(server).toFixed(0), median(both).toFixed(0), (median(both) / first).toFixed(1)];
    return [...(ofLogouts[at] ?? []), ...cpu, rest[at] ?? "", memory];
  });
}

const directory = import.meta.dirname;
if (!existsSync(join(directory, "node_modules"))) {
  const options = { cwd: directory, stdio: "inherit" } as const;
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], options);
}
buildPackages(["service"]);
const versionOf = (path: string): string =>
  JSON.parse(readFileSync(join(directory, path, "package.json"), "utf8")).version;
const all = await Promise.all(CONTENDERS.map(({ start }) => start()));
const FAULTS = [
  ...["", `${TABS} tabs at once: out, of ${USERS}`, `${APART_MS} ms apart`, "lost response"],
  ...[`store away: refused, of ${ABSENCES.length * USERS}`, "out", "last served after"],
  ...["thief served", "out after"],
];
const COSTS = [
  ...["", "services check by", "logout to refusal, p50", "p99", "CPU of a refresh, µs", "with the store", "ratio"],
  ...["MiB at rest", `after ${LOGINS.toLocaleString("en")} logins`],
];
const print = (title: readonly string[], rows: readonly (readonly string[])[]) =>
  console.log(
    `${table(
      title,
      rows.map((cells, at) => [CONTENDERS[at]?.name ?? "", ...cells]),
    )}\n`,
  );
if (values.only.includes("costs")) print(COSTS, await costs(all));
if (values.only.includes("faults")) print(FAULTS, await faults(all));
await Promise.all(all.map((running) => running.stop()));

const versions = [
  `node-oidc-provider ${versionOf("../../../node_modules/oidc-provider")}`,
  `better-auth ${versionOf("node_modules/better-auth")}`,
];
if (PEER_HYDRA !== undefined) {
  const text = execFileSync(PEER_HYDRA, ["version"], { encoding: "utf8" });
  versions.push(`Hydra ${/Version:\s+v?(\S+)/.exec(text)?.[1]} on PostgreSQL`);
}
console.log(machine(...versions, serverVersion()));
process.exit(0);
