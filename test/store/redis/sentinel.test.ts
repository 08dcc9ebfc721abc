import { afterEach, expect, test } from "vitest";
import { StoreUnavailable } from "../../../src/session/ports.ts";
import { createRedisStore } from "../../../src/store/redis/store.ts";
import { startRedis, startSentinel } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { redisOptions } from "../backends.ts";
import { newSession, nonce, sidOf, subject } from "../sessions.ts";

const cleanUp: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const step of cleanUp.splice(0).reverse()) await step();
});

test("when the master dies the store follows to the new one, with what replicas have acknowledged", async () => {
  const master = await startRedis("--repl-diskless-sync-delay", "0");
  cleanUp.push(() => master.stop());
  const replica = await startRedis("--replicaof", `127.0.0.1 ${master.port}`);
  cleanUp.push(() => replica.stop());
  await until(async () => expect(await master.admin.info("replication")).toContain("state=online"));
  const sentinel = await startSentinel(master);
  cleanUp.push(() => sentinel.stop());
  const url = `redis+sentinel://127.0.0.1:${sentinel.port}/main`;
  const store = await createRedisStore(redisOptions(url, { waitReplicas: 1, commandTimeout: 1_000 }));
  cleanUp.push(() => store.close());
  const hints: string[] = [];
  const stop = store.onRevocation((hint) => hints.push(...hint.map(({ sid }) => sid)));

  const session = newSession(subject());
  const first = nonce();
  await until(() => store.create(session, first, 10));
  const ended = sidOf(subject());
  await until(() => store.end(ended, "logout"));
  await until(async () => expect(await sentinel.admin.call("SENTINEL", "CKQUORUM", "main")).toContain("OK"));
  await until(async () => expect(await sentinel.admin.call("SENTINEL", "REPLICAS", "main")).toHaveLength(1));

  await master.kill();
  await until(() => store.ping());
  expect(await replica.admin.info("replication")).toContain("role:master");
  expect((await store.rotate(session.sid, { generation: 1, nonce: first, issuedAt: 0 }, nonce())).outcome).toBe(
    "rotate",
  );
  expect(await store.find(ended)).toEqual({ status: "revoked" });
  // With no replica left nothing is acknowledged; those who listen have found the new master, too.
  const heard = hints.length;
  await until(async () => {
    await expect(store.end(sidOf(subject()), "logout")).rejects.toThrow(StoreUnavailable);
    expect(hints.length).toBeGreaterThan(heard);
  });
  stop();
});
