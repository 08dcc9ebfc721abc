/** A Redis on which every script runs at the same time, and the heads of records. */
import { afterAll, beforeAll } from "vitest";
import type { NewSession } from "../../../src/service/session/model.ts";
import { firstState, type RotationState } from "../../../src/service/session/rotation/rotation.ts";
import { type StoreMs, storeMs } from "../../../src/service/session/time.ts";
import { flagsOf, nonceWords } from "../../../src/service/store/redis/encoding/record.ts";
import { loadScripts } from "../../../src/service/store/redis/scripts.ts";
import { type RedisServer, startRedis } from "../redis.ts";

/** The time of the node's clock in all runs, in ms. */
export const NOW = storeMs(4_000_000_000_000);
/** The last arguments of most scripts: they may run at any time, and the store's time is that of the node. */
export const ANY_TIME = [0, Number.MAX_SAFE_INTEGER, 0];

export const scripts = loadScripts(`local function clock() return ${NOW} end\n`);

/** The options of a store that runs at that time. */
export const STILL = { scripts, steady: () => 0, commandTimeoutMs: 60_000 } as const;

/** Starts a Redis for the tests of a file or a block. */
export function redisOfTests(): () => RedisServer {
  let server: RedisServer;
  beforeAll(async () => {
    server = await startRedis();
  });
  afterAll(() => server.stop());
  return () => server;
}

/** Encodes the head of a record, with the layout of docs/reference/redis-schema.md. */
export function encodeHead(session: NewSession, createdAt: StoreMs, state: RotationState = firstState("")): Buffer {
  const head = Buffer.alloc(55);
  head.writeUInt8(flagsOf(session), 0);
  head.writeUInt32BE(state.generation, 1);
  for (const [at, word] of [...wordsOf(state.nonce), ...wordsOf(state.childNonce)].entries()) {
    head.writeUInt32BE(word, 5 + 4 * at);
  }
  const times = [state.siblingsSince, state.childServedAt, state.childMintedAt, createdAt];
  for (const [at, time] of times.entries()) head.writeUIntBE(time, 21 + 6 * at, 6);
  head.writeUIntBE(session.idleTimeoutMs, 45, 5);
  head.writeUIntBE(session.absoluteLifetimeMs, 50, 5);
  return head;
}

/** An empty nonce, of a token that was never used, is zero. */
const wordsOf = (nonce: string) => (nonce === "" ? [0, 0] : nonceWords(nonce));
