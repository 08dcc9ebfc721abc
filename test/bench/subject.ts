/**
 * `npm run bench:subject` measures how the costs of a subject's sessions grow with their number. On Redis it measures the time of each
 * script by SLOWLOG; on the embedded store, how long each step blocks the event loop. On a busy machine only ratios of minima or medians
 * are meaningful.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { loadavg, tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import type { SessionId } from "../../src/service/session/model.ts";
import type { SessionStore } from "../../src/service/session/ports.ts";
import { systemClock } from "../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../src/service/store/embedded/store.ts";
import { loadScripts } from "../../src/service/store/redis/scripts.ts";
import { createRedisStore } from "../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { redisOptions } from "../support/store/backends.ts";
import { MARKER_LIFE, newSession, nonce, REUSE_INTERVAL, subject } from "../support/store/sessions.ts";
import { until } from "../support/until.ts";

const COUNTS = [100, 1_000, 10_000];
const CREATIONS = 200;
const PAGES = 100;
const PAGE_SIZE = 20;
const ROUNDS = 5;

/** Creates sessions until a subject has this many. @param cap the cap on its sessions */
async function fill(store: SessionStore, user: string, count: number): Promise<SessionId> {
  let last = newSession(user);
  for (let at = 0; at < count; at += 100) {
    const batch = Array.from({ length: Math.min(100, count - at) }, () => newSession(user));
    await Promise.all(batch.map((session) => store.create(session, nonce(), count)));
    last = batch.at(-1) ?? last;
  }
  return last.sid;
}

async function createAtCap(store: SessionStore, user: string, cap: number): Promise<void> {
  for (let at = 0; at < CREATIONS; at++) await store.create(newSession(user), nonce(), cap);
}

async function listPages(store: SessionStore, user: string): Promise<void> {
  let from: string | undefined;
  for (let at = 0; at < PAGES; at++) from = (await store.list(user, PAGE_SIZE, from)).next;
}

/** Ends all sessions but one while another caller uses the store. Returns the longest wait of that caller, in ms. */
async function endOthers(store: SessionStore, user: string, spared: SessionId, count: number): Promise<number> {
  let longest = 0;
  let ended = false;
  const asking = (async () => {
    while (!ended) {
      const startedAt = performance.now();
      await store.find(spared);
      longest = Math.max(longest, performance.now() - startedAt);
    }
  })();
  const outcome = await store.endAll(user, "revoked_others", { except: spared, actor: spared });
  ended = true;
  await asking;
  if (!outcome.ok || outcome.count !== count - 1)
    throw new Error(`not all were ended: ${JSON.stringify(outcome).slice(0, 80)}`);
  return longest;
}

const names = new Map(Object.entries(loadScripts()).map(([name, { sha }]) => [sha, name]));

/** Returns the times of the scripts that ran since the last call, by name, in µs. */
async function scriptTimes({ admin }: RedisServer): Promise<Map<string, number[]>> {
  const log = (await admin.call("SLOWLOG", "GET", "-1")) as [number, number, number, string[]][];
  await admin.call("SLOWLOG", "RESET");
  const times = new Map<string, number[]>();
  for (const [, , time, [command = "", sha = ""]] of log) {
    const name = command.toLowerCase() === "evalsha" ? names.get(sha) : undefined;
    if (name !== undefined) times.set(name, [...(times.get(name) ?? []), time]);
  }
  return times;
}

/** Returns the processor time that Redis has used, in s. It does not depend on what else the machine does. */
async function cpuTime({ admin }: RedisServer): Promise<number> {
  const info = await admin.info("cpu");
  return [...info.matchAll(/^used_cpu_(?:user|sys):([\d.]+)/gm)].reduce((sum, [, time]) => sum + Number(time), 0);
}

function row(name: string, times: readonly number[] = []): string {
  const sorted = times.toSorted((a, b) => a - b);
  const ms = (at: number) =>
    ((sorted[Math.floor(at * (sorted.length - 1))] ?? Number.NaN) / 1_000).toFixed(3).padStart(9);
  return `  ${name.padEnd(28)}${String(sorted.length).padStart(7)}${ms(0)}${ms(0.5)}${ms(0.99)}${ms(1)}`;
}

