/**
 * `npm run bench:growth` measures how many sessions slow down a store. It refreshes sessions for the first time, in turns in a store with
 * 10,000 sessions and in one with a million. Then one subject gets 100,000 sessions (10,000 in the embedded store). They are listed and
 * ended, and the waits of other callers in the meantime are measured.
 *
 *     npm run bench:growth -- --sessions 10000000 --only redis    needs 4 GB for Redis, and about ten minutes
 *
 * A store is measured without the service around it. CPU times of Redis do not depend on what else the machine does; all other times do.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate } from "node:timers/promises";
import { parseArgs } from "node:util";
import type { SessionStore } from "../../src/service/session/ports.ts";
import { storeMs, systemClock } from "../../src/service/session/time.ts";
import { createEmbeddedStore } from "../../src/service/store/embedded/store.ts";
import { createRedisStore } from "../../src/service/store/redis/store.ts";
import { serverVersion, startRedis } from "../support/redis.ts";
import { redisOptions } from "../support/store/backends.ts";
import { MARKER_LIFE, newSession, nonce, REUSE_INTERVAL, subject } from "../support/store/sessions.ts";
import { until } from "../support/until.ts";
import { Logins } from "./growth/logins.ts";
import { waitsOfOthers } from "./growth/waits.ts";
import { machine, table } from "./machine.ts";

const { values: options } = parseArgs({
  options: {
    sessions: { type: "string", default: "1000000" },
    subject: { type: "string", default: "100000" },
    only: { type: "string" },
  },
});

const FEW = 10_000;
const MEMORY = "/dev/shm";
/**
 * The greatest number of sessions that this benchmark creates for one subject in the embedded store. It is the largest value that
 * MAX_SESSIONS_PER_SUBJECT may have. The embedded store counts the sessions of a subject at each creation, so more of them would take too
 * long.
 */
const MAX_OF_EMBEDDED = 10_000;
const ROUNDS = 5;
/** How many sessions are refreshed in a round. No session is refreshed twice. */
const PER_ROUND = FEW / ROUNDS;
/** How many commands are under way at a time. */
const AT_ONCE = 32;
const PAGE_SIZE = 100;

type Measured = {
  readonly store: SessionStore;
  /** CPU time that the store has used so far, µs. */
  readonly cpuUs: () => Promise<number>;
  readonly bytes: (() => Promise<number>) | undefined;
  readonly close: () => Promise<void>;
};

async function onRedis(): Promise<Measured> {
  const redis = await startRedis('--save ""');
  const store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 10_000 }));
  await until(() => store.ping());
  const figures = async (section: string, pattern: RegExp) =>
    [...(await redis.admin.info(section)).matchAll(pattern)].reduce((sum, [, figure]) => sum + Number(figure), 0);
  return {
    store,
    cpuUs: async () => 1e6 * (await figures("cpu", /^used_cpu_(?:user|sys):([\d.]+)/gm)),
    bytes: () => figures("memory", /^used_memory:(\d+)/gm),
    async close() {
      await store.close();
      await redis.stop();
    },
  };
}

async function onEmbedded(): Promise<Measured> {
  // The directory is in memory if the system has such a folder, because a million creations would wait for the disk for an hour.
  const directory = mkdtempSync(join(existsSync(MEMORY) ? MEMORY : tmpdir(), "bench-growth-"));
  const path = join(directory, "sessions.db");
  const limits = { reuseIntervalMs: REUSE_INTERVAL, markerLifeMs: MARKER_LIFE };
  const store = createEmbeddedStore({ path, clock: systemClock, ...limits });
  return {
    store,
    cpuUs: async () => {
      const { user, system } = process.cpuUsage();
      return user + system; // The time includes that of the callers, because the store and its callers run in this process.
    },
    bytes: undefined,
    async close() {
      await store.close();
      rmSync(directory, { recursive: true });
    },
  };
}

type Round = { readonly cpuUs: number; readonly perSecond: number; readonly p50: number; readonly p99: number };

async function refreshRound({ store, cpuUs }: Measured, logins: Logins): Promise<Round> {
  const tokens = logins.draw(PER_ROUND);
  const times: number[] = [];
  const [cpuBefore, startedAt] = [await cpuUs(), performance.now()];
  const callers = Array.from({ length: AT_ONCE }, async () => {
    for (let token = tokens.pop(); token !== undefined; token = tokens.pop()) {
      const sentAt = performance.now();
      const { ok } = await store.rotate(
        token.sid,
        { generation: 1, nonce: token.nonce, issuedAt: storeMs(0) },
        nonce(),
      );
      if (!ok) throw new Error("a refresh was refused");
      times.push(performance.now() - sentAt);
    }
  });
  await Promise.all(callers);
  const took = performance.now() - startedAt;
  times.sort((a, b) => a - b);
  const at = (share: number) => times[Math.floor(share * (times.length - 1))] ?? Number.NaN;
  return {
    cpuUs: ((await cpuUs()) - cpuBefore) / PER_ROUND,
    perSecond: (1000 * PER_ROUND) / took,
    p50: at(0.5),
    p99: at(0.99),
  };
}

