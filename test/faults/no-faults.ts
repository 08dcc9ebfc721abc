/** Situations without a fault: the machine is busy, or the service is suspended for a moment. Every request must be served. */
import { availableParallelism } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { startBusyLoops } from "../busy/loops.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { slowness } from "../support/slowness.ts";
import { type AnyFault, type Backend, type Fault, fault } from "./world.ts";

type Limits = Required<Pick<Fault<Parts>, "reuseIntervalMs" | "env">>;
/** The defaults of the service. A refresh may wait in it for at most a quarter of the reuse interval. */
export const DEFAULTS: Limits = { reuseIntervalMs: 10_000, env: {} };
/**
 * The longest limits that the service takes, and no refusals because of overload. Beside other tests, requests wait for the processor, and so
 * does this process, which may stop Redis for longer than it means to; a service without its share of the processor refuses rightly. The long
 * form keeps the defaults where nothing else runs.
 */
export const PATIENT: Limits = {
  reuseIntervalMs: 300_000,
  env: {
    ...{ REQUEST_TIMEOUT: "600s", REDIS_COMMAND_TIMEOUT: "10s" },
    ...{ OVERLOAD_MAX_WAITING: "0", OVERLOAD_MAX_LOOP_DELAY: "0" },
  },
};
/** The slowness from which on other programs than those of a row keep the machine busy. */
const BUSY = 1.5;
const PROBES = 9;

/** Returns the limits for a machine, by several measurements of its slowness, of which one may have met a moment's work. */
export function limitsFor(probes: readonly number[]): Limits {
  const median = probes.toSorted((one, other) => one - other)[Math.floor(probes.length / 2)] ?? 1;
  return median < BUSY ? DEFAULTS : PATIENT;
}

const STOPS_MS = [500, 1_000, 1_500, 2_000];
/**
 * How long the service runs between two suspensions, in ms on an idle machine: on a busy one it would not get the processor in that time, and
 * requests would queue over many suspensions. For the first `STALL_MS` of that time it may refuse requests that have waited
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

type Given = Pick<Fault<Parts>, "open" | "strike" | "instances"> & { readonly limits: Limits | undefined };

/** @param given `limits`: by default those for the machine as it is before the row begins */
const none = (situation: string, given: Given): AnyFault => {
  const name = `no fault: ${situation}`;
  return {
    name,
    run(pace) {
      const limits = given.limits ?? limitsFor(Array.from({ length: PROBES }, slowness));
      const { reuseIntervalMs, env } = limits;
      return fault<Parts>({
        ...given,
        name:
          given.limits === undefined && limits === PATIENT ? `${name} (the longest limits, on a busy machine)` : name,
        reuseIntervalMs,
        env: { LOG_LEVEL: "info", ...env },
        isNoFault: true,
        requestsPerSecond: 20,
      }).run(pace);
    },
  };
};

type BusyOptions = { readonly seconds: number; readonly loopsPerProcessor: number; readonly limits?: Limits };

/** Runs a service on a machine that is overloaded by busy loops from before the start until the end. */
export const busyMachine = (store: Store, { seconds, loopsPerProcessor, limits }: BusyOptions) =>
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
    limits,
    instances: 1,
  });

/** Suspends every instance at once. In the meantime Redis replies to the commands that they have just sent. */
export const stopped = (store: Store, rounds: number, limits?: Limits) =>
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
          const factor = slowness();
          allowStall(STALL_MS * factor);
          await sleep(BETWEEN_STOPS_MS * factor);
        }
      }
    },
    limits,
  });

/** On each store, up to 10,000 requests on a busy machine, and fifty suspensions of each length. */
export const NO_FAULTS: readonly AnyFault[] = STORES.flatMap((store) => [
  busyMachine(store, { seconds: 500, loopsPerProcessor: 4 }),
  stopped(store, 50),
]);
