import { expect, test } from "vitest";
import { createRedisStore } from "../../../src/store/redis/store.ts";
import { startRedis, startSentinel } from "../../support/redis.ts";
import { until } from "../../support/until.ts";
import { redisOptions } from "../backends.ts";
import { newSession, nonce, sidOf, subject } from "../sessions.ts";

test("when the master dies the store follows to the new one, with what replicas have acknowledged", async () => {
  const master = await startRedis("--repl-diskless-sync-delay", "0");
  const replica = await startRedis("--replicaof", `127.0.0.1 ${master.port}`);
  await until(async () => expect(await master.admin.info("replication")).toContain("state=online"));
  const sentinel = await startSentinel(master);
  const url = `redis+sentinel://127.0.0.1:${sentinel.port}/main`;
  const store = await createRedisStore(redisOptions(url, { waitReplicas: 1, commandTimeout: 1_000 }));
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
  // With no replica left nothing is acknowledged, but the others are told.
  const after = sidOf(subject());
  await expect(store.end(after, "logout")).rejects.toThrow(/0 of 1 replicas/);
  await until(async () => expect(hints).toContain(after));
  stop();
  await store.close();
  for (const server of [sentinel, replica, master]) await server.stop();
});
