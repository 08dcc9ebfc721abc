/** The stores under test, each with a clock that the test moves. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Cluster, Redis } from "ioredis";
import { parseRedisUrl, type RedisTarget } from "../../../src/service/config/redis-url.ts";
import type { EndReason } from "../../../src/service/session/model.ts";
import type { EndAllOptions } from "../../../src/service/session/ports.ts";
import { type StoreMs, storeMs, wallMs } from "../../../src/service/session/time.ts";
import type { StoreWithSignals } from "../../../src/service/signals/ports.ts";
import { createEmbeddedStore } from "../../../src/service/store/embedded/store.ts";
import { noteOf } from "../../../src/service/store/event-text.ts";
import { TAGS, tagOfSubject } from "../../../src/service/store/redis/partitions.ts";
import { loadScripts } from "../../../src/service/store/redis/scripts.ts";
import { createRedisStore, type RedisStoreOptions } from "../../../src/service/store/redis/store.ts";
import { startRedis, startRedisCluster } from "../redis.ts";
import { expectSoundFile } from "./file-rows.ts";
import { untilReached } from "./reached.ts";
import { expectSoundKeys, keysWith } from "./redis-keys.ts";
import { MARKER_LIFE, nonce, REUSE_INTERVAL } from "./sessions.ts";

export type Backend = {
  /** Opens another instance on the same data. */
  open(): Promise<StoreWithSignals>;
  now(): StoreMs;
  advance(ms: number): Promise<void>;
  /** Begins to end the many sessions of a subject, and stops after the first step, as if the instance had died. */
  beginEndAll(subject: string, reason: EndReason, options?: Pick<EndAllOptions, "except" | "origin">): Promise<void>;
  /** Runs one more step of the operation that `beginEndAll` has begun, and stops again. */
  endPart(subject: string): Promise<void>;
  /** Returns where the data of the store contain the name of a subject: keys, or files. */
  placesOf(subject: string): Promise<string[]>;
  /** Whether the notifications (hints) to other instances contain the revoked sessions, or are empty. */
  readonly hintsAcrossInstances: "entries" | "empty";
  stop(): Promise<void>;
};

export function target(url: string): RedisTarget {
  const parsed = parseRedisUrl(url);
  if (!parsed.ok) throw new Error(parsed.reason);
  return parsed.value;
}

export function redisOptions(url: string, more: Partial<RedisStoreOptions> = {}): RedisStoreOptions {
  return {
    target: target(url),
    reuseIntervalMs: REUSE_INTERVAL,
    markerLifeMs: MARKER_LIFE,
    waitReplicas: 0,
    commandTimeoutMs: 500,
    ...more,
  };
}

export async function embeddedBackend(): Promise<Backend> {
  const directory = mkdtempSync(join(tmpdir(), "store-"));
  const path = join(directory, "sessions.db");
  let now = Date.now();
  let shiftMs = 0;
  const stores: StoreWithSignals[] = [];
  const open = () => {
    const store = createEmbeddedStore({
      path,
      clock: () => wallMs(now + shiftMs),
      steady: () => now,
      reuseIntervalMs: REUSE_INTERVAL,
      markerLifeMs: MARKER_LIFE,
    });
    stores.push(store);
    return store;
  };
  const first = open();
  shiftMs = SHIFT_MS;
  await first.ping();
  return {
    open: async () => open(),
    now: () => storeMs(now),
    async advance(ms) {
      now += ms;
    },
    async beginEndAll(user, reason, options) {
      const dying = open();
      const end = dying.endAll(user, reason, options); // The first step has run when this call returns.
      const failure = end.then(
        () => new Error("it was not left half-way"),
        () => undefined,
      );
      await dying.close();
      const error = await failure;
      if (error !== undefined) throw error;
    },
    async endPart() {
      const dying = open();
      await dying.revocations(undefined);
      // A store continues the operation of another instance if that operation has not progressed between two reads of the log. After this
      // second read, the store therefore continues the stopped operation in the next turn of the event loop.
      await dying.revocations(undefined);
      await new Promise(setImmediate);
      await dying.close();
    },
    placesOf: async (user) =>
      readdirSync(directory).filter((file) => readFileSync(join(directory, file)).includes(user)),
    hintsAcrossInstances: "empty",
    async stop() {
      expectSoundFile(path);
      await Promise.all(stores.map((store) => store.close()));
      rmSync(directory, { recursive: true });
    },
  };
}