const median = (rounds: readonly Round[], figure: keyof Round) =>
  rounds.map((round) => round[figure]).sort((a, b) => a - b)[Math.floor(rounds.length / 2)] ?? Number.NaN;

const line = (what: string, value: string) => console.error(`  ${what.padEnd(44)}${value}`);

/** Creates sessions. Returns them, and the memory of one, in bytes. */
async function fill(measured: Measured, count: number): Promise<readonly [logins: Logins, bytes: string]> {
  const [cpuBefore, bytesBefore, startedAt] = [await measured.cpuUs(), await measured.bytes?.(), performance.now()];
  const logins = await Logins.create(measured.store, count);
  const took = performance.now() - startedAt;
  const cpu = ((await measured.cpuUs()) - cpuBefore) / count;
  line(`creation of ${count} sessions`, `${((1000 * count) / took).toFixed(0)}/s, CPU ${cpu.toFixed(0)} µs each`);
  if (bytesBefore === undefined || measured.bytes === undefined) return [logins, ""];
  return [logins, (((await measured.bytes()) - bytesBefore) / count).toFixed(0)];
}

/** The rows of the table that is printed in the end. */
const rows: (readonly string[])[] = [];

async function growth(name: string, open: () => Promise<Measured>, count: number): Promise<Measured> {
  const [small, large] = [await open(), await open()];
  const [few, bytesOfFew] = await fill(small, FEW);
  const [many, bytesOfMany] = await fill(large, count);
  const rounds: { few: Round[]; many: Round[] } = { few: [], many: [] };
  for (let round = 0; round < ROUNDS; round++) {
    rounds.few.push(await refreshRound(small, few));
    rounds.many.push(await refreshRound(large, many));
  }
  for (const [size, of, bytes] of [
    [FEW, rounds.few, bytesOfFew],
    [count, rounds.many, bytesOfMany],
  ] as const) {
    const cpuUs = median(of, "cpuUs");
    const share = cpuUs / median(rounds.few, "cpuUs");
    rows.push([name, size.toLocaleString("en"), cpuUs.toFixed(0), share.toFixed(2), bytes]);
    const times = `p50 ${median(of, "p50").toFixed(1)}, p99 ${median(of, "p99").toFixed(1)} ms`;
    line(`refresh, ${size} sessions, ${AT_ONCE} at once`, `${median(of, "perSecond").toFixed(0)}/s, ${times}`);
  }
  await small.close();
  return large;
}

/** Lists and ends the sessions of one subject, in a store that holds the sessions of many other subjects. */
async function ofOneSubject({ store }: Measured, count: number): Promise<void> {
  const [user, other] = [subject(), newSession(subject())];
  await store.create(other, nonce(), { cap: 1 });
  await Logins.create(store, count, user);
  const ask = () => store.find(other.sid);
  const idle = await waitsOfOthers(ask, () => new Promise((resolve) => setTimeout(resolve, 2_000)));
  line("others ask, nothing else happens", idle.text);
  let listed = 0;
  const listing = await waitsOfOthers(ask, async () => {
    let from: string | undefined;
    do {
      const page = await store.list(user, PAGE_SIZE, from);
      listed += page.sessions.length;
      from = page.next;
      // A service would read each page in a separate request. Here, the loop lets other callers run between two pages.
      await setImmediate();
    } while (from !== undefined);
  });
  if (listed !== count) throw new Error(`${listed} of ${count} were listed`);
  line(`list of a subject's ${count}, by ${PAGE_SIZE}`, listing.text);
  const ending = await waitsOfOthers(ask, async () => {
    const outcome = await store.endAll(user, "revoked_subject");
    if (!outcome.ok || outcome.count !== count) throw new Error("not all were ended");
  });
  line(`end of a subject's ${count}`, ending.text);
}

for (const [name, open] of Object.entries({ redis: onRedis, embedded: onEmbedded })) {
  if (options.only !== undefined && options.only !== name) continue;
  console.error(name);
  const large = await growth(name, open, Number(options.sessions));
  await ofOneSubject(
    large,
    Math.min(Number(options.subject), name === "embedded" ? MAX_OF_EMBEDDED : Number.POSITIVE_INFINITY),
  );
  await large.close();
}
const title = [
  "store",
  "sessions",
  "CPU of a refresh, µs",
  `of one with ${FEW.toLocaleString("en")}`,
  "bytes of a session",
];
console.log(`${table(title, rows)}\n\n${machine(serverVersion())}`);
