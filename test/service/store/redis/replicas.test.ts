/** `REDIS_WAIT_REPLICAS` with real replicas: which steps are acknowledged, and which are not. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { CuttingProxy } from "../../../proofs/support/proxy.ts";
import { type RedisServer, startRedis, startReplica } from "../../../support/redis.ts";
import { redisOptions } from "../../../support/store/backends.ts";
import {
  ALREADY_ENDED,
  MARKED,
  newSession,
  nonce,
  outcomeOf,
  sidOf,
  subject,
} from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

async function aRedis(): Promise<RedisServer> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return redis;
}

async function aReplicaOf(master: RedisServer): Promise<RedisServer> {
  const replica = await startReplica(master);
  onTestFinished(() => replica.stop());
  return replica;
}

async function open(url: string, waitReplicas = 1): Promise<SessionStore> {
  const store = await createRedisStore(
    redisOptions(url, { waitReplicas, commandTimeoutMs: 1_000, reuseIntervalMs: 0 }),
  );
  onTestFinished(() => store.close());
  await until(() => store.ping());
  return store;
}

async function logIn(store: SessionStore, user = subject()) {
  const first = nonce();
  const session = newSession(user);
  await store.create(session, first, { cap: 10 });
  return { user, sid: session.sid, first: { generation: 1, nonce: first, issuedAt: storeMs(0) } };
}

type Known = { readonly user: string; readonly a: SessionId; readonly b: SessionId };

/** Steps that are acknowledged only after the replicas have their effects. Each is run on two sessions of one subject. */
const VERBS: readonly {
  readonly name: string;
  run(store: SessionStore, known: Known): Promise<unknown>;
  /** Returns the sessions for which the store keeps a marker that they have ended. */
  gone(known: Known): SessionId[];
  /** Returns the sessions that have ended without leaving such a marker in the store, as after an end of all sessions. */
  ended?(known: Known): SessionId[];
}[] = [
  { name: "an ending", run: (store, { a }) => store.end(a, "logout"), gone: ({ a }) => [a] },
  {
    name: "an ending by another session",
    run: (store, { a, b }) => store.endOwned(a, b, "revoked_by_owner"),
    gone: ({ b }) => [b],
  },
  {
    name: "the ending of all sessions",
    run: (store, { user }) => store.endAll(user, "revoked_subject"),
    gone: ({ a, b }) => [a, b],
  },
  {
    name: "the ending of a session whose token was reused",
    run: (store, { a }) => store.rotate(a, { generation: 1, nonce: nonce(), issuedAt: storeMs(0) }, nonce()),
    gone: ({ a }) => [a],
  },
  {
    name: "the end of the sessions of all subjects",
    run: (store) => store.revokeAll(undefined),
    gone: () => [],
    ended: ({ a, b }) => [a, b],
  },
  {
    name: "a later authentication",
    run: (store, { a }) => store.elevate(a, { time: wallMs(1_000), methods: ["otp"], contextClass: "" }),
    gone: () => [],
  },
  {
    name: "an update",
    run: (store, { a }) => store.update(a, { claims: '{"role":"reader"}', outdatesTokens: true }),
    gone: () => [],
  },
  {
    name: "a note of what a provider has said",
    run: (store) => store.note({ issuer: "https://login.example", usedToken: nonce() }, 60_000),
    gone: () => [],
  },
  {
    name: "the attachment of a session to that of its actor",
    run: (store, { a, b }) => store.attach(b, a, 60_000),
    gone: () => [],
  },
  {
    name: "a login in place of another session",
    run: (store, { user, a }) => store.create(newSession(user), nonce(), { cap: 10, replaces: a }),
    gone: ({ a }) => [a],
  },
  { name: "a login", run: (store, { user }) => store.create(newSession(user), nonce(), { cap: 10 }), gone: () => [] },
  {
    name: "a login that ends an older session",
    run: (store, { user }) => store.create(newSession(user), nonce(), { cap: 2 }),
    gone: ({ a }) => [a],
  },
];

async function twoSessions(master: RedisServer): Promise<Known> {
  const store = await open(master.url, 0);
  const { user, sid: a, first } = await logIn(store);
  // After this refresh, any token of the first generation except `first` counts as stolen.
  await store.rotate(a, first, nonce());
  return { user, a, b: (await logIn(store, user)).sid };
}

