/** No fault at all: the machine is busy, or the service is stopped for a moment. Every request is served. */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { startBusyLoops } from "../busy/loops.ts";
import { startRedis } from "../support/redis.ts";
import { type AnyFault, type Backend, type Fault, fault } from "./world.ts";

/** Busy loops for each processor. */
const LOOPS = 4;
const STOPS_MS = [500, 1_000, 1_500, 2_000];
/** How long the service runs between two stops, ms. */
const BETWEEN_STOPS_MS = 300;

const STORES = ["Redis", "embedded store"] as const;
type Store = (typeof STORES)[number];

const open = (store: Store) => async (): Promise<Backend<undefined>> => {
  if (store === "embedded store") return { env: {}, parts: undefined, stop: async () => {} };
  const server = await startRedis("--appendonly", "yes");
  return { env: { REDIS_URL: server.url }, parts: undefined, stop: () => server.stop() };
};

/** The settings are the defaults. */
const none = (name: string, given: Pick<Fault<undefined>, "open" | "strike" | "instances">): AnyFault =>
  fault<undefined>({
    ...given,
    name: `no fault: ${name}`,
    env: { LOG_LEVEL: "info" },
    reuseIntervalMs: 10_000,
    isNoFault: true,
    requestsPerSecond: 20,
  });

/** A machine with four times as much to do as it can, before the service starts and all the time. */
export const busyMachine = (store: Store, seconds: number) =>
  none(`${LOOPS} busy loops for each processor; ${store}`, {
    async open() {
      const loops = startBusyLoops(LOOPS * availableParallelism());
      const backend = await open(store)();
      const stop = async () => {
        await loops.stop();
        await backend.stop();
      };
      return { ...backend, stop };
    },
    strike: () => sleep(seconds * 1_000),
    instances: 1,
  });

/** Every instance at once. */
export const stopped = (store: Store, rounds: number) =>
  none(`SIGSTOP for 0.5, 1, 1.5 and 2 s, again and again; ${store}`, {
    open: open(store),
    async strike({ services }) {
      for (let round = 0; round < rounds; round++) {
        for (const ms of STOPS_MS) {
          for (const service of services) service.kill("SIGSTOP");
          await sleep(ms);
          for (const service of services) service.kill("SIGCONT");
          await sleep(BETWEEN_STOPS_MS);
        }
      }
    },
  });

/** 10,000 requests on a busy machine, and fifty stops of each length. */
export const NO_FAULTS: readonly AnyFault[] = STORES.flatMap((store) => [busyMachine(store, 500), stopped(store, 50)]);
