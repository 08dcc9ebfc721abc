/**
 * Shares the command WAIT on one connection: callers that arrive while a WAIT is under way share the next one. Many simultaneous logouts
 * therefore need only a few WAITs, and these do not pile up while replicas are missing.
 *
 * WAIT only waits for the last write of its own connection, but the write to be acknowledged was made on another one. So this connection
 * first makes a small write of its own. Replicas receive all writes in one order, so replicas that have received the small write have
 * also received the write to be acknowledged. Before the small write, a lookup checks that the effects of the write to be acknowledged
 * exist, because this connection may already lead to a new master that never received them.
 */
import type { Redis } from "ioredis";
import { StoreUnavailable } from "../../session/ports.ts";
import type { CommandSender } from "./connection/send.ts";

/** @throws the errors of the commands, or StoreUnavailable */
export type SharedWait = (tag: string, evidence: readonly string[]) => Promise<void>;

type Deps = {
  readonly redis: Redis;
  readonly send: CommandSender["send"];
  readonly waitReplicas: number;
  readonly commandTimeoutMs: number;
};

type Waiter = {
  readonly tag: string;
  readonly evidence: readonly string[];
  readonly served: PromiseWithResolvers<void>;
};

/** The reply of PEXPIRETIME for a key that does not exist. */
const ABSENT = -2;

/** The key of the small write, without its tag. */
const WRITE = "w";
const WRITE_LIFE_MS = 1_000;

export function createSharedWait({ redis, send, waitReplicas, commandTimeoutMs }: Deps): SharedWait {
  let running = false;
  let waiting: Waiter[] = [];

  const isThere = async ({ tag, evidence }: Waiter): Promise<boolean> => {
    const expiries = await Promise.all(evidence.map((key) => send(redis, "pexpiretime", [tag + key])));
    return expiries.length === 0 || expiries.some((expiry) => Number(expiry) !== ABSENT);
  };
  const serve = async (waiters: readonly Waiter[]): Promise<void> => {
    const found = waiters.map(isThere);
    const writes = new Map<string, Promise<unknown>>();
    for (const { tag } of waiters) {
      if (!writes.has(tag)) writes.set(tag, send(redis, "set", [tag + WRITE, "", "PX", WRITE_LIFE_MS]));
    }
    const replicas = send(redis, "wait", [waitReplicas, Math.floor(commandTimeoutMs * 0.8)]);
    await Promise.all(
      waiters.map(async ({ tag, served }, at) => {
        const [there, write, count] = await Promise.allSettled([found[at], writes.get(tag), replicas]);
        for (const step of [there, write, count]) {
          if (step.status === "rejected") return served.reject(step.reason);
        }
        if (there.status === "fulfilled" && there.value !== true) {
          return served.reject(new StoreUnavailable("Redis: this master does not have what was written"));
        }
        const acknowledged = count.status === "fulfilled" ? Number(count.value) : 0;
        if (acknowledged >= waitReplicas) return served.resolve();
        served.reject(
          new StoreUnavailable(`Redis: ${acknowledged} of ${waitReplicas} replicas have acknowledged in time`),
        );
      }),
    );
  };
  const run = async () => {
    running = true;
    while (waiting.length > 0) {
      const waiters = waiting;
      waiting = [];
      await serve(waiters);
    }
    running = false;
  };
  return (tag, evidence) => {
    const served = Promise.withResolvers<void>();
    waiting.push({ tag, evidence, served });
    if (!running) void run();
    return served.promise;
  };
}