/** Starts servers before the tests of a `describe`, and stops them after these tests. Returns a function that returns the servers. */
function servers<T extends readonly RedisServer[]>(start: () => Promise<T>): () => T {
  let started: T | undefined;
  beforeAll(async () => {
    started = await start();
  });
  afterAll(async () => {
    await Promise.all((started ?? []).map((server) => server.stop()));
  });
  return () => started as T;
}

describe("with a replica", () => {
  const pair = servers(async () => {
    const master = await startRedis();
    return [master, await startReplica(master)] as const;
  });

  test.each(VERBS)("$name is acknowledged when the replica has it", async ({ run, gone }) => {
    const [master, replica] = pair();
    const known = await twoSessions(master);
    await run(await open(master.url), known);
    for (const sid of gone(known)) expect(await replica.admin.keys(`*m${sid}`)).toHaveLength(1);
  });
});

describe("without a replica", () => {
  const alone = servers(async () => [await startRedis()] as const);

  test.each(VERBS)("$name is not acknowledged, and is done all the same", async ({ run, gone, ended = gone }) => {
    const [master] = alone();
    const known = await twoSessions(master);
    const store = await open(master.url);
    await expect(run(store, known)).rejects.toThrow(/0 of 1 replicas/);
    for (const sid of ended(known)) expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
  });
});

describe("with the replicas of another master, which never got it", () => {
  const masters = servers(async () => {
    const [old, promoted] = await Promise.all([startRedis(), startRedis()]);
    return [old, promoted, ...(await Promise.all([startReplica(old), startReplica(promoted)]))] as const;
  });

  test.each(VERBS)("$name is not acknowledged", async ({ run }) => {
    const [old, promoted] = masters();
    const known = await twoSessions(old);
    const way = await CuttingProxy.to(old.port);
    onTestFinished(() => way.stop());
    const store = await open(`redis://127.0.0.1:${way.port}`);
    await store.end(sidOf(subject()), "logout");
    // Only the connection on which the store sends WAIT is cut. It is opened again to the new master. The connection for other commands
    // still leads to the old master.
    way.target = promoted.port;
    const [, waiting = ""] = /^id=(\d+) .* cmd=wait /m.exec(String(await old.admin.client("LIST"))) ?? [];
    await old.admin.client("KILL", "ID", waiting);
    await until(() => store.ping());
    await expect(run(store, known)).rejects.toThrow(/does not have what was written/);
  });
});

test("a refused ending waits too: what it found may be news to the replicas", async () => {
  const store = await open((await aRedis()).url);
  const sid = sidOf(subject());
  await expect(store.end(sid, "logout")).rejects.toThrow(StoreUnavailable);
  await expect(store.end(sid, "logout")).rejects.toThrow(/0 of 1 replicas/);
  await expect(store.endOwned(sid, sid, "revoked_by_owner")).rejects.toThrow(/0 of 1 replicas/);
});

test("a refresh waits for no replica", async () => {
  const redis = await aRedis();
  const { sid, first } = await logIn(await open(redis.url, 0));
  expect(outcomeOf(await (await open(redis.url)).rotate(sid, first, nonce()))).toBe("rotate");
});

test("endings that wait for replicas share their waits, and pile nothing up where there are none", async () => {
  const redis = await aRedis();
  const store = await open(redis.url);
  const sids = Array.from({ length: 200 }, () => sidOf(subject()));
  const outcomes = await Promise.allSettled(sids.map((sid) => store.end(sid, "logout")));
  for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: expect.any(StoreUnavailable) });
  const stats = await redis.admin.info("commandstats");
  expect(Number(/^cmdstat_wait:calls=(\d+)/m.exec(stats)?.[1])).toBeLessThanOrEqual(3);
  const { revocations } = await store.revocations(undefined);
  expect(new Set(revocations.map(({ sid }) => sid))).toEqual(new Set(sids));

  await aReplicaOf(redis);
  expect(await until(() => store.end(sidOf(subject()), "logout"))).toEqual(MARKED);
  expect(await Promise.all(sids.map((sid) => store.end(sid, "logout")))).toEqual(sids.map(() => ALREADY_ENDED));
});