async function onRedis(): Promise<void> {
  const redis = await startRedis();
  const store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 10_000 }));
  await until(() => store.ping());
  await redis.admin.config("SET", "slowlog-log-slower-than", "0");
  await redis.admin.config("SET", "slowlog-max-len", "100000");
  console.log(`Redis, ms: ${"".padEnd(19)}  scripts    least   median      p99  longest`);
  for (const count of COUNTS) {
    const ends: number[] = [];
    let cpu = 0;
    const waits: number[] = [];
    console.log(`${count} sessions of a subject`);
    for (let round = 0; round < ROUNDS; round++) {
      const user = subject();
      await fill(store, user, count);
      await scriptTimes(redis);
      const isFirst = round === 0;
      if (isFirst) {
        await createAtCap(store, user, count + CREATIONS);
        console.log(row("creation", (await scriptTimes(redis)).get("create")));
        await createAtCap(store, user, count);
        const times = await scriptTimes(redis);
        console.log(row("creation at the cap", times.get("create")));
        console.log(row("  what has expired?", times.get("sweep")));
        await listPages(store, user);
        console.log(row("page of 20", (await scriptTimes(redis)).get("list")));
      }
      const { sessions } = await store.list(user, 1, undefined);
      const spared = sessions[0]?.sid as SessionId;
      await scriptTimes(redis);
      const before = await cpuTime(redis);
      waits.push((await endOthers(store, user, spared, count)) * 1_000);
      cpu += (await cpuTime(redis)) - before;
      const times = await scriptTimes(redis);
      ends.push(...(times.get("end_all") ?? []), ...(times.get("end_rest") ?? []));
    }
    console.log(row(`revokeOthers, ${ROUNDS} times`, ends));
    console.log(
      `    CPU of Redis, others' questions included: ${((cpu / ends.length) * 1_000).toFixed(3)} for each script`,
    );
    console.log(row("  longest wait of others", waits));
  }
  await store.close();
  await redis.stop();
}

async function onEmbedded(): Promise<void> {
  const directory = mkdtempSync(join(tmpdir(), "bench-subject-"));
  const store = createEmbeddedStore({
    path: join(directory, "sessions.db"),
    clock: systemClock,
    reuseIntervalMs: REUSE_INTERVAL,
    markerLifeMs: MARKER_LIFE,
  });
  /** Measures how long each call runs before it releases the event loop for the first time, in µs. */
  const held = async (times: number, step: (at: number) => Promise<unknown>): Promise<number[]> => {
    const found: number[] = [];
    for (let at = 0; at < times; at++) {
      const startedAt = performance.now();
      const pending = step(at);
      found.push((performance.now() - startedAt) * 1_000);
      await pending;
    }
    return found;
  };
  console.log(`embedded, ms: ${"".padEnd(16)}    calls    least   median      p99  longest`);
  for (const count of COUNTS) {
    console.log(`${count} sessions of a subject`);
    const user = subject();
    await fill(store, user, count);
    console.log(
      row("creation", await held(CREATIONS, () => store.create(newSession(user), nonce(), count + CREATIONS))),
    );
    console.log(
      row("creation at the cap", await held(CREATIONS, () => store.create(newSession(user), nonce(), count))),
    );
    let from: string | undefined;
    const page = async () => {
      from = (await store.list(user, PAGE_SIZE, from)).next;
    };
    console.log(row("page of 20", await held(PAGES, page)));
    const spared = (await store.list(user, 1, undefined)).sessions[0]?.sid as SessionId;
    const delay = monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    const startedAt = performance.now();
    await endOthers(store, user, spared, count);
    const took = performance.now() - startedAt;
    delay.disable();
    console.log(
      `  revokeOthers: ${took.toFixed(0)} ms; event loop held up at most ${(delay.max / 1e6).toFixed(1)} ms, median ${(delay.percentile(50) / 1e6).toFixed(1)} ms`,
    );
  }
  await store.close();
  rmSync(directory, { recursive: true });
}

console.log(`load ${loadavg()[0]?.toFixed(1)}`);
await onRedis();
await onEmbedded();
