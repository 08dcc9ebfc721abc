// Measures what the revocation feed costs: many watchers, each on a separate HTTP/1.1 connection, and logouts at a steady rate, on the
// embedded store, or with several instances on Redis.
//
//     npm run bench:watchers [-- --watchers 900] [--rate 100] [--seconds 10] [--rounds 1] [--http2] [--instances 1]
//                             [--baseline <another checkout>]
//
// For each version and round, it prints the CPU time of the service per delivered frame and as a share of a core, the delay from the logout
// to each watcher, the time that a logout takes, and how many revocations a watcher has missed. `--watchers 0` measures the logouts alone.
// The admin listener accepts at most 1,000 connections, so more watchers need more instances. The CPU time is that of all instances.
import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { connect } from "node:http2";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuTime } from "./refresh/proc.ts";
import { ROOT, scratch, start, startRedis } from "./refresh/processes.ts";
import { ADMIN_TOKEN, createKeys, ISSUER } from "./refresh/service.ts";

const PATH = "/auth.admin.v1.SessionAdminService/";
const HEADERS = { authorization: `Bearer ${ADMIN_TOKEN}` };
/** Finds the ids of revoked sessions in the text of messages. Parsing the messages would take CPU time from the service. */
const SESSION_ID = /"sessionId":"([^"]+)"/g;

type Order = { readonly urls: readonly string[]; readonly watchers: number; readonly http2: boolean } | "report";
type Arrivals = { readonly frames: number; readonly arrivedAt: Readonly<Record<string, readonly number[]>> };

const agent = new Agent({ keepAlive: true, maxSockets: 64 });

if (process.argv[2] === "watch") watchFor();
else await measure();

/** Opens watches in a separate process, and reports when each revocation arrived at each of them. */
function watchFor(): void {
  const arrivedAt = new Map<string, number[]>();
  let frames = 0;
  const note = (chunk: Buffer) => {
    const now = performance.timeOrigin + performance.now();
    const text = chunk.toString("latin1");
    frames++;
    for (const [, sid = ""] of text.matchAll(SESSION_ID)) {
      const times = arrivedAt.get(sid);
      if (times === undefined) arrivedAt.set(sid, [now]);
      else times.push(now);
    }
  };
  const headers = { ...HEADERS, "content-type": "application/connect+json" };
  const body = Buffer.from("\0\0\0\0\x02{}");
  const open = async (url: string, http2: boolean) => {
    if (http2) {
      const stream = connect(url).request({ ":method": "POST", ":path": `${PATH}WatchRevocations`, ...headers });
      stream.end(body).on("data", note);
      await once(stream, "data");
    } else {
      const asked = request(`${url}${PATH}WatchRevocations`, { method: "POST", headers, agent: false });
      asked.end(body);
      const [response] = await once(asked, "response");
      response.on("data", note);
    }
  };
  process.on("message", async (order: Order) => {
    if (order === "report") {
      process.send?.({ frames, arrivedAt: Object.fromEntries(arrivedAt) } satisfies Arrivals);
      arrivedAt.clear();
      frames = 0;
      return;
    }
    for (let opened = 0; opened < order.watchers; opened++) {
      await open(order.urls[opened % order.urls.length] ?? "", order.http2);
    }
    process.send?.("open");
  });
}

function argument(name: string, fallback: number): number {
  const at = process.argv.indexOf(name);
  return at === -1 ? fallback : Number(process.argv[at + 1]);
}

async function measure(): Promise<void> {
  const baselineAt = process.argv.indexOf("--baseline");
  const roots = [ROOT, ...(baselineAt === -1 ? [] : [process.argv[baselineAt + 1] ?? ""])];
  for (let round = 0; round < argument("--rounds", 1); round++) {
    for (const [at, root] of roots.entries()) console.log(at === 0 ? "here" : "baseline", await measureOne(root));
  }
}

