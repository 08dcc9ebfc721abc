/** Several worker processes behind one command, with the setting `WORKERS`. */
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { type IncomingMessage, request as requestWithBody } from "node:http";
import { afterAll, afterEach, beforeAll, expect, onTestFinished, test } from "vitest";
import { freePort } from "../../support/free-port.ts";
import { startLoad, type Way } from "../../support/load.ts";
import { HANG_MS } from "../../support/patience.ts";
import { request } from "../../support/raw-http.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Process, type Service, spawnService, startService, waitFor, withKeys } from "../../support/service.ts";
import { bearer, logIn } from "../../support/sessions.ts";
import { inTime, until } from "../../support/until.ts";

const WORKERS = 2;
/** All services of this file are one deployment on one Redis. */
const DATA_DIR = withKeys();

/** Each process loads this module first. The module blocks every worker except the first one, before that worker accepts connections. */
const FIRST_WORKER_ALONE = `data:text/javascript,${encodeURIComponent(`
if (process.env.SESSION_SERVICE_WORKER === "next") await new Promise(() => setInterval(() => {}, 1e9));
`)}`;

let redis: RedisServer;
let service: Service | undefined;
beforeAll(async () => {
  redis = await startRedis();
});
afterEach(async () => {
  await service?.stop();
  service = undefined;
});
afterAll(() => redis.stop());

async function startWorkers(more: Readonly<Record<string, string>> = {}): Promise<Service> {
  service = await startService({
    REDIS_URL: redis.url,
    WORKERS: String(WORKERS),
    DATA_DIR,
    ISSUER: "http://auth.example",
    ADMIN_TOKENS: TOKEN,
    // Each client refreshes its session without a pause.
    RATE_LIMIT_REFRESH: "off",
    // The timeout is so long that a busy machine does not count as an outage or a stall.
    REDIS_COMMAND_TIMEOUT: "10s",
    REUSE_INTERVAL: "60s",
    // A busy machine may lack processors for two workers and their load, so overload control is off.
    OVERLOAD_MAX_LOOP_DELAY: "0",
    ...more,
  });
  return service;
}

const TOKEN = "workers".repeat(6);

/** Returns how many processes have reported that they drain. */
const drains = (running: Process) => running.stderr().split('"manner":"drain"').length - 1;

/** Returns the processes that serve requests. */
function workersOf({ pid }: Process): number[] {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8");
  return text.split(" ").filter(Boolean).map(Number);
}

async function count(running: Service, metric: string): Promise<number> {
  const { body } = await request(running.adminUrl, { path: "/metrics" });
  return Number(new RegExp(`^${metric} (\\d+)$`, "m").exec(String(body))?.[1] ?? 0);
}

test("all workers serve the ports of one ready line, and their metrics are one", { timeout: HANG_MS }, async () => {
  const running = await startWorkers();
  expect(running.stdout().trim().split("\n")).toHaveLength(1);
  expect(workersOf(running)).toHaveLength(WORKERS);
  await waitFor(running, () => (running.stderr().includes('"workers_ready"') ? true : undefined));
  for (let created = 1; created <= 4; created++) {
    await logIn(running);
    // Workers report their counts to the supervisor, which may have a count only a moment after the response.
    await until(async () => expect(await count(running, "session_created_total")).toBe(created));
  }
  expect(await running.stop()).toEqual({ code: 0, signal: null });
});

test("a worker that is killed under load costs the requests in flight alone, and is replaced", {
  timeout: HANG_MS,
}, async () => {
  const running = await startWorkers();
  const clients = 3;
  const ways: readonly Way[] = ["keep-alive", "new connections"];
  const loads = await Promise.all(
    ways.map(async (way) => {
      const users = await Promise.all(Array.from({ length: clients }, () => logIn(running)));
      const cookies = users.map(({ refreshToken }) => `refresh_token=${refreshToken}`);
      return startLoad(running.publicUrl, way, cookies);
    }),
  );
  const more = async (requests: number) => {
    const before = loads.map((load) => load.requests());
    await until(async () =>
      expect(loads.every((load, i) => load.requests() >= (before[i] ?? 0) + requests)).toBe(true),
    );
  };
  await more(10);
  const created = clients * ways.length;
  await until(async () => expect(await count(running, "session_created_total")).toBe(created));
  const [victim = 0] = workersOf(running);
  process.kill(victim, "SIGKILL");
  await waitFor(running, () => (running.stderr().includes('"worker_ended"') ? true : undefined));
  await until(async () => expect(workersOf(running).filter((pid) => pid !== victim).length).toBe(WORKERS));
  await more(10);
  await Promise.all(loads.map((load) => load.stop()));
  const failures = loads.flatMap((load) => load.failures);
  // All failures are connections that were lost when a worker was killed, and no session is lost. Each client had at most one request in
  // flight. It may also have opened one connection while the system was closing the worker's listener.
  expect(failures.filter((failure) => !/: (?:ECONNRESET|EPIPE)$/.test(failure))).toEqual([]);
  expect(failures.length).toBeLessThanOrEqual(2 * clients * ways.length);
  await until(async () => expect(await count(running, "session_created_total")).toBe(created));
});

