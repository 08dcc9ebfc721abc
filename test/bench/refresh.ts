/**
 * `npm run bench`: refreshes and logouts on the real service, beside the least that they can cost (floor.ts), a service
 * written by hand (by-hand.ts) and the same method over Connect RPC, in rounds that take turns. Only ratios of one run
 * mean anything.
 *
 *     npm run bench -- [--seconds 60] [--json] [--only floor,json,…] [--baseline <another checkout>]
 *
 * Exit code 1 when an answer had another status than expected: a ratio of wrong answers is none.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { measureAtRest } from "./refresh/at-rest.ts";
import { CONTENDERS, type Contender, ROTATE } from "./refresh/contenders.ts";
import type { Result, Slice } from "./refresh/plan.ts";
import { cpuTime, residentMemory } from "./refresh/proc.ts";
import { pinned, startGenerator, startRedis } from "./refresh/processes.ts";
import { type Measured, ratio, strangers } from "./refresh/ratios.ts";
import { between, watchCalls } from "./refresh/redis-calls.ts";
import { asJson, asTable, type Figure } from "./refresh/report.ts";
import { createKeys, outcomes, startService } from "./refresh/service.ts";

/** Of one contender in one round, s. Short, so that what disturbs the machine disturbs all of them. */
const SLICE = 0.4;
/** Warm is who has answered so often, or for so long, s: compiled code is a matter of calls. */
const WARM = { answers: 10_000, seconds: 4 };
/** Rounds at an offered rate, and how long a slice of them takes, s. */
const OFFERED_ROUNDS = 5;
const OFFERED_SLICE = 0.6;
const LEAST_ROUNDS = 3;
/** The scripts that the feed runs on its own read the log of all partitions. */
const PARTITIONS = 256;

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    json: { type: "boolean", default: false },
    only: { type: "string" },
    baseline: { type: "string" },
  },
});
const begin = performance.now();
/** How much longer than asked a run may take before it is given up, s. */
const PATIENCE = 60;
const elapsed = () => (performance.now() - begin) / 1000;
const seconds = Number(options.seconds);
const names = options.only?.split(",") ?? Object.keys(CONTENDERS).filter((name) => name !== "baseline");
if (options.baseline !== undefined) names.push("baseline");
const tell = (text: string) => process.stderr.write(`${text}\n`);
setTimeout(
  () => {
    tell("given up: something does not answer");
    process.exit(1);
  },
  (seconds + PATIENCE) * 1000,
).unref();

const redis = await startRedis();
const world = { redisPort: redis.port, keysFile: await createKeys() };
const atRest = options.only === undefined ? await measureAtRest(world) : undefined;
const rotating = await startService(world, ROTATE);
const service = await startService(world);
const calls = watchCalls(redis.port);
const generator = startGenerator();

const contenders: Contender[] = [];
for (const name of names) {
  const make = CONTENDERS[name];
  if (make === undefined) throw new Error(`--only: no ${name}; there are ${Object.keys(CONTENDERS).join(", ")}`);
  contenders.push(await make({ world, rotating, service }, options.baseline && resolve(options.baseline)));
}
const results = new Map<string, Result[]>(names.map((name) => [name, []]));

async function run({ name, pid }: Contender, slice: Omit<Slice, "name">): Promise<Result> {
  const before = cpuTime(pid) ?? Number.NaN;
  const load = await generator.run({ name, ...slice });
  const cpu = (cpuTime(pid) ?? Number.NaN) - before;
  return { ...load, cpu: (cpu * 1e6) / (load.rate * load.seconds) };
}
async function refill({ plan, refill }: Contender): Promise<void> {
  if (refill !== undefined) await generator.load({ ...plan, credentials: await refill() });
}

/** @returns what it can do once it is warm, answers per second */
async function warmUp(contender: Contender): Promise<number> {
  const until = elapsed() + WARM.seconds;
  await generator.load(contender.plan);
  let last = 0;
  for (let answers = 0; answers < WARM.answers && elapsed() < until; ) {
    await refill(contender);
    const { rate, seconds } = await run(contender, { seconds: SLICE });
    answers += rate * seconds;
    last = rate;
  }
  return last;
}

/** The same rate offered to both, half of what the slower of them can do. */
async function measureOffered(one: Contender, other: Contender): Promise<[Measured, Measured]> {
  const rate = Math.floor(Math.min(await warmUp(one), await warmUp(other)) / 2);
  const measured = (contender: Contender) => ({
    title: `${contender.title}, at ${rate}/s`,
    expected: contender.expected,
    results: [] as Result[],
  });
  const [of, to] = [measured(one), measured(other)];
  for (let round = 0; round < OFFERED_ROUNDS; round++) {
    of.results.push(await run(one, { seconds: OFFERED_SLICE, rate }));
    to.results.push(await run(other, { seconds: OFFERED_SLICE, rate }));
  }
  return [of, to];
}

