/**
 * Compares this service with node-oidc-provider and better-auth, each by default and by its best settings: tabs that refresh with one
 * token, a lost response, a stolen credential, CPU and memory.
 *
 *     npm run bench:peers [-- --users 20 --refreshes 1000]
 *
 * It takes five minutes. All contenders run on loopback, and their scenarios, which mostly wait, at the same time. CPU is measured in
 * turns, so other load on the machine changes the ratios less than the figures.
 */
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { cpus, loadavg } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { buildPackages } from "../../../deploy/packages/build.ts";
import { median } from "../../support/median.ts";
import { serverVersion } from "../../support/redis.ts";
import { cpuTime, residentMemory } from "../refresh/proc.ts";
import { CONTENDERS, type Contender, type Running } from "./contenders.ts";

const { values } = parseArgs({
  options: { users: { type: "string", default: "20" }, refreshes: { type: "string", default: "1000" } },
});
const [USERS, REFRESHES] = [Number(values.users), Number(values.refreshes)];
/** How far apart tabs refresh that do not do so at the same moment: a response takes longer on most networks. */
const APART_MS = 20;
/** When a client repeats a refresh whose response was lost. */
const RETRY_MS = 15_000;
/** How long a user and a thief wait for their turns, and how many turns there are. */
const [TURN_MS, TURNS] = [12_000, 10];
/** How long a server rests before its memory is read. */
const REST_MS = 10_000;
/** In how many rounds CPU is measured, and how many refreshes are under way at the same time. */
const [ROUNDS, PARALLEL] = [5, 16];

const users = <T>(act: () => Promise<T>) => Promise.all(Array.from({ length: USERS }, act));
const signedOut = (outcomes: readonly boolean[]) => `${outcomes.filter((served) => !served).length} of ${USERS}`;

async function served({ refresh }: Running, kept: string): Promise<string> {
  const outcome = await refresh(kept);
  if (!outcome.served) throw new Error("a refresh of an honest user was refused");
  return outcome.kept;
}

const logIn = async (running: Running) => served(running, await running.logIn());

/**
 * Tabs of one browser refresh with the same token, and the browser keeps the last response that brings something. A server that reads a
 * token before it marks the token as used may serve tabs of the same moment, and not those that are some ms apart.
 */
function tabs(count: number, apartMs: number) {
  return async (running: Running): Promise<string> => {
    const outcomes = await users(async () => {
      const kept = await logIn(running);
      let last = kept;
      const inTab = async (_: unknown, tab: number) => {
        await sleep(tab * apartMs);
        const outcome = await running.refresh(kept);
        if (outcome.served) last = outcome.kept;
      };
      await Promise.all(Array.from({ length: count }, inTab));
      return (await running.refresh(last)).served;
    });
    return signedOut(outcomes);
  };
}

/** The response to a refresh is lost, and the client refreshes again with what it has. */
async function lostResponse(running: Running): Promise<string> {
  const outcomes = await users(async () => {
    const kept = await logIn(running);
    await running.refresh(kept);
    await sleep(RETRY_MS);
    return (await running.refresh((await running.refresh(kept)).kept)).served;
  });
  return signedOut(outcomes);
}

/** A thief has a copy of what a user holds. Both refresh in turns, and the user begins. */
async function theft(running: Running): Promise<string> {
  const stolen = await logIn(running);
  const hands = [stolen, stolen];
  let thiefServed = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    await sleep(TURN_MS);
    const who = turn % 2;
    const outcome = await running.refresh(hands[who] ?? "");
    if (!outcome.served) return `${thiefServed}; ${((turn + 1) * TURN_MS) / 1_000} s`;
    hands[who] = outcome.kept;
    thiefServed += who;
  }
  return `${thiefServed}; not within ${(TURNS * TURN_MS) / 1_000} s`;
}

const SCENARIOS = [tabs(2, 0), tabs(10, 0), tabs(2, APART_MS), tabs(10, APART_MS), lostResponse, theft];

