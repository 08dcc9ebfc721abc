/** The end of many sessions of a subject on Redis when replies are lost, and when a replica takes over in between. */
import { expect, onTestFinished, test, vi } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { RECORDED_WITHIN_MS } from "../../../../src/service/store/event-text.ts";
import { createRedisConnections } from "../../../../src/service/store/redis/connection/connection.ts";
import { createSubjectEnds, type SubjectEnds } from "../../../../src/service/store/redis/end-all.ts";
import { tagOfSubject } from "../../../../src/service/store/redis/partitions.ts";
import { ScriptRunner } from "../../../../src/service/store/redis/script-runner.ts";
import { loadScripts } from "../../../../src/service/store/redis/scripts.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis, startReplica } from "../../../support/redis.ts";
import { NEVER_MS, redisOptions } from "../../../support/store/backends.ts";
import { MARKER_LIFE, newSession, nonce, sidOf, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

const MANY = 300;
const PATIENT = { commandTimeoutMs: 5_000, recheckMs: NEVER_MS };

async function open(redis: RedisServer): Promise<SessionStore> {
  const store = await createRedisStore(redisOptions(redis.url, PATIENT));
  onTestFinished(() => store.close());
  await until(() => store.ping());
  return store;
}

async function aRedis(): Promise<RedisServer> {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  return redis;
}

async function fill(store: SessionStore, user: string): Promise<SessionId[]> {
  const sessions = Array.from({ length: MANY }, () => newSession(user));
  for (const session of sessions) await store.create(session, nonce(), { cap: MANY });
  return sessions.map(({ sid }) => sid);
}

async function logged(store: SessionStore, sids: readonly SessionId[]): Promise<SessionId[]> {
  const mine = new Set(sids);
  return (await store.revocations(undefined)).revocations.map(({ sid }) => sid).filter((sid) => mine.has(sid));
}

/**
 * Returns the operations that end the sessions of a subject. `after` is called after each run of a script, and may throw, as if the reply
 * had been lost.
 */
async function ends(redis: RedisServer, after: (verb: string) => Promise<void>): Promise<SubjectEnds> {
  const options = redisOptions(redis.url, PATIENT);
  const connections = createRedisConnections(options.target, options.commandTimeoutMs);
  const runner = new ScriptRunner(options, connections.connect());
  onTestFinished(() => {
    runner.close();
    connections.close();
  });
  await runner.start(Promise.resolve());
  const run: ScriptRunner["run"] = async (verb, tags, args) => {
    const reply = await runner.run(verb, tags, args);
    await after(verb);
    return reply;
  };
  const acknowledge = Object.assign(async () => {}, { ready: Promise.resolve(), check() {}, close() {} });
  return createSubjectEnds({ run }, acknowledge, MARKER_LIFE);
}

test("replies that are lost on the way change neither what ends nor how many there were", async () => {
  const redis = await aRedis();
  const store = await open(redis);
  const user = subject();
  const sids = await fill(store, user);
  let parts = 0;
  const flaky = await ends(redis, async (verb) => {
    if (verb === "end_rest" && parts++ % 2 === 0) throw new StoreUnavailable("the reply was lost");
  });
  const outcome = await flaky.endAll(user, "revoked_subject", {});
  expect(outcome).toMatchObject({ ok: true, count: MANY });
  expect((await logged(store, sids)).sort()).toEqual([...sids].sort());
});

test("one that a failover has lost is unavailable, and not an end of fewer", async () => {
  const redis = await aRedis();
  const store = await open(redis);
  const user = subject();
  await fill(store, user);
  let parts = 0;
  const failing = await ends(redis, async (verb) => {
    if (verb === "end_rest" && ++parts === 2) await redis.admin.del(`${tagOfSubject(user)}h`);
  });
  await expect(failing.endAll(user, "revoked_subject", {})).rejects.toThrow(StoreUnavailable);
  expect(await store.endAll(user, "revoked_subject")).toMatchObject({ ok: true, count: MANY - 2 * 64 });
});

test("a replica that takes over half-way serves none of them, and the rest is done there", async () => {
  const master = await aRedis();
  const replica = await startReplica(master);
  onTestFinished(() => replica.stop());
  const store = await open(master);
  const user = subject();
  const sids = await fill(store, user);
  const tag = tagOfSubject(user);
  const anyTime = [0, Number.MAX_SAFE_INTEGER, 0];
  const { end_all, end_rest } = loadScripts();
  const args = [user, "revoked_subject", MARKER_LIFE, "", "", nonce(), "{}"];
  expect(await master.admin.eval(end_all.text, 1, tag, ...args, ...anyTime)).toEqual(["begun"]);
  await master.admin.eval(end_rest.text, 1, tag, "", MARKER_LIFE, ...anyTime);
  await until(async () => {
    if ((await master.admin.wait(1, 1_000)) < 1) throw new Error("not replicated yet");
  });
  await master.kill();
  await replica.admin.replicaof("NO", "ONE");

  const promoted = await open(replica);
  for (const sid of sids) expect(await promoted.find(sid)).toEqual({ ok: false, reason: "revoked" });
  const fresh = newSession(user);
  await promoted.create(fresh, nonce(), { cap: MANY });
  while ((await logged(promoted, sids)).length < MANY) await new Promise(setImmediate);
  expect((await logged(promoted, sids)).sort()).toEqual([...sids].sort());
  expect((await promoted.list(user, 10, undefined)).sessions.map(({ sid }) => sid)).toEqual([fresh.sid]);
});

test.each([
  [RECORDED_WITHIN_MS, 3],
  [RECORDED_WITHIN_MS + 1, 0],
])(
  "one that has taken %d ms leaves the rest to be recorded as due by others: %d are returned",
  async (ms, returned) => {
    vi.useFakeTimers({ toFake: ["performance"] });
    onTestFinished(() => void vi.useRealTimers());
    const user = subject();
    const [one, two, three] = [sidOf(user), sidOf(user), sidOf(user)];
    const parts = [
      ["more", "2", one, two],
      ["done", "3", three],
    ];
    const run = async (verb: string) => {
      if (verb === "end_all") return [Buffer.from("begun")];
      vi.advanceTimersByTime(ms / 2);
      return parts.shift()?.map((part) => Buffer.from(part));
    };
    const outcome = await createSubjectEnds({ run }, async () => {}, MARKER_LIFE).endAll(user, "revoked_subject");
    const ended = [one, two, three].slice(0, returned).map((sid) => ({ sid }));
    expect(outcome).toEqual({ ok: true, ended, count: 3 });
  },
);
