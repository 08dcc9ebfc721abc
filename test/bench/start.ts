/**
 * `npm run bench:start` measures how soon the built package serves requests. It measures the times from the command to the ready line, to
 * the first response to CreateSession and to the first response to a refresh. It also measures the slowest and the median of the first
 * requests, and then the memory. Both stores are measured in turns. Except for the CPU times, the times need an otherwise idle machine.
 *
 * `npm run bench:start -- --baseline <folder>` compares with another build (a `dist/packages` folder). `--starts` is the number of starts
 * of each build.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildPackages } from "../../deploy/packages/build.ts";
import { freePort } from "../support/free-port.ts";
import { median } from "../support/median.ts";
import { RedisServer, serverVersion } from "../support/redis.ts";
import { machine, table } from "./machine.ts";
import { cpuTime } from "./refresh/proc.ts";
import { memoryTable } from "./start/memory.ts";
import { ADMIN_HEADERS, type Contender, CREATE_SESSION, contendersOf, pairOf } from "./start/package.ts";

/** The number of requests after the ready line. Every second one is a refresh. */
const REQUESTS = 200;
const BUILT = join(import.meta.dirname, "../../dist/packages");

/** The figures of one start, in ms since the command. `cpu…` is the CPU time of all threads. */
type Figures = {
  readonly ready: number;
  readonly created: number;
  readonly refreshed: number;
  readonly cpuReady: number;
  readonly cpuRefreshed: number;
  readonly usual: number;
  readonly slowest: number;
  readonly refused: number;
};

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
  const create = (subject: string) => post(urls.admin + CREATE_SESSION, ADMIN_HEADERS, { subject });
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
  const [usual, slowest] = [median(durations), Math.max(...durations)];
  return {
    service,
    figures: { ready, created, refreshed, cpuReady, cpuRefreshed, usual, slowest, refused: refusals },
  };
}

buildPackages(["service"]);
const redis = new RedisServer(await freePort(), []);
await redis.start();
const contenders = [
  ...contendersOf("this build", BUILT, redis.url, directory),
  ...(options.baseline === undefined ? [] : contendersOf("baseline", options.baseline, redis.url, directory)),
];
const first = new Map<Contender, Figures>();
const later = new Map<Contender, Figures[]>(contenders.map((contender) => [contender, []]));
for (let round = 0; round <= STARTS; round++) {
  for (const contender of contenders) {
    // Redis forgets the scripts, as after a restart.
    await redis.admin.script("FLUSH");
    const { service, figures } = await measure(contender);
    service.kill("SIGINT");
    await once(service, "exit");
    if (round === 0) first.set(contender, figures);
    else later.get(contender)?.push(figures);
  }
}
const ms = (value = Number.NaN) => `${value.toFixed(0)} ms`;
const starts = contenders.map((contender) => {
  const all = later.get(contender) ?? [];
  const of = (figure: keyof Figures) => median(all.map((figures) => figures[figure]));
  console.error(
    `${contender.name}: the very first start: ready after ${ms(first.get(contender)?.ready)}, refresh after ` +
      `${ms(first.get(contender)?.refreshed)}; of ${REQUESTS} requests the slowest took ` +
      `${median(all.map(({ slowest, usual }) => slowest / usual)).toFixed(1)} of the median ` +
      `(${of("usual").toFixed(2)} ms); refused at first in all: ${all.reduce((sum, { refused }) => sum + refused, 0)}`,
  );
  const times = [of("ready"), of("created"), of("refreshed"), of("cpuReady"), of("cpuRefreshed")];
  return [contender.name, ...times.map(ms)];
});
const title = [`a start, median of ${STARTS}`, "ready line", "first CreateSession", "first refresh"];
console.log(`${table([...title, "CPU until ready", "until that refresh"], starts)}\n`);
console.log(await memoryTable(contenders));
console.log(`\n${machine(serverVersion())}`);
agent.destroy();
await redis.stop();
rmSync(directory, { recursive: true });
