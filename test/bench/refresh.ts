/**
 * `npm run bench` measures refreshes and logouts on the real service, on a minimal server (floor.ts), on a service written by hand
 * (by-hand.ts), and over Connect RPC, gRPC and gRPC-Web, in turns. Only ratios within one run are meaningful.
 *
 *     npm run bench -- [--seconds 60] [--json] [--only floor,json,…] [--slice 0.4] [--baseline <another checkout>]
 *
 * `--slice` is the duration of a contender's turn, in s. For the contender `traced` it should be several seconds. The number of traces per
 * second is limited, and unused traces add up while other contenders have their turn. So in a short turn this contender would record a
 * larger share of its requests than a busy instance does.
 *
 * The exit code is 1 if a response has an unexpected status, which makes the ratios meaningless.
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { serverVersion } from "../support/redis.ts";
import { machine } from "./machine.ts";
import { CONTENDERS, type Contender, ROTATE } from "./refresh/contenders.ts";
import { figuresOf } from "./refresh/figures.ts";
import { offerTheSame, refill, SLICE, takeTurn, warmUp } from "./refresh/measure.ts";
import type { Result } from "./refresh/plan.ts";
import { residentMemory } from "./refresh/proc.ts";
import { pinned, startGenerator, startRedis } from "./refresh/processes.ts";
import { type Measured, strangers } from "./refresh/ratios.ts";
import { between, watchCalls } from "./refresh/redis-calls.ts";
import { asJson, asTable, costTable } from "./refresh/report.ts";
import { createKeys, outcomes, startService } from "./refresh/service.ts";

const LEAST_ROUNDS = 3;
/** How long a run may exceed the requested duration before it is aborted, in s. */
const PATIENCE = 60;
/**
 * The number of partitions in Redis. In the background, the service runs scripts that read the log of every partition. Their reads are not
 * counted as reads of refreshes.
 */
const PARTITIONS = 256;

const { values: options } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    json: { type: "boolean", default: false },
    only: { type: "string" },
    slice: { type: "string", default: String(SLICE) },
    baseline: { type: "string" },
  },
});
const begin = performance.now();
const elapsed = () => (performance.now() - begin) / 1000;
const seconds = Number(options.seconds);
const log = (text: string) => process.stderr.write(`${text}\n`);
const giveUp = () => {
  log("given up: a process does not respond");
  process.exit(1);
};
setTimeout(giveUp, (seconds + PATIENCE) * 1000).unref();

const redis = await startRedis();
const world = { redisPort: redis.port, keysFile: await createKeys() };
const rotating = await startService(world, ROTATE);
const service = await startService(world);
const calls = watchCalls(redis.port);
const generator = startGenerator();

const names = options.only?.split(",") ?? Object.keys(CONTENDERS).filter((name) => name !== "baseline");
if (options.baseline !== undefined) names.push("baseline");
const contenders: Contender[] = [];
for (const name of names) {
  const make = CONTENDERS[name];
  if (make === undefined) throw new Error(`--only: no ${name}; there are ${Object.keys(CONTENDERS).join(", ")}`);
  contenders.push(await make({ world, rotating, service }, options.baseline && resolve(options.baseline)));
}

log(`warming up ${names.join(", ")}`);
const [floor, json] = ["floor", "json"].map((name) => contenders.find((contender) => contender.name === name));
// Latencies are measured first, because what other measurements leave behind, such as a log of revocations, would disturb them.
const offered = floor !== undefined && json !== undefined ? await offerTheSame(generator, json, floor) : undefined;
for (const contender of contenders) {
  if (offered === undefined || (contender !== floor && contender !== json)) await warmUp(generator, contender);
}

const results = new Map<string, Result[]>(names.map((name) => [name, []]));
const storeCalls = { roundTrips: 0, forgedReads: 0 };
const before = await outcomes(rotating);
let rounds = 0;
for (let roundTime = 0; rounds < LEAST_ROUNDS || elapsed() + roundTime < seconds - 1; rounds++) {
  const start = elapsed();
  for (const contender of contenders) {
    await refill(generator, contender);
    const callsBefore = await calls.read();
    results.get(contender.name)?.push(await takeTurn(generator, contender, Number(options.slice)));
    const callsAfter = await calls.read();
    if (contender.name === "json") {
      const sweeps = between(callsBefore, callsAfter, "zrange") / PARTITIONS;
      storeCalls.roundTrips += between(callsBefore, callsAfter, "evalsha") - sweeps;
    }
    // Every script that uses a session reads its record with GET, so the number of GETs is the number of sessions read.
    if (contender.name === "forged") storeCalls.forgedReads += between(callsBefore, callsAfter, "get");
  }
  roundTime = elapsed() - start;
  log(`round ${rounds + 1}`);
}
const after = await outcomes(rotating);

const measured = new Map<string, Measured>();
for (const { name, title, expected } of contenders) {
  measured.set(name, { title, expected, results: results.get(name) ?? [] });
}
const servers = [...measured.values(), ...(offered ?? [])];
const rotated = Object.entries(after).map(([outcome, count]) => `${count - (before[outcome] ?? 0)} ${outcome}`);
const report = {
  seconds: elapsed(),
  rounds,
  pinned,
  servers,
  figures: figuresOf({ measured, offered, storeCalls }),
  remarks: [
    `outcomes on this service with REUSE_INTERVAL=0: ${rotated.join(", ")}; "repeating" runs on the default of 10s`,
    `resident memory after the load: ${residentMemory(rotating.pid)?.toFixed(0) ?? "unknown"} MiB`,
    "node-oidc-provider is not measured",
  ],
};
process.stdout.write(
  options.json ? `${asJson(report)}\n` : `${asTable(report)}\n${costTable(measured)}\n\n${machine(serverVersion())}\n`,
);
// A service that profiles itself writes its profile when it is stopped.
await Promise.all([rotating.stop(), service.stop()]);
// The exit handler of processes.ts ends the other processes of the run.
process.exit(servers.some((server) => strangers(server) !== undefined) ? 1 : 0);
