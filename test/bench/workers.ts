/**
 * `npm run bench:workers` compares refreshes on one worker with those on several (`WORKERS`), in turns. Each client opens new connections
 * in each round, because the system distributes connections, not requests.
 *
 *     npm run bench:workers -- [--workers 2] [--rounds 11] [--slice 1] [--share 0.4]
 *
 * The load and Redis need two cores beside those of the workers. On a machine with fewer cores, `--share` limits each worker to a share of
 * a core by a control group (as root), so that the load and Redis have the rest. Without `--share`, such a machine gives a meaningful CPU
 * time per request, but no meaningful rate. `cores` is the number of cores that the service kept busy. The exit code is 1 if a response has
 * an unexpected status.
 */
import { availableParallelism, loadavg } from "node:os";
import { parseArgs } from "node:util";
import { median } from "../support/median.ts";
import { limitCpu } from "./refresh/cpu-quota.ts";
import { childrenOf, cpuTime } from "./refresh/proc.ts";
import { type Generator, startGenerator, startRedis } from "./refresh/processes.ts";
import { refreshJson } from "./refresh/requests.ts";
import { createKeys, logIn, type Service, startService, type World } from "./refresh/service.ts";

const { values: options } = parseArgs({
  options: {
    workers: { type: "string", default: "2" },
    rounds: { type: "string", default: "11" },
    slice: { type: "string", default: "1" },
    share: { type: "string" },
  },
});
/** The number of clients of each load generator. */
const CLIENTS = 32;
const WARM_ROUNDS = 3;

type Round = { readonly rate: number; readonly cpuUs: number; readonly cores: number };
type Contender = { readonly service: Service; readonly generators: readonly Generator[]; readonly rounds: Round[] };

/** Returns the processor time that the supervisor and its workers have used, in s. */
const cpuOf = ({ pid }: Service) =>
  [pid, ...childrenOf(pid)].reduce((sum, each) => sum + (cpuTime(each) ?? Number.NaN), 0);

/** @param generators how many load generators run, because a single one may be slower than the workers */
async function open(world: World, workers: number, generators: number): Promise<Contender> {
  // Without a reuse interval each refresh returns a new token. Otherwise these clients would get the token of their previous response once
  // more, because they refresh again within the interval.
  const env = { WORKERS: String(workers), REUSE_INTERVAL: "0" };
  const service = await startService(world, env, "anywhere");
  const processes = workers === 1 ? [service.pid] : childrenOf(service.pid);
  if (options.share !== undefined) for (const pid of processes) limitCpu(pid, Number(options.share));
  const started = Array.from({ length: generators }, () => startGenerator("anywhere"));
  for (const generator of started) {
    const credentials = (await logIn(service, CLIENTS)).map(({ refreshToken }) => refreshToken);
    await generator.load({
      name: "refresh",
      port: service.port,
      ...refreshJson(service.port),
      use: "adopt",
      credentials,
    });
  }
  return { service, generators: started, rounds: [] };
}

async function takeTurn({ service, generators }: Contender): Promise<Round> {
  const [before, begin] = [cpuOf(service), performance.now()];
  const slice = { name: "refresh", seconds: Number(options.slice) };
  const loads = await Promise.all(generators.map((generator) => generator.run(slice)));
  const [cpu, seconds] = [cpuOf(service) - before, (performance.now() - begin) / 1000];
  const statuses = new Set(loads.flatMap(({ responses }) => Object.keys(responses)));
  if (statuses.size !== 1 || !statuses.has("200")) {
    process.stderr.write(
      `unexpected responses: ${loads.map(({ responses }) => JSON.stringify(responses)).join(" ")}\n`,
    );
    process.exit(1);
  }
  const requests = loads.reduce((sum, load) => sum + load.rate * load.seconds, 0);
  return { rate: requests / seconds, cpuUs: (cpu * 1e6) / requests, cores: cpu / seconds };
}

const workers = Number(options.workers);
const redis = await startRedis();
const world = { redisPort: redis.port, keysFile: await createKeys() };
const contenders = [await open(world, 1, workers), await open(world, workers, workers)] as const;
for (let round = -WARM_ROUNDS; round < Number(options.rounds); round++) {
  for (const contender of contenders) {
    const taken = await takeTurn(contender);
    if (round >= 0) contender.rounds.push(taken);
  }
}

const [one, several] = contenders;
const middle = (rounds: readonly Round[], figure: keyof Round) => median(rounds.map((round) => round[figure]));
const ratio = (figure: keyof Round) =>
  median(several.rounds.map((round, i) => round[figure] / (one.rounds[i]?.[figure] ?? Number.NaN)));
const row = (name: string, { rounds }: Contender) =>
  `${name.padEnd(10)} ${middle(rounds, "rate").toFixed(0).padStart(8)} ${middle(rounds, "cpuUs").toFixed(0).padStart(8)} ${middle(rounds, "cores").toFixed(2).padStart(6)}`;
console.log(`processors ${availableParallelism()}, load average ${loadavg()[0]?.toFixed(1)}, rounds ${options.rounds}`);
console.log("workers      rate/s   CPU µs  cores");
console.log(row("1", one));
console.log(row(String(workers), several));
console.log(`ratio: rate ${ratio("rate").toFixed(2)}, CPU of a request ${ratio("cpuUs").toFixed(3)}`);
process.exit(0);
