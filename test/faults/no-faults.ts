/** Situations without a fault: the machine is busy, or the service is suspended for a moment. Every request must be served. */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { startBusyLoops } from "../busy/loops.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { type AnyFault, type Backend, type Fault, fault } from "./world.ts";

/** The default reuse interval, in ms. A refresh may wait in the service for at most a quarter of it. */
const REUSE_INTERVAL_MS = 10_000;
const STOPS_MS = [500, 1_000, 1_500, 2_000];
/**
 * How long the service runs between two suspensions, in ms. For the first `STALL_MS` of that time it may refuse requests that have waited
 * for too long.
 */
const BETWEEN_STOPS_MS = 300;
const STALL_MS = 100;
/** For how long before each suspension Redis delays commands, in ms: a small part of the time that they may take. */
const REDIS_WAITS_MS = 100;

export const STORES = ["Redis", "embedded store"] as const;
type Store = (typeof STORES)[number];

type Parts = RedisServer | undefined;

const open = (store: Store) => async (): Promise<Backend<Parts>> => {
  if (store === "embedded store") return { env: {}, parts: undefined, stop: async () => {} };
  const parts = await startRedis("--appendonly", "yes");
  return { env: { REDIS_URL: parts.url }, parts, stop: () => parts.stop() };
};

type Given = Pick<Fault<Parts>, "open" | "strike" | "reuseIntervalMs" | "instances">;

const none = (name: string, given: Given): AnyFault =>
  fault<Parts>({
    ...given,
    name: `no fault: ${name}`,
    // A busy machine may need longer than the default to send a request.
    env: { LOG_LEVEL: "info", REQUEST_TIMEOUT: "600s" },
    isNoFault: true,
    requestsPerSecond: 20,
  });

type BusyOptions = { readonly seconds: number; readonly loopsPerProcessor: number; readonly reuseIntervalMs?: number };

/** Runs a service on a machine that is overloaded by busy loops from before the start until the end. */
export const busyMachine = (
  store: Store,
  { seconds, loopsPerProcessor, reuseIntervalMs = REUSE_INTERVAL_MS }: BusyOptions,
) =>
  none(`${loopsPerProcessor} busy loops for each processor; ${store}`, {
    async open() {
      const loops = startBusyLoops(loopsPerProcessor * availableParallelism());
      const backend = await open(store)();
      const stop = async () => {
        await loops.stop();
        await backend.stop();
      };
      return { ...backend, stop };
    },
    strike: () => sleep(seconds * 1_000),
    reuseIntervalMs,
    instances: 1,
  });

/** Suspends every instance at once. In the meantime Redis replies to the commands that they have just sent. */
export const stopped = (store: Store, rounds: number, reuseIntervalMs = REUSE_INTERVAL_MS) =>
  none(`SIGSTOP for 0.5, 1, 1.5 and 2 s, again and again; ${store}`, {
    open: open(store),
    async strike({ parts: redis, services, allowStall }) {
      for (let round = 0; round < rounds; round++) {
        for (const ms of STOPS_MS) {
          redis?.pause();
          await sleep(REDIS_WAITS_MS);
          for (const service of services) service.kill("SIGSTOP");
          redis?.resume();
          await sleep(ms);
          for (const service of services) service.kill("SIGCONT");
          allowStall(STALL_MS);
          await sleep(BETWEEN_STOPS_MS);
        }
      }
    },
    reuseIntervalMs,
  });

/** On each store, up to 10,000 requests on a busy machine, and fifty suspensions of each length. */
export const NO_FAULTS: readonly AnyFault[] = STORES.flatMap((store) => [
  busyMachine(store, { seconds: 500, loopsPerProcessor: 4 }),
  stopped(store, 50),
]);