/** The looks of the supervisor for heartbeats come ten times as fast. */
const FASTER_LOOKS = `data:text/javascript,${encodeURIComponent(`
const { setInterval: every } = globalThis;
if (process.env.SESSION_SERVICE_WORKER === undefined) globalThis.setInterval = (then, ms) => every(then, ms / 10);
`)}`;

test("a worker that has stalled is killed and replaced, so that no connection hangs", {
  timeout: HANG_MS,
}, async () => {
  const running = await startWorkers({ NODE_OPTIONS: `--import ${FASTER_LOOKS}` });
  const [stalled = 0] = workersOf(running);
  process.kill(stalled, "SIGSTOP");
  // The system gives the stalled worker its share of these connections.
  const responses = Promise.allSettled(
    Array.from({ length: 20 }, () => request(running.publicUrl, { path: "/healthz" })),
  );
  await waitFor(running, () => (running.stderr().includes('"worker_stalled"') ? true : undefined));
  await inTime("a response, or the loss of the connection, to each request", responses);
  await until(async () => expect(workersOf(running).filter((pid) => pid !== stalled).length).toBe(WORKERS));
  await until(async () => expect(await count(running, 'session_workers_ended_total{cause="stalled"}')).toBe(1));
  expect(await count(running, 'session_workers_ended_total{cause="ended"}')).toBe(0);
});

test("who signs in to the console at one worker is signed in at all, and out of all", {
  timeout: HANG_MS,
}, async () => {
  const running = await startWorkers();
  const ask = (method: string, headers: Readonly<Record<string, string>>, body?: string) =>
    request(running.adminUrl, {
      method,
      path: "/console/session",
      headers: { "x-session-console": "1", "content-type": "application/json", ...headers },
      ...(body !== undefined && { body }),
    });
  const signedIn = await ask("POST", {}, JSON.stringify({ token: TOKEN }));
  const cookie = signedIn.headers.getSetCookie()[0]?.split(";")[0] ?? "";
  // Each request uses a new connection, and there are so many that both workers get some.
  const statuses = async () => {
    const responses = await Promise.all(Array.from({ length: 30 }, () => ask("GET", { cookie })));
    return [...new Set(responses.map(({ status }) => status))];
  };
  expect(await statuses()).toEqual([200]);
  expect((await ask("DELETE", { cookie })).status).toBe(200);
  expect(await statuses()).toEqual([401]);
});

test("an order to stop that arrives while workers start lets those that serve complete their requests", {
  timeout: HANG_MS,
}, async () => {
  const port = await freePort();
  const running = spawnService({
    REDIS_URL: redis.url,
    WORKERS: String(WORKERS),
    DATA_DIR,
    PORT: "0",
    ADMIN_PORT: String(port),
    ADMIN_TOKENS: TOKEN,
    DRAIN_DELAY: "0",
    NODE_OPTIONS: `--import=${FIRST_WORKER_ALONE}`,
  });
  await waitFor(running, () => (workersOf(running).length === WORKERS ? true : undefined));
  const workers = workersOf(running);
  onTestFinished(() => {
    // The second worker is blocked, so it does not notice that its supervisor has ended.
    for (const pid of [running.pid, ...workers]) if (existsSync(`/proc/${pid}`)) process.kill(pid, "SIGKILL");
  });
  const body = '{"subject":"alice"}';
  const creation = requestWithBody({
    port,
    method: "POST",
    path: "/auth.admin.v1.SessionAdminService/CreateSession",
    headers: {
      ...bearer(TOKEN),
      "content-type": "application/json",
      "content-length": String(body.length),
      expect: "100-continue",
    },
  });
  const response = once(creation, "response");
  creation.flushHeaders();
  // The worker has begun to read the request, and waits for its body.
  await once(creation, "continue");
  running.kill("SIGTERM");
  await Promise.race([response, waitFor(running, () => (drains(running) > 1 ? true : undefined))]);
  creation.end(body);
  const [{ statusCode }] = (await response) as [IncomingMessage];
  expect([statusCode, await running.exited]).toEqual([200, { code: 0, signal: null }]);
});

test("a worker that cannot start refuses the start once, with its fault", { timeout: HANG_MS }, async () => {
  const running = await startWorkers();
  const taken = await startService({
    REDIS_URL: redis.url,
    WORKERS: String(WORKERS),
    PORT: String(new URL(running.publicUrl).port),
    DATA_DIR,
  }).catch((error: unknown) => String(error));
  expect(taken).toMatch(/cannot open the public listener .* the port is taken/);
  expect(String(taken).match(/the port is taken/g)).toHaveLength(1);
});