/**
 * Lua code that replaces the clock of the scripts by a key of the partition, which tests set. The key starts days ahead of the real time
 * and only moves forward, so that Redis, which expires keys by its own clock, never does so during a test.
 */
export const MOVABLE_CLOCK = "local function clock() return tonumber(redis.call('GET', KEYS[1] .. 'clock')) end\n";

/**
 * Returns options for a store whose clock a test moves. They switch off the periodic check of the time of Redis. The test moves two clocks
 * one after the other, and a check in between would report that the clock was set.
 */
export function movable(steady: () => number): Partial<RedisStoreOptions> {
  return { scripts: loadScripts(MOVABLE_CLOCK), steady, commandTimeoutMs: 5_000, recheckMs: NEVER_MS };
}

/** The longest delay that a timer supports. Tests that count commands use it to prevent periodic ones. */
export const NEVER_MS = 2 ** 31 - 1;

/** How far the clock of a test is ahead of the real one, in ms. */
const AHEAD_MS = 48 * 3_600_000;

/** How far the clock of Redis, or the wall clock, is ahead of the store's time, in ms. A value of the wrong scale fails a test. */
const SHIFT_MS = 3_600_000;

async function onRedis(url: string, stopServers: () => Promise<void>): Promise<Backend> {
  const { kind, nodes } = target(url);
  const admin = kind === "cluster" ? new Cluster([...nodes]) : new Redis(nodes[0]);
  let now = Date.now() + AHEAD_MS;
  const setClock = () => Promise.all(TAGS.map((tag) => admin.set(`${tag}clock`, now + SHIFT_MS)));
  await setClock();
  await Promise.all(TAGS.map((tag) => admin.set(`${tag}c`, `${SHIFT_MS} ${now + SHIFT_MS}`)));
  const stores: StoreWithSignals[] = [];
  const scripts = loadScripts(MOVABLE_CLOCK);
  const anyTime = [0, Number.MAX_SAFE_INTEGER, SHIFT_MS];
  return {
    async beginEndAll(user, reason, { except = "", origin } = {}) {
      const args = [user, reason, MARKER_LIFE, except, "", nonce(), noteOf(origin), ...anyTime];
      const [outcome] = (await admin.eval(scripts.end_all.text, 1, tagOfSubject(user), ...args)) as unknown[];
      if (outcome !== "begun") throw new Error(`it was not left half-way: ${outcome}`);
    },
    async endPart(user) {
      await admin.eval(scripts.end_rest.text, 1, tagOfSubject(user), "", MARKER_LIFE, ...anyTime);
    },
    async open() {
      const store = await createRedisStore(
        redisOptions(
          url,
          movable(() => now),
        ),
      );
      stores.push(store);
      await untilReached(store);
      return store;
    },
    now: () => storeMs(now),
    async advance(ms) {
      now += ms;
      await setClock();
    },
    placesOf: (user) => keysWith(admin, tagOfSubject(user), user),
    hintsAcrossInstances: "entries",
    async stop() {
      await expectSoundKeys(admin, storeMs(now), SHIFT_MS);
      await Promise.all(stores.map((store) => store.close()));
      admin.disconnect();
      await stopServers();
    },
  };
}

export async function redisBackend(): Promise<Backend> {
  const server = await startRedis();
  return onRedis(server.url, () => server.stop());
}

export async function redisClusterBackend(): Promise<Backend> {
  const cluster = await startRedisCluster();
  return onRedis(cluster.url, () => cluster.stop());
}
