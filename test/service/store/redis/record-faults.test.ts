/**
 * The events of steps whose caller never learns the outcome, because replicas are suspended or replies are lost. Nevertheless the store
 * keeps these events until they have been written to the log.
 */
import { expect, onTestFinished, test } from "vitest";
import { revoke, revokeAll, revokeSubject } from "../../../../src/service/session/admin/admin.ts";
import { UNKNOWN_REQUESTER } from "../../../../src/service/session/audit.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { revokeOthers, revokeOwn } from "../../../../src/service/session/own-sessions.ts";
import { type AccessClaims, type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { TAGS } from "../../../../src/service/store/redis/partitions.ts";
import { createRedisStore, type RedisStoreOptions } from "../../../../src/service/store/redis/store.ts";
import { startHoldingProxy } from "../../../support/holding-proxy.ts";
import { type RedisServer, startRedis, startRedisCluster, startReplica } from "../../../support/redis.ts";
import { movable, redisOptions } from "../../../support/store/backends.ts";
import { newSession, nonce, REUSE_INTERVAL, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";
import { Instance, nameOf, RETENTION, ROUND_MS } from "../record-search.ts";

/** Starts a Redis with a clock that the test moves. */
async function setUp() {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  let now = Date.now();
  const advance = async (ms: number) => {
    now += ms;
    await Promise.all(TAGS.map((tag) => redis.admin.set(`${tag}clock`, now)));
  };
  await advance(0);
  const open = async (port: number, more: Partial<RedisStoreOptions> = {}) => {
    const options = { ...movable(() => now), commandTimeoutMs: 500, ...more };
    const store = await createRedisStore(redisOptions(`redis://127.0.0.1:${port}`, options));
    onTestFinished(() => store.close());
    await until(() => store.ping());
    return store;
  };
  return { redis, advance, open, backend: { now: () => storeMs(now) } };
}

type User = { readonly user: string; readonly a: SessionId; readonly b: SessionId };

async function twoSessions(store: SessionStore): Promise<User> {
  const user = subject();
  const sids: SessionId[] = [];
  for (let count = 0; count < 2; count++) {
    const [session, first] = [newSession(user), nonce()];
    await store.create(session, first, { cap: 9 });
    await store.rotate(session.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, nonce());
    sids.push(session.sid);
  }
  return { user, a: sids[0] as SessionId, b: sids[1] as SessionId };
}

type Step = readonly [
  name: string,
  run: (
    deps: { readonly store: SessionStore; readonly audit: Instance["recorder"]["audit"] },
    user: User,
  ) => Promise<unknown>,
  lines: (user: User) => string[],
];
const ended = (sid: SessionId) => `session_ended ${sid}`;
const claims = ({ user, b }: User) => ({ sid: b, sub: user, all: {} }) as unknown as AccessClaims;
const STEPS: readonly Step[] = [
  ["RevokeSession", (deps, { a }) => revoke(deps, a, UNKNOWN_REQUESTER), ({ a }) => [ended(a)]],
  [
    "RevokeSession by the owner",
    (deps, user) => revokeOwn(deps, claims(user), user.a, UNKNOWN_REQUESTER),
    ({ a }) => [ended(a)],
  ],
  ["RevokeOtherSessions", (deps, user) => revokeOthers(deps, claims(user), UNKNOWN_REQUESTER), ({ a }) => [ended(a)]],
  [
    "RevokeSubjectSessions",
    (deps, { user }) => revokeSubject(deps, user, undefined, UNKNOWN_REQUESTER),
    ({ a, b }) => [ended(a), ended(b)],
  ],
  [
    "RevokeAllSessions",
    (deps) => revokeAll(deps, storeMs(5_001), UNKNOWN_REQUESTER),
    () => ["all_sessions_ended 5000"],
  ],
  [
    "reuse",
    ({ store }, { a }) => store.rotate(a, { generation: 1, nonce: nonce(), issuedAt: storeMs(0) }, nonce()),
    ({ a }) => [`authn_token_reuse ${a}`, ended(a)],
  ],
  [
    "a login in place of another",
    ({ store }, { user, a }) => store.create(newSession(user), nonce(), { cap: 9, replaces: a, origin: {} }),
    ({ a }) => [ended(a)],
  ],
];

/**
 * Waits until other instances have written all events that were waiting in the store to the log. Returns the name of the event in each log
 * line.
 */
async function linesOfOthers(store: SessionStore, others: readonly Instance[], advance: (ms: number) => Promise<void>) {
  await until(async () => {
    await advance(ROUND_MS);
    for (const { recorder } of others) await recorder.flush();
    await Promise.all(others.map(({ recorder }) => recorder.lookForDue()));
    const left = (await store.dueRecords()).flatMap(({ records }) => records.map(({ key }) => key));
    expect(left).toEqual([]);
  });
  for (const { recorder } of others) await recorder.close();
  return others.flatMap(({ lines }) => lines).map(({ event }) => nameOf(event));
}

const withoutLogins = (lines: readonly string[]) => lines.filter((line) => !line.startsWith("session_created"));

test("what is not acknowledged because replicas stand still is recorded once, although its caller got an error", async () => {
  const { redis, advance, open, backend } = await setUp();
  const replica = await startReplica(redis);
  onTestFinished(() => replica.stop());
  const [plain, store] = [await open(redis.port), await open(redis.port, { waitReplicas: 1 })];
  const users = await Promise.all(STEPS.map(() => twoSessions(plain)));
  await advance(3 * REUSE_INTERVAL);
  const asked = new Instance(backend, store);
  replica.pause();
  await Promise.all(
    STEPS.map(([, run], at) =>
      expect(run({ store, audit: asked.recorder.audit }, users[at] as User)).rejects.toThrow(StoreUnavailable),
    ),
  );
  replica.resume();
  expect(asked.lines).toEqual([]);
  const others = [asked, new Instance(backend, plain), new Instance(backend, plain)];
  const lines = await linesOfOthers(plain, others, advance);
  expect(withoutLogins(lines).sort()).toEqual(STEPS.flatMap(([, , of], at) => of(users[at] as User)).sort());
  for (const { a } of users) {
    const events = (await plain.events({ sid: a })).filter(({ sid }) => sid === a);
    expect(events.length).toBeLessThanOrEqual(1);
  }
});

test.each(STEPS)(
  "%s is recorded once when the network loses the reply, and its caller asks again",
  async (_, run, expected) => {
    const { redis, advance, open, backend } = await setUp();
    const way = await startHoldingProxy(redis.port);
    onTestFinished(() => way.stop());
    const [plain, store] = [await open(redis.port), await open(way.port)];
    const user = await twoSessions(plain);
    await advance(3 * REUSE_INTERVAL);
    const asked = new Instance(backend, store);
    way.loseReplies();
    await expect(run({ store, audit: asked.recorder.audit }, user)).rejects.toThrow(StoreUnavailable);
    way.recover();
    await until(() => store.ping());
    await run({ store, audit: asked.recorder.audit }, user);
    const lines = await linesOfOthers(plain, [asked, new Instance(backend, plain)], advance);
    expect(withoutLogins(lines).sort()).toEqual(expected(user).sort());
  },
);

test("while one master of a cluster stands still the events of others are written, and each one once", async () => {
  const cluster = await startRedisCluster();
  onTestFinished(() => cluster.stop());
  const store = await createRedisStore(redisOptions(cluster.url));
  onTestFinished(() => store.close());
  await until(() => store.ping());
  const instance = new Instance({ now: () => storeMs(Date.now()) }, store);
  const sessions = Array.from({ length: 60 }, () => newSession(subject()));
  for (const session of sessions) await until(() => store.create(session, nonce(), { cap: 9, origin: {} }));
  const [lost] = cluster.nodes as readonly RedisServer[];
  lost?.pause();
  for (const session of sessions) {
    instance.recorder.audit(
      { event: "session_created", sid: session.sid, subject: session.subject, session },
      UNKNOWN_REQUESTER,
    );
  }
  for (let times = 0; times < 4; times++) await instance.recorder.flush();
  lost?.resume();
  await until(async () => {
    await instance.recorder.flush();
    const parts = await store.dueRecords();
    expect(parts).toHaveLength(TAGS.length);
    expect(parts.every(({ records }) => records.length === 0)).toBe(true);
  });
  for (const { sid } of sessions) {
    const events = await until(() => store.events({ sid }));
    expect(events.map(({ type }) => type)).toEqual(["created"]);
  }
  expect(
    await store.recordEvents(
      [{ event: { time: wallMs(1), type: "created", sid: sessions[0]?.sid as SessionId } }],
      RETENTION,
    ),
  ).toEqual([]);
  await instance.recorder.close();
});
