/** Several deployments on one Redis: each has keys and a channel of its own, and none takes those of another by mistake. */
import { afterEach, describe, expect, test } from "vitest";
import { type SessionStore, StoreRefused } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { Owner } from "../../../../src/service/store/redis/checks/owner.ts";
import { aclRules } from "../../../../src/service/store/redis/checks/permissions.ts";
import { createRedisStore, type RedisStoreOptions } from "../../../../src/service/store/redis/store.ts";
import { startRedis, startRedisCluster, startReplica } from "../../../support/redis.ts";
import { redisOptions, target } from "../../../support/store/backends.ts";
import { untilReached } from "../../../support/store/reached.ts";
import { ENDED, newSession, nonce, outcomeOf, subject } from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

async function open(url: string, keyPrefix: string, more: Partial<RedisStoreOptions> = {}): Promise<SessionStore> {
  const options = redisOptions(url, { commandTimeoutMs: 5_000, ...more });
  const store = await createRedisStore({ ...options, target: { ...target(url), keyPrefix } });
  cleanUp.push(() => store.close());
  await untilReached(store);
  return store;
}

/** Creates, rotates, lists and ends sessions. @returns the sessions whose endings its instance was notified of */
async function use(store: SessionStore, hinted: string[]): Promise<string> {
  const user = subject();
  const [kept, ended] = [newSession(user), newSession(user)];
  const first = nonce();
  await store.create(kept, first, { cap: 10 });
  await store.create(ended, first, { cap: 10 });
  expect(outcomeOf(await store.rotate(kept.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, nonce()))).toBe(
    "rotate",
  );
  expect(await store.end(ended.sid, "logout")).toEqual(ENDED);
  await until(async () => expect(hinted).toContain(ended.sid));
  return kept.sid;
}

function listen(store: SessionStore): string[] {
  const hinted: string[] = [];
  cleanUp.push(async () => stop());
  const stop = store.onRevocation((hint) => void hinted.push(...hint.map(({ sid }) => sid)));
  return hinted;
}

describe.each([
  ["a server", () => startRedis()],
  ["a cluster", () => startRedisCluster()],
] as const)("on %s", (_, start) => {
  test("what one deployment does reaches no other", async () => {
    const server = await start();
    cleanUp.push(() => server.stop());
    const [production, staging] = [await open(server.url, ""), await open(server.url, "staging:")];
    const hints = [listen(production), listen(staging)] as const;
    const kept = await use(production, hints[0]);
    const other = await use(staging, hints[1]);
    expect(hints[0].filter((sid) => hints[1].includes(sid))).toEqual([]);
    await staging.revokeAll(storeMs(Date.now() + 60_000));
    expect((await production.find(kept as never)).ok).toBe(true);
    expect((await staging.find(other as never)).ok).toBe(false);
    expect((await production.listAll(10, undefined, {})).sessions).toHaveLength(1);
    expect((await staging.find(kept as never)).ok).toBe(false);
  });
});

test("every key has the prefix, also those that wait for replicas, and the user of redis-acl needs no other", async () => {
  const redis = await startRedis();
  cleanUp.push(() => redis.stop());
  const replica = await startReplica(redis);
  cleanUp.push(() => replica.stop());
  const rules = aclRules({ clustered: false, db: 0, waitReplicas: 1, keyPrefix: "a.b:" });
  expect(rules).toEqual(expect.arrayContaining(["~a.b:{*", "&a.b:session-revocations"]));
  await redis.admin.call("ACL", "SETUSER", "service", "reset", "on", ">PASSWORD", ...rules);
  const url = redis.url.replace("//", "//service:PASSWORD@");
  const store = await open(url, "a.b:", { waitReplicas: 1, owner: () => owner("https://a.example", "k1") });
  await use(store, listen(store));
  expect((await redis.admin.keys("*")).filter((key) => !/^a\.b:\{[0-9a-f]{2}\}/.test(key))).toEqual([]);
  await expect(open(url, "other:")).rejects.toThrow("~other:{* &other:session-revocations");
});

const owner = (issuer: string | undefined, ...keyIds: string[]): Owner => ({ issuer, keyIds });

describe("the owner of the keys", () => {
  const A = owner("https://a.example", "k1", "m1");

  const KEYS = "with other signing keys";

  /** The last column is whose the keys are, if the second deployment is refused. */
  test.each<[string, Owner, Owner, string?]>([
    ["the same", A, A],
    ["after a rotation", A, owner("https://a.example", "k2", "m1")],
    ["another issuer", A, owner("https://b.example", "k1", "m1"), "https://a.example"],
    [
      "the same issuer with another ring",
      A,
      owner("https://a.example", "k3"),
      `a deployment of https://a.example, ${KEYS}`,
    ],
    ["no issuer, with another ring", owner(undefined, "k1"), owner(undefined, "k2"), `another deployment, ${KEYS}`],
    ["an issuer that is configured later", owner(undefined, "k1"), owner("https://a.example", "k1")],
  ])("%s", async (_, first, second, refusedBy) => {
    const redis = await startRedis();
    cleanUp.push(() => redis.stop());
    await open(redis.url, "", { owner: () => first });
    const opening = open(redis.url, "", { owner: () => second });
    if (refusedBy === undefined) return void (await opening);
    const refusal: unknown = await opening.catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(StoreRefused);
    expect(String(refusal)).toContain(`belong to ${refusedBy}; `);
    expect(String(refusal)).toMatch(/ REDIS_KEY_PREFIX .* delete the key \{00\}q/);
    await open(redis.url, "p:", { owner: () => second });
    await redis.admin.del("{00}q");
    await open(redis.url, "", { owner: () => second });
  });

  test("instances that start at once, and one that follows all rotations, stay the owner", async () => {
    const redis = await startRedis();
    cleanUp.push(() => redis.stop());
    let keyIds = ["k1"];
    const options = { owner: () => owner("https://a.example", ...keyIds), recheckMs: 20 };
    await Promise.all(Array.from({ length: 8 }, () => open(redis.url, "", options)));
    for (const next of ["k2", "k3", "k4"]) {
      keyIds = [...keyIds.slice(-1), next];
      await until(async () => expect(await redis.admin.get("{00}q")).toContain(next));
    }
    await open(redis.url, "", { owner: () => owner("https://a.example", "k4", "k5") });
  });
});
