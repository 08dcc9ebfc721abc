import { expect, onTestFinished, test } from "vitest";
import { StoreUnavailable } from "../../../src/session/ports.ts";
import { createRedisStore } from "../../../src/store/redis/store.ts";
import { startRedis } from "../../support/redis.ts";
import { redisOptions } from "../backends.ts";
import { sidOf, subject } from "../sessions.ts";

test("endings that wait for replicas share their waits, and pile nothing up where there are none", async () => {
  const redis = await startRedis("--repl-diskless-sync-delay", "0");
  onTestFinished(() => redis.stop());
  const store = await createRedisStore(redisOptions(redis.url, { waitReplicas: 1, commandTimeout: 1000 }));
  onTestFinished(() => store.close());
  const sids = Array.from({ length: 200 }, () => sidOf(subject()));
  const outcomes = await Promise.allSettled(sids.map((sid) => store.end(sid, "logout")));
  for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: expect.any(StoreUnavailable) });
  const { cmdstat_wait } = Object.fromEntries(
    [...(await redis.admin.info("commandstats")).matchAll(/^(cmdstat_\w+):calls=(\d+)/gm)].map(([, ...row]) => row),
  );
  expect(Number(cmdstat_wait)).toBeLessThanOrEqual(3);
  const { revocations } = await store.revocations(undefined);
  expect(new Set(revocations.map(({ sid }) => sid))).toEqual(new Set(sids));

  const replica = await startRedis("--replicaof", `127.0.0.1 ${redis.port}`);
  onTestFinished(() => replica.stop());
  for (;;) {
    const outcome = await store.end(sidOf(subject()), "logout").catch((error: unknown) => error);
    if (outcome === "marked") break;
    expect(outcome).toBeInstanceOf(StoreUnavailable);
  }
  expect(await Promise.all(sids.map((sid) => store.end(sid, "logout")))).toEqual(sids.map(() => "already"));
});
