/** What a contender costs: memory, CPU of a refresh, and how soon services refuse what a logout has ended. */
import { setTimeout as sleep } from "node:timers/promises";
import { median } from "../../support/median.ts";
import { cpuTime, residentMemory } from "../refresh/proc.ts";
import { type Held, inTurns, logIn, type Running, repeat, served } from "./contenders/contender.ts";

/** How many services ask at the same time after a logout, how often it is measured, and how often and how long each service asks. */
const [SERVICES, LOGOUTS, ASK_MS, ASKED_MS] = [50, 10, 5, 5_000];
/** How long a server rests before its memory is read, and how many logins there are before it is read again. */
const [REST_MS, LOGINS] = [45_000, 2_100];
/** In how many rounds CPU is measured, and how many requests are under way at the same time. */
const [ROUNDS, PARALLEL] = [5, 16];
/** How far rounds are apart: more than the reuse interval of this service, within which a refresh does not rotate. */
const ROUND_MS = 11_000;

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
export async function costs(all: readonly Running[], refreshes: number): Promise<string[][]> {
  const memoryOf = ({ pid }: Running) => (residentMemory(pid) ?? Number.NaN).toFixed(0);
  await sleep(REST_MS);
  const rest = all.map(memoryOf);
  const prepare = async (running: Running) => {
    const sessions: Held[] = [];
    await inParallel(LOGINS, async () => void sessions.push(await repeat(running.logIn)));
    const figures = { server: [] as number[], both: [] as number[] };
    return { running, sessions: sessions.slice(0, refreshes), memory: memoryOf(running), ...figures };
  };
  const measured = await Promise.all(all.map(prepare));
  const secondsOf = (pids: readonly number[]) => pids.reduce((sum, pid) => sum + (cpuTime(pid) ?? 0), 0);
  const used = async ({ pid, store }: Running) => [secondsOf([pid]), secondsOf((await store?.pids()) ?? [])] as const;
  for (let round = 0; round <= ROUNDS; round++) {
    const passed = sleep(ROUND_MS);
    for (const { running, sessions, server, both } of measured) {
      const before = await used(running);
      await inParallel(refreshes, async (at) => {
        sessions[at] = await served(running, sessions[at] as Held).catch(() => logIn(running));
      });
      if (round === 0) continue;
      const after = await used(running);
      const ofServer = ((after[0] - before[0]) * 1e6) / refreshes;
      server.push(ofServer);
      both.push(ofServer + ((after[1] - before[1]) * 1e6) / refreshes);
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

/** The title of each cell. */
export const COST_TITLES: readonly string[] = [
  ...["services check by", "logout to refusal, p50", "p99", "CPU of a refresh, µs", "with the store", "ratio"],
  ...["MiB at rest", `after ${LOGINS.toLocaleString("en")} logins`],
];