tell(`warming up ${names.join(", ")}`);
const [floor, json] = ["floor", "json"].map((name) => contenders.find((contender) => contender.name === name));
// Before all else: what others leave behind, such as a log of revocations, would disturb the latencies.
const offered = floor !== undefined && json !== undefined ? await measureOffered(json, floor) : undefined;
for (const contender of contenders) {
  if (offered === undefined || (contender !== floor && contender !== json)) await warmUp(contender);
}

const before = await outcomes(rotating);
const used = { roundTrips: 0, forgedReads: 0 };
let rounds = 0;
let roundTime = 0;
while (rounds < LEAST_ROUNDS || elapsed() + roundTime < seconds - 1) {
  const start = elapsed();
  for (const contender of contenders) {
    await refill(contender);
    const callsBefore = await calls.read();
    const result = await run(contender, { seconds: SLICE });
    const callsAfter = await calls.read();
    results.get(contender.name)?.push(result);
    if (contender.name === "json") {
      const sweeps = between(callsBefore, callsAfter, "zrangebyscore") / PARTITIONS;
      used.roundTrips += between(callsBefore, callsAfter, "evalsha") - sweeps;
    }
    // Every script that looks at a session reads its record with GET.
    if (contender.name === "forged") used.forgedReads += between(callsBefore, callsAfter, "get");
  }
  roundTime = elapsed() - start;
  rounds++;
  tell(`round ${rounds}`);
}
const after = await outcomes(rotating);

const measured = new Map<string, Measured>();
for (const { name, title, expected } of contenders) {
  measured.set(name, { title, expected, results: results.get(name) ?? [] });
}

const figures: Figure[] = [];
function figure(title: string, value: number | { refused: string }, unit: string, goal: Figure["goal"]): void {
  if (typeof value === "number") figures.push({ title, value, unit, goal });
  else figures.push({ title, value: undefined, unit, goal, note: value.refused });
}
function compare(title: string, of: string, to: string, goal: Figure["goal"]): void {
  const [one, other] = [measured.get(of), measured.get(to)];
  // More calls a second are better, more time on the core is worse.
  const measure = "atLeast" in goal ? "rate" : "cpu";
  if (one !== undefined && other !== undefined) figure(title, ratio(one, other, measure), " ×", goal);
}
function perAnswer(title: string, name: string, count: number, atMost: number): void {
  const contender = measured.get(name);
  if (contender === undefined) return;
  const answers = contender.results.flatMap((result) => Object.values(result.answers)).reduce((a, b) => a + b, 0);
  figure(title, count / answers, "", { atMost });
}

compare("refresh, of the floor (at least 0.85)", "json", "floor", { atLeast: 0.9 });
compare("a refresh's time on the core, of the floor's", "json", "floor", { atMost: 1.11 });
compare("refresh, of the floor, repeating", "json-repeat", "floor-repeat", { atLeast: 0.9 });
compare("refresh, of Fastify by hand (at least 1.4)", "json", "fastify", { atLeast: 1.5 });
compare("refresh, of the same over Connect RPC", "json", "rpc", { atLeast: 1.7 });
compare("refresh, of the other checkout", "json", "baseline", { atLeast: 1 });
compare("logout, of its floor", "logout", "floor-logout", { atLeast: 0.85 });
compare("forged tokens, of refresh", "forged", "json", { atLeast: 3 });
const servers = [...measured.values()];
if (offered !== undefined) {
  const [of, to] = offered;
  servers.push(to, of);
  figure("p99 of the floor's, both offered the same", ratio(of, to, "p99"), " ×", { atMost: 2 });
}
perAnswer("store round trips per refresh", "json", used.roundTrips, 1.005);
perAnswer("store reads per forged token", "forged", used.forgedReads, 0);
if (atRest !== undefined) {
  figure("start to ready", atRest.startToReady, " ms", { atMost: 400 });
  if (atRest.memory !== undefined) figure("resident memory at rest", atRest.memory, " MB", { atMost: 100 });
}

const rotated = Object.entries(after).map(([outcome, count]) => `${count - (before[outcome] ?? 0)} ${outcome}`);
const report = {
  seconds: elapsed(),
  rounds,
  pinned,
  servers,
  figures,
  remarks: [
    `outcomes on this service with REUSE_INTERVAL=0: ${rotated.join(", ")}; "repeating" runs on the default of 10s`,
    `resident memory after the load: ${residentMemory(rotating.pid)?.toFixed(0) ?? "unknown"} MB`,
    "node-oidc-provider is not measured",
  ],
};
process.stdout.write(options.json ? `${asJson(report)}\n` : asTable(report));
// As an operator would: a service that profiles itself writes its profile now.
await Promise.all([rotating.stop(), service.stop()]);
// The exit handler of processes.ts ends the other processes of the run.
process.exit(servers.some((server) => strangers(server) !== undefined) ? 1 : 0);
