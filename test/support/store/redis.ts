/** A Redis with a store, which end with the test, and a check of all methods of a store during an outage. */
import { expect, onTestFinished } from "vitest";
import type { SessionId } from "../../../src/service/session/model.ts";
import { type SessionStore, StoreUnavailable } from "../../../src/service/session/ports.ts";
import type { TokenFields } from "../../../src/service/session/rotation/rotation.ts";
import { storeMs, wallMs } from "../../../src/service/session/time.ts";
import { createRedisStore, type RedisStoreOptions } from "../../../src/service/store/redis/store.ts";
import { type RedisServer, startRedis } from "../redis.ts";
import { countTurns } from "../turns.ts";
import { redisOptions } from "./backends.ts";
import { untilReached } from "./reached.ts";
import { newSession, nonce, sidOf, subject } from "./sessions.ts";

export async function server(...args: string[]): Promise<RedisServer> {
  const server = await startRedis(...args);
  onTestFinished(() => server.stop());
  return server;
}

/** Opens a store on a Redis that may not be available yet. */
export async function openEarly(url: string, more: Partial<RedisStoreOptions> = {}): Promise<SessionStore> {
  const store = await createRedisStore(redisOptions(url, more));
  onTestFinished(() => store.close());
  return store;
}

/** Opens a store on an available Redis. @throws StoreRefused */
export async function open(url: string, more: Partial<RedisStoreOptions> = {}): Promise<SessionStore> {
  const store = await openEarly(url, more);
  await untilReached(store);
  return store;
}

export async function login(store: SessionStore): Promise<{ sid: SessionId; first: TokenFields }> {
  const first = nonce();
  const session = newSession(subject());
  await store.create(session, first, { cap: 10 });
  return { sid: session.sid, first: { generation: 1, nonce: first, issuedAt: storeMs(0) } };
}

/**
 * The time limit for one call, in turns of 100 ms. It equals ten command timeouts of 500 ms. A call that waited for many timeouts one after
 * the other would exceed it.
 */
const MAX_TURNS = 50;

/** Checks that every method soon fails with `StoreUnavailable`. */
export async function expectUnavailable(store: SessionStore): Promise<void> {
  const user = subject();
  const sid = sidOf(user);
  const verbs: (() => Promise<unknown>)[] = [
    () => store.create(newSession(user), nonce(), { cap: 10 }),
    () => store.rotate(sid, { generation: 1, nonce: nonce(), issuedAt: storeMs(0) }, nonce()),
    () => store.find(sid),
    () => store.list(user, 10, undefined),
    () => store.end(sid, "logout"),
    () => store.endOwned(sid, sid, "revoked_by_owner"),
    () => store.endAll(user, "revoked_subject"),
    () => store.revokeAll(undefined),
    () => store.elevate(sid, { time: wallMs(1_000), methods: ["otp"], contextClass: "" }),
    () => store.update(sid, { claims: "{}", outdatesTokens: true }),
    () => store.revocations(undefined),
    () => store.ping(),
  ];
  await Promise.all(
    verbs.map(async (verb) => {
      const turns = await countTurns(() => expect(verb()).rejects.toThrow(StoreUnavailable));
      expect(turns).toBeLessThan(MAX_TURNS);
    }),
  );
}
