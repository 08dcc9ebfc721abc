/**
 * `npm run bench:start` measures how soon the built package serves requests. It measures the times from the command to the ready line, to
 * the first response to CreateSession and to the first response to a refresh. It also measures the slowest and the median of the first
 * requests, and the memory of an idle service. Both stores are measured in turns. Except for the CPU times, the figures need an otherwise
 * idle machine.
 *
 * `npm run bench:start -- --baseline <folder>` compares with another build (a `dist/packages` folder). `--starts` is the number of starts
 * of each build.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { buildPackages } from "../../deploy/packages/build.ts";
import { freePort } from "../support/free-port.ts";
import { RedisServer } from "../support/redis.ts";
import { cpuTime, residentMemory } from "./refresh/proc.ts";

/** The number of requests after the ready line. Every second one is a refresh. */
const REQUESTS = 200;
/** How long after the last request a service counts as idle, in ms. */
const REST_MS = 45_000;
const BUILT = join(import.meta.dirname, "../../dist/packages");
const ADMIN_TOKEN = "bench-admin-token-bench-admin-token";

/** The figures of one start, in ms since the command. `cpu…` is the CPU time of all threads. */
type Figures = {
  readonly ready: number;
  readonly created: number;
  readonly refreshed: number;
  readonly cpuReady: number;
  readonly cpuRefreshed: number;
  readonly median: number;
  readonly slowest: number;
  readonly refused: number;
};

type Contender = { readonly name: string; readonly command: string; readonly env: Readonly<Record<string, string>> };

const { values: options } = parseArgs({
  options: { baseline: { type: "string" }, starts: { type: "string", default: "11" } },
});
const STARTS = Number(options.starts);
const directory = mkdtempSync(join(tmpdir(), "bench-start-"));
const agent = new Agent({ keepAlive: true });

type Reply = { readonly status: number; readonly body: string; readonly cookie: string };

/** How many requests were refused as unavailable and sent again. On an idle machine there are none. */
let refusals = 0;

async function post(url: string, headers: Readonly<Record<string, string>>, body?: object): Promise<Reply> {
  const reply = await send(url, headers, body);
  if (reply.status === 200) return reply;
  if (reply.status !== 503) throw new Error(`${url}: ${reply.status} ${reply.body}`);
  refusals++;
  return post(url, headers, body);
}

function send(url: string, headers: Readonly<Record<string, string>>, body?: object): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method: "POST", agent, headers }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.once("end", () => {
        const { statusCode: status = 0, headers: received } = response;
        resolve({ status, body: text, cookie: pairOf(received["set-cookie"]?.[0] ?? "") });
      });
    });
    sent.once("error", reject);
    sent.end(body && JSON.stringify(body));
  });
}

const pairOf = (header: string) => header.split(";", 1)[0] ?? "";
const cpuMs = ({ pid = 0 }: ChildProcess) => (cpuTime(pid) ?? Number.NaN) * 1000;

async function measure({ command, env }: Contender): Promise<{ service: ChildProcess; figures: Figures }> {
  refusals = 0;
  const startedAt = performance.now();
  const since = () => performance.now() - startedAt;
  const service = spawn(process.execPath, [command], { env, stdio: ["ignore", "pipe", "ignore"] });
  const [output] = (await once(service.stdout, "data")) as [Buffer];
  const ready = since();
  const cpuReady = cpuMs(service);
  service.stdout.resume();
  const urls = JSON.parse(output.toString().split("\n", 1)[0] ?? "") as { public: string; admin: string };
  const credentials = { authorization: `Bearer ${ADMIN_TOKEN}`, "content-type": "application/json" };
  const create = (subject: string) =>
    post(`${urls.admin}/auth.admin.v1.SessionAdminService/CreateSession`, credentials, { subject });
  const durations: number[] = [];
  const timed = async <T>(step: () => Promise<T>): Promise<T> => {
    const begunAt = performance.now();
    const result = await step();
    durations.push(performance.now() - begunAt);
    return result;
  };
  const { body } = await timed(() => create("first"));
  const created = since();
  let cookie = pairOf((JSON.parse(body) as { setCookie: string }).setCookie);
  const refresh = async () => {
    ({ cookie } = await timed(() => post(`${urls.public}/v1/auth/refresh`, { cookie })));
  };
  await refresh();
  const refreshed = since();
  const cpuRefreshed = cpuMs(service);
  while (durations.length < REQUESTS) {
    await timed(() => create(`subject-${durations.length}`));
    await refresh();
  }
  const [median, slowest] = [medianOf(durations), Math.max(...durations)];
  return {
    service,
    figures: { ready, created, refreshed, cpuReady, cpuRefreshed, median, slowest, refused: refusals },
  };
}

