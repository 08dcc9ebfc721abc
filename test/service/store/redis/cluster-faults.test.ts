/** The errors that callers get while a cluster changes, and when a part of it is lost. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { createRedisStore } from "../../../../src/service/store/redis/store.ts";
import { type RedisCluster, type RedisServer, startRedisCluster } from "../../../support/redis.ts";
import { redisOptions } from "../../../support/store/backends.ts";
import { untilReached } from "../../../support/store/reached.ts";
import { ENDED, newSession, nonce, outcomeOf, sidOf, subject } from "../../../support/store/sessions.ts";
import { countTurns } from "../../../support/turns.ts";
import { until } from "../../../support/until.ts";

let cluster: RedisCluster;
let store: SessionStore;

beforeAll(async () => {
  cluster = await startRedisCluster();
  store = await createRedisStore(redisOptions(cluster.url));
  await untilReached(store);
});
afterAll(async () => {
  await store.close();
  await cluster.stop();
});

async function login() {
  const session = newSession(subject());
  const first = nonce();
  await store.create(session, first, { cap: 10 });
  return {
    sid: session.sid,
    token: { generation: 1, nonce: first, issuedAt: storeMs(0) },
    slot: await slotOf(session.sid),
  };
}

async function slotOf(sid: string): Promise<number> {
  const tag = Buffer.from(sid, "base64url").toString("hex", 0, 1);
  return Number(await node(0).admin.call("CLUSTER", "KEYSLOT", `{${tag}}`));
}

function node(at: number): RedisServer {
  const server = cluster.nodes[at];
  if (server === undefined) throw new Error("no such node");
  return server;
}

/** Returns the node of the cluster that serves a slot, and a second node. */
function around(slot: number): [RedisServer, RedisServer] {
  const at = slot < 5461 ? 0 : slot < 10923 ? 1 : 2;
  return [node(at), node((at + 1) % 3)];
}

test("while a slot moves no caller learns that the session is unknown, and then its new node serves it", async () => {
  const { sid, token, slot } = await login();
  const [from, to] = around(slot);
  const [fromId, toId] = await Promise.all([from, to].map(({ admin }) => admin.call("CLUSTER", "MYID").then(String)));
  await to.admin.call("CLUSTER", "SETSLOT", slot, "IMPORTING", `${fromId}`);
  await from.admin.call("CLUSTER", "SETSLOT", slot, "MIGRATING", `${toId}`);

  await expect(store.rotate(sid, token, nonce())).rejects.toThrow(StoreUnavailable);
  const keys = (await from.admin.call("CLUSTER", "GETKEYSINSLOT", slot, 1000)) as string[];
  const session = keys.find((key) => key.includes(sid)) ?? "";
  const move = (keys: string[]) => from.admin.call("MIGRATE", "127.0.0.1", to.port, "", 0, 5000, "KEYS", ...keys);
  await move([session]);
  await expect(store.rotate(sid, token, nonce())).rejects.toThrow(StoreUnavailable);
  await expect(store.end(sid, "logout")).rejects.toThrow(StoreUnavailable);
  await move(keys.filter((key) => key !== session));
  await expect(store.find(sid)).rejects.toThrow(StoreUnavailable);

  for (const { admin } of [to, from]) await admin.call("CLUSTER", "SETSLOT", slot, "NODE", `${toId}`);
  expect(outcomeOf(await store.rotate(sid, token, nonce()))).toBe("rotate");
  expect(await store.end(sid, "logout")).toEqual(ENDED);
});

test("a lost node is unavailable at once, and serves when it is back", async () => {
  const lost = await login();
  const [server] = around(lost.slot);
  await server.kill();
  const turns = await countTurns(async () => {
    await expect(store.rotate(lost.sid, lost.token, nonce())).rejects.toThrow(StoreUnavailable);
    await expect(store.revocations(undefined)).rejects.toThrow(StoreUnavailable);
  });
  expect(turns).toBeLessThan(50);
  await server.start();
  await until(() => store.ping());
  const sid = sidOf(subject());
  await until(() => store.end(sid, "logout"));
  await until(() => store.revocations(undefined));
});

test("a hint comes from whichever node it happened on", async () => {
  const waiting = new Map<string, () => void>();
  const subscribed = Promise.withResolvers<void>();
  const stop = store.onRevocation((hint) => {
    if (hint.length === 0) subscribed.resolve();
    for (const { sid } of hint) waiting.get(sid)?.();
  });
  await subscribed.promise;
  const slots = new Set<RedisServer>();
  while (slots.size < 3) {
    const sid = sidOf(subject());
    const hinted = new Promise<void>((resolve) => waiting.set(sid, resolve));
    await store.end(sid, "logout");
    await hinted;
    slots.add(around(await slotOf(sid))[0]);
  }
  stop();
});