async function withPeer<T>({ start }: Contender, act: (running: Running) => Promise<T>): Promise<T> {
  const running = await start();
  try {
    return await act(running);
  } finally {
    await running.stop();
  }
}

/** Returns the cells of a contender, a scenario after the other. */
async function faults(running: Running): Promise<string[]> {
  const cells: string[] = [];
  for (const scenario of SCENARIOS) cells.push(await scenario(running));
  return cells;
}

/** Refreshes each session of a list once. */
async function refreshAll(running: Running, kept: string[]): Promise<void> {
  let begun = 0;
  const work = async () => {
    while (begun < kept.length) {
      const at = begun++;
      kept[at] = await served(running, kept[at] ?? "");
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, work));
}

type Measured = { running: Running; redisPid: number; rest: number; kept: string[]; server: number[]; both: number[] };

async function prepare({ start }: Contender): Promise<Measured> {
  const running = await start();
  await sleep(REST_MS);
  const rest = residentMemory(running.pid) ?? Number.NaN;
  const kept: string[] = [];
  while (kept.length < REFRESHES) kept.push(await running.logIn());
  const [, pid = "0"] = /process_id:(\d+)/.exec((await running.redis?.admin.info("server")) ?? "") ?? [];
  return { running, redisPid: Number(pid), rest, kept, server: [], both: [] };
}

/** Measures CPU and memory. The first round, in which code is compiled, is not counted. */
async function costs(): Promise<string[][]> {
  const all = await Promise.all(CONTENDERS.map(prepare));
  const secondsOf = (pid: number) => (pid === 0 ? 0 : (cpuTime(pid) ?? Number.NaN));
  for (let round = 0; round <= ROUNDS; round++) {
    for (const { running, redisPid, kept, server, both } of all) {
      const before = [secondsOf(running.pid), secondsOf(redisPid)] as const;
      await refreshAll(running, kept);
      if (round === 0) continue;
      const ofServer = ((secondsOf(running.pid) - before[0]) * 1e6) / REFRESHES;
      server.push(ofServer);
      both.push(ofServer + ((secondsOf(redisPid) - before[1]) * 1e6) / REFRESHES);
    }
  }
  await Promise.all(all.map(({ running }) => running.stop()));
  const first = median(all[0]?.both ?? []);
  return all.map(({ server, both, rest }) => [
    `${median(server).toFixed(0)} µs`,
    `${median(both).toFixed(0)} µs`,
    (median(both) / first).toFixed(1),
    `${rest.toFixed(0)} MiB`,
  ]);
}

const directory = import.meta.dirname;
if (!existsSync(join(directory, "node_modules"))) {
  const options = { cwd: directory, stdio: "inherit" } as const;
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], options);
}
buildPackages(["service"]);
const versionOf = (path: string): string =>
  JSON.parse(readFileSync(join(directory, path, "package.json"), "utf8")).version;
const load = () => loadavg()[0]?.toFixed(1);
const loadBefore = load();
const ofFaults = await Promise.all(CONTENDERS.map((contender) => withPeer(contender, faults)));
const ofCosts = await costs();

const columns = ["two tabs: signed out", "ten tabs", "two tabs, 20 ms apart", "ten tabs, 20 ms apart"];
columns.push("a lost response", "a thief: served; out after");
columns.push("CPU of a refresh", "with the store", "of the first", "memory at rest");
const line = (cells: readonly string[]) => `| ${cells.join(" | ")} |`;
console.log(line(["", ...columns]));
console.log(`|${"---|".repeat(columns.length + 1)}`);
for (const [at, { name }] of CONTENDERS.entries()) {
  console.log(line([name, ...(ofFaults[at] ?? []), ...(ofCosts[at] ?? [])]));
}
console.log(`
node-oidc-provider ${versionOf("../../../node_modules/oidc-provider")}, better-auth ${versionOf("node_modules/better-auth")}, \
${serverVersion()}, Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model}, \
${new Date().toISOString().slice(0, 10)}, load ${loadBefore} to ${load()}`);
process.exit(0);
