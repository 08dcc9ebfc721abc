/**
 * The work of a script for a subject does not grow with the number of its sessions, from hundreds to thousands. Work is counted as
 * commands and their arguments, because times depend on the machine.
 */
import type { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionLimit } from "../../../../src/service/session/admin/limit.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { loadScripts } from "../../../../src/service/store/redis/scripts.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { NEVER_MS, redisOptions } from "../../../support/store/backends.ts";
import { newSession, nonce, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

let redis: RedisServer;
let store: SessionStore;

beforeAll(async () => {
  redis = await startRedis();
  store = await createRedisStore(redisOptions(redis.url, { commandTimeoutMs: 10_000, recheckMs: NEVER_MS }));
  await until(() => store.ping());
});
afterAll(async () => {
  await store.close();
  await redis.stop();
});

const HUNDREDS = 300;
const THOUSANDS = 3_000;
const CAP = 10_000;
/** The greatest number of entries of the log that a script returns. */
const MOST_ENTRIES = 500;
/**
 * The greatest number of elements that a script may read from an index by one command: the 128 sessions that one run processes, and one
 * that shows whether there are more. `MOST_WORDS` limits the commands of one run and their arguments: 40 for each of these elements.
 */
const MOST = 128 + 1;
const MOST_WORDS = MOST * 40;

const names = new Map(Object.entries(loadScripts()).map(([name, { sha }]) => [sha, name]));

type Work = { commands: number; words: number };

/**
 * Opens a connection that monitors Redis. If Redis reports a command together with the confirmation of MONITOR, ioredis fails. The
 * connection is then opened again.
 */
function openMonitor(): Promise<Redis> {
  // The client itself never connects. It only creates the monitoring connection, which does not outlive its server if it has failed.
  const never = { enableReadyCheck: false, lazyConnect: true, retryStrategy: () => null };
  return redis.admin.duplicate(never).monitor().catch(openMonitor);
}

/**
 * Returns the work of each script during an action, as reported by Redis. If a script runs several times, the run with the most work
 * counts.
 */
async function workOf(what: () => Promise<unknown>): Promise<Map<string, Work>> {
  const monitor = await openMonitor();
  const most = new Map<string, Work>();
  let script = "";
  let work: Work = { commands: 0, words: 0 };
  const ended = Promise.withResolvers<void>();
  monitor.on("monitor", (_, args: string[], source: string) => {
    const [command = "", first = ""] = args.map(String);
    if (source !== "lua") {
      if (first === "that is all") ended.resolve();
      script = names.get(first) ?? "";
      work = { commands: 0, words: 0 };
      return;
    }
    work.commands++;
    work.words += args.length;
    if (/range/i.test(command) && !/remrange/i.test(command))
      expect(rangeLimit(args), args.join(" ")).toBeLessThanOrEqual(script === "revocations" ? MOST_ENTRIES : MOST);
    const before = most.get(script);
    if (before === undefined || before.words < work.words) most.set(script, { ...work });
  });
  await what();
  await redis.admin.echo("that is all");
  await ended.promise;
  monitor.disconnect();
  return most;
}

/** Returns how many elements a command may return: its LIMIT, or the size of its range of ranks. */
function rangeLimit([command, , from, to, ...options]: readonly string[]): number {
  const args = options.map(String);
  const at = args.indexOf("LIMIT");
  if (at < 0 && /^zrange$/i.test(String(command))) return Number(to) - Number(from) + 1;
  return at < 0 ? Number.POSITIVE_INFINITY : Number(args[at + 2]);
}

async function fill(user: string, count: number): Promise<SessionId[]> {
  const sids: SessionId[] = [];
  for (let at = 0; at < count; at += 100) {
    const batch = Array.from({ length: 100 }, () => newSession(user));
    await Promise.all(batch.map((session) => store.create(session, nonce(), { cap: CAP })));
    sids.push(...batch.map(({ sid }) => sid));
  }
  return sids;
}

type Scene = { readonly user: string; readonly sids: readonly SessionId[] };

const limited = (user: string, limit: Omit<SessionLimit, "scope">, clientId = "web") =>
  store.create(newSession(user, { clientId }), nonce(), { cap: CAP, limit: { scope: "client_id", ...limit } });

const VERBS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  "a creation": ({ user }) => store.create(newSession(user), nonce(), { cap: CAP }),
  "a creation in place of another session": ({ user, sids }) =>
    store.create(newSession(user), nonce(), { cap: CAP, replaces: sids[7] }),
  "a creation at the cap": ({ user, sids }) => store.create(newSession(user), nonce(), { cap: sids.length }),
  "a creation at a cap that was lowered": ({ user }) => store.create(newSession(user), nonce(), { cap: 10 }),
  "a creation within a limit": ({ user }) => limited(user, { maxSessions: 1, whenExceeded: "refuse" }, "rare"),
  "a creation that a limit refuses": ({ user }) => limited(user, { maxSessions: 100, whenExceeded: "refuse" }),
  "a creation within a limit that was lowered": ({ user }) =>
    limited(user, { maxSessions: 3, whenExceeded: "end_least_recently_used" }),
  "all pages": async ({ user }) => {
    let from: string | undefined;
    do from = (await store.list(user, 100, from)).next;
    while (from !== undefined);
  },
  "a search": ({ user }) => store.list(user, 10, undefined, { clientId: "nobody" }),
  "an ending": ({ sids }) => store.end(sids[20] as SessionId, "logout"),
  "an ending by another session": ({ sids }) => store.endOwned(sids[0] as SessionId, sids[20] as SessionId, "logout"),
  "the end of all others": ({ user, sids }) => store.endAll(user, "revoked_others", { except: sids[9] as SessionId }),
};