async function stop(service: ChildProcess): Promise<void> {
  const exited = once(service, "exit");
  service.kill("SIGINT");
  await exited;
}

const medianOf = (values: readonly number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

/** Returns a contender for each store with a build. */
function contendersOf(name: string, packages: string, redisUrl: string): Contender[] {
  const command = join(packages, "service/bin/session-service.cjs");
  const common = {
    PATH: process.env.PATH ?? "",
    PORT: "0",
    ADMIN_PORT: "0",
    ADMIN_TOKENS: ADMIN_TOKEN,
    // A busy machine must not count as overload.
    OVERLOAD_MAX_LOOP_DELAY: "10s",
  };
  const keysFile = join(directory, `${name}-keys.json`);
  spawnSync(process.execPath, [command, "keys", "create", "--file", keysFile]);
  return [
    { name: `${name}, embedded`, command, env: { ...common, DATA_DIR: join(directory, `${name}-data`) } },
    {
      name: `${name}, Redis`,
      command,
      env: { ...common, REDIS_URL: redisUrl, KEYS_FILE: keysFile, ISSUER: "http://127.0.0.1:8080" },
    },
  ];
}

buildPackages(["service"]);
const redis = new RedisServer(await freePort(), []);
await redis.start();
const contenders = [
  ...contendersOf("this build", BUILT, redis.url),
  ...(options.baseline === undefined ? [] : contendersOf("baseline", options.baseline, redis.url)),
];
const first = new Map<Contender, Figures>();
const later = new Map<Contender, Figures[]>(contenders.map((contender) => [contender, []]));
for (let round = 0; round <= STARTS; round++) {
  for (const contender of contenders) {
    // Redis forgets the scripts, as after a restart.
    await redis.admin.script("FLUSH");
    const { service, figures } = await measure(contender);
    await stop(service);
    if (round === 0) first.set(contender, figures);
    else later.get(contender)?.push(figures);
  }
}
for (const contender of contenders) {
  const { service } = await measure(contender);
  await sleep(REST_MS);
  const atRest = residentMemory(service.pid ?? 0);
  await stop(service);
  const all = later.get(contender) ?? [];
  const median = (figure: keyof Figures) => medianOf(all.map((figures) => figures[figure]));
  const ratio = medianOf(all.map(({ slowest, median: usual }) => slowest / usual));
  const ms = (value = Number.NaN) => `${value.toFixed(0)} ms`;
  console.log(
    `${contender.name}: ready after ${ms(median("ready"))}, response to the first CreateSession after ${ms(median("created"))}, ` +
      `to the first refresh after ${ms(median("refreshed"))} (medians of ${STARTS}; the very first start: ready after ` +
      `${ms(first.get(contender)?.ready)}, refresh after ${ms(first.get(contender)?.refreshed)}); ` +
      `CPU until ready ${ms(median("cpuReady"))}, until that refresh ${ms(median("cpuRefreshed"))}; ` +
      `of ${REQUESTS} requests the slowest took ${ratio.toFixed(1)} of the median (${median("median").toFixed(2)} ms); ` +
      `refused at first in all: ${all.reduce((sum, { refused }) => sum + refused, 0)}; at rest ${atRest?.toFixed(0)} MiB`,
  );
}
console.log(`load ${loadavg()[0]?.toFixed(1)}`);
agent.destroy();
await redis.stop();
rmSync(directory, { recursive: true });
