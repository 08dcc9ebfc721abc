// Measures what the revocation feed costs: many watchers, each on a separate HTTP/1.1 connection, and logouts at a steady rate, on the
// embedded store.
//
//     npm run bench:watchers [-- --watchers 900] [--rate 100] [--seconds 10] [--rounds 1] [--http2] [--relays 0] [--levels 1]
//                             [--baseline <another checkout>]
//
// For each version and round, it prints the CPU time of the service per delivered frame and as a share of a core, the delay from the logout
// to each watcher, the time that a logout takes, and how many revocations a watcher has missed. `--watchers 0` measures the logouts alone.
// The admin listener accepts at most 1,000 connections. With `--relays`, that many relays serve the watchers, and the CPU time is that of
// the service alone. `--levels 3` inserts a chain of two more relays between the service and the relays that serve the watchers.
import { fork } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { Agent, request } from "node:http";
import { connect } from "node:http2";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { cpuTime } from "./refresh/proc.ts";
import { ROOT, scratch, start } from "./refresh/processes.ts";
import { ADMIN_TOKEN, ISSUER } from "./refresh/service.ts";

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
  const service = await start("server", ["src/main.ts"], {
    cwd: root,
    env: {
      ...{ PORT: "0", ADMIN_PORT: "0", DATA_DIR: join(scratch(), "data"), ADMIN_TOKENS: ADMIN_TOKEN, ISSUER },
      ...{ LOG_LEVEL: "error", DRAIN_DELAY: "0", OVERLOAD_MAX_LOOP_DELAY: "10s", MAX_CONNECTIONS_PER_ADDRESS: "20000" },
    },
  });
  const url = (JSON.parse(service.line) as { admin: string }).admin;
  const relays = await startRelays(root, url);
  const child = fork(import.meta.filename, ["watch"]);
  const order = async (given: Order) => {
    child.send(given);
    return (await once(child, "message"))[0] as unknown;
  };
  try {
    const seconds = argument("--seconds", 10);
    const sids = await createSessions(url, Math.round(argument("--rate", 100) * (seconds + 1)));
    const urls = relays.last.length === 0 ? [url] : relays.last.map(urlOf);
    await order({ urls, watchers, http2: process.argv.includes("--http2") });
    await end(url, sids.splice(0, argument("--rate", 100))); // The logouts of the first second warm up the service.
    await sleep(1000);
    await order("report");
    const [cpu, startedAt] = [cpuTime(service.pid) ?? 0, performance.now()];
    const ended = await end(url, sids);
    const used = (cpuTime(service.pid) ?? 0) - cpu;
    const elapsedS = (performance.now() - startedAt) / 1000;
    await sleep(1000);
    const { frames, arrivedAt } = (await order("report")) as Arrivals;
    const delays = ended.flatMap(({ sid, beganAt }) => (arrivedAt[sid] ?? []).map((at) => at - beganAt));
    return {
      cpuPerFrameUs: Math.round((used / frames) * 1e7) / 10,
      cpuPerDeliveryUs: Math.round((used / delays.length) * 1e7) / 10,
      core: `${Math.round((used / elapsedS) * 100)} %`,
      delayMs: percentiles(delays),
      logoutMs: percentiles(ended.map(({ tookMs }) => tookMs)),
      missed: ended.length * watchers - delays.length,
    };
  } finally {
    child.kill();
    for (const relay of [...relays.last, ...relays.between]) await relay.stop();
    await service.stop();
  }
}

async function startRelays(root: string, url: string) {
  const watchers = join(scratch(), "watchers.json");
  const hash = createHash("sha256").update(ADMIN_TOKEN).digest("hex");
  const admins = [{ name: "bench", hash, scopes: ["watch"] }];
  writeFileSync(watchers, JSON.stringify({ admins }), { mode: 0o600 });
  const one = (upstream: string) => {
    const args = ["src/main.ts", "relay", "--url", upstream, "--watchers", watchers, "--port", "0"];
    return start("server", args, { cwd: root, env: { ADMIN_TOKEN } });
  };
  const count = argument("--relays", 0);
  const between: Awaited<ReturnType<typeof one>>[] = [];
  let upstream = url;
  for (let level = 1; count > 0 && level < argument("--levels", 1); level++) {
    const relay = await one(upstream);
    between.push(relay);
    upstream = urlOf(relay);
  }
  const last = await Promise.all(Array.from({ length: count }, () => one(upstream)));
  return { between, last };
}

function urlOf({ line }: { readonly line: string }): string {
  return (JSON.parse(line) as { url: string }).url;
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