test.each(Object.entries(VERBS))("%s: no script does more for thousands than for hundreds", async (_, verb) => {
  const scene = async (count: number): Promise<Scene> => {
    const user = subject();
    return { user, sids: await fill(user, count) };
  };
  const [few, many] = [await scene(HUNDREDS), await scene(THOUSANDS)];
  await verb({ user: subject(), sids: (await scene(100)).sids }).catch(() => {}); // The first call loads the scripts into Redis.
  const [ofFew, ofMany] = [await workOf(() => verb(few)), await workOf(() => verb(many))];
  expect(ofMany.size).toBeGreaterThan(0);
  for (const [script, { words }] of ofMany) {
    expect(words, script).toBeLessThanOrEqual(MOST_WORDS);
    expect(words, script).toBeLessThanOrEqual(1.5 * (ofFew.get(script)?.words ?? 0) + 100);
  }
});

test("the log of thousands of endings is read piece by piece, and all of it", async () => {
  const users = [subject(), subject(), subject()];
  const sids = new Set<SessionId>();
  const { cursor } = await store.revocations(undefined);
  for (const user of users) {
    for (const sid of await fill(user, 1_300)) sids.add(sid);
    await store.endAll(user, "revoked_subject");
  }
  for (const from of [cursor, undefined]) {
    const seen = new Set<SessionId>();
    await workOf(async () => {
      for (const { sid } of (await store.revocations(from)).revocations) seen.add(sid);
    });
    expect([...sids].filter((sid) => !seen.has(sid))).toEqual([]);
  }
});

test("what was stored by a version that knew one form of the index is taken over piece by piece", async () => {
  const user = subject();
  const sids = await fill(user, 1_000);
  const [key = ""] = await redis.admin.keys(`*i${user}`);
  const tag = key.slice(0, 4);
  await redis.admin.del(key);
  await redis.admin.hset(`${tag}u`, user, sids.join(""));
  const seen = new Set<SessionId>();
  const work = await workOf(async () => {
    const page = await store.list(user, 1_000, undefined);
    for (const { sid } of page.sessions) seen.add(sid);
  });
  expect(work.get("list")?.words).toBeLessThanOrEqual(MOST_WORDS);
  expect(seen).toEqual(new Set(sids));
  expect(await store.endAll(user, "revoked_subject")).toMatchObject({ ok: true, count: 1_000 });
});

test("a login comes to an end if the oldest sessions are all those of actors, of which the cap may end none", async () => {
  const user = subject();
  const cap = 140;
  for (let k = 0; k < 130; k++) {
    await store.create(newSession(user, { actor: { subject: `support-${k}` } }), nonce(), { cap });
  }
  for (let k = 0; k < cap; k++)
    expect(await store.create(newSession(user), nonce(), { cap })).toMatchObject({ ok: true });
});