async function measureOne(root: string) {
  const watchers = argument("--watchers", 900);
  const { instances, stop } = await startInstances(root);
  const urls = instances.map(({ line }) => (JSON.parse(line) as { admin: string }).admin);
  const [url = ""] = urls;
  const cpuUsed = () => instances.reduce((sum, { pid }) => sum + (cpuTime(pid) ?? 0), 0);
  const child = fork(import.meta.filename, ["watch"]);
  const ended = once(child, "exit").then(() => Promise.reject(new Error("the process of the watchers has ended")));
  ended.catch(() => {}); // It also ends when the measurement is over.
  const order = async (given: Order) => {
    child.send(given);
    return (await Promise.race([once(child, "message"), ended]))[0] as unknown;
  };
  try {
    const seconds = argument("--seconds", 10);
    const sids = await createSessions(url, Math.round(argument("--rate", 100) * (seconds + 1)));
    await order({ urls, watchers, http2: process.argv.includes("--http2") });
    await end(url, sids.splice(0, argument("--rate", 100))); // The logouts of the first second warm up the service.
    await sleep(1000);
    await order("report");
    const [cpu, startedAt] = [cpuUsed(), performance.now()];
    const logouts = await end(url, sids);
    const used = cpuUsed() - cpu;
    const elapsedS = (performance.now() - startedAt) / 1000;
    await sleep(1000);
    const { frames, arrivedAt } = (await order("report")) as Arrivals;
    const delays = logouts.flatMap(({ sid, beganAt }) => (arrivedAt[sid] ?? []).map((at) => at - beganAt));
    return {
      cpuPerFrameUs: Math.round((used / frames) * 1e7) / 10,
      cpuPerDeliveryUs: Math.round((used / delays.length) * 1e7) / 10,
      core: `${Math.round((used / elapsedS) * 100)} %`,
      delayMs: percentiles(delays),
      logoutMs: percentiles(logouts.map(({ tookMs }) => tookMs)),
      missed: logouts.length * watchers - delays.length,
    };
  } finally {
    child.kill();
    await stop();
  }
}

/** Starts one instance on the embedded store, or several on one Redis. */
async function startInstances(root: string) {
  const count = argument("--instances", 1);
  const redis = count > 1 ? await startRedis() : undefined;
  const store =
    redis === undefined
      ? { DATA_DIR: join(scratch(), "data") }
      : { REDIS_URL: `redis://127.0.0.1:${redis.port}`, KEYS_FILE: await createKeys() };
  const env = {
    ...{ PORT: "0", ADMIN_PORT: "0", ADMIN_TOKENS: ADMIN_TOKEN, ISSUER, ...store },
    ...{ LOG_LEVEL: "error", DRAIN_DELAY: "0", OVERLOAD_MAX_LOOP_DELAY: "10s", MAX_CONNECTIONS_PER_ADDRESS: "20000" },
  };
  const one = () => start("server", ["src/service/main.ts"], { cwd: root, env });
  const instances = await Promise.all(Array.from({ length: count }, one));
  const stop = async () => {
    for (const instance of instances) await instance.stop();
    await redis?.stop();
  };
  return { instances, stop };
}

async function call(url: string, rpc: string, message: object): Promise<Record<string, unknown>> {
  const headers = { ...HEADERS, "content-type": "application/json" };
  const asked = request(`${url}${PATH}${rpc}`, { method: "POST", headers, agent }).end(JSON.stringify(message));
  const [response] = await once(asked, "response");
  const text = Buffer.concat(await response.toArray()).toString();
  if (response.statusCode === 503) return call(url, rpc, message); // The machine is busy, so the call is repeated.
  if (response.statusCode !== 200) throw new Error(`${rpc}: ${response.statusCode} ${text}`);
  return JSON.parse(text);
}

async function createSessions(url: string, count: number): Promise<string[]> {
  const sids: string[] = [];
  const one = async () => {
    while (sids.length < count) {
      const { session } = await call(url, "CreateSession", { subject: `subject-${sids.length}`, clientId: "bench" });
      sids.push((session as { sessionId: string }).sessionId);
    }
  };
  await Promise.all(Array.from({ length: 8 }, one));
  return sids.slice(0, count);
}

/** Ends the sessions at the given rate, however long each call takes. */
async function end(url: string, sids: readonly string[]) {
  const startedAt = performance.now();
  const calls = sids.map(async (sid, at) => {
    await sleep(Math.max(0, startedAt + (at * 1000) / argument("--rate", 100) - performance.now()));
    const beganAt = performance.timeOrigin + performance.now();
    await call(url, "RevokeSession", { sessionId: sid });
    return { sid, beganAt, tookMs: performance.timeOrigin + performance.now() - beganAt };
  });
  return Promise.all(calls);
}

function percentiles(values: number[]) {
  values.sort((a, b) => a - b);
  const at = (share: number) => Math.round((values[Math.floor(values.length * share)] ?? Number.NaN) * 10) / 10;
  return { p50: at(0.5), p99: at(0.99) };
}
