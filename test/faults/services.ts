/** Faults of the service's own processes, and of the clocks. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { type Service, scratch } from "../support/service.ts";
import { type AnyFault, type Backend, fault, type World } from "./world.ts";

async function openRedis(): Promise<Backend<RedisServer>> {
  const parts = await startRedis("--appendonly", "yes");
  return { env: { REDIS_URL: parts.url }, parts, stop: () => parts.stop() };
}

const onServices = (name: string, strike: (world: World<RedisServer>) => Promise<void>, instances = 2): AnyFault =>
  fault<RedisServer>({ name: `service: ${name}`, open: openRedis, strike, instances });

const instance = ({ services }: World<unknown>, at: number) => services[at] as Service;

/** Replaces the instances one after the other. The first one is kept, because the test's verifier reads the revocation feed from it. */
async function rollingRestart(world: World<unknown>): Promise<void> {
  for (let round = 0; round < 2; round++) {
    const old = instance(world, 1);
    await world.add();
    await old.stop();
    world.remove(old);
  }
}

export const rolling = onServices("rolling restart, twice", rollingRestart, 2);

/** Runs two instances on one file, and kills one of them during its writes, three times. */
const killedOnEmbeddedStore: AnyFault = fault<undefined>({
  name: "service: one of two instances on the embedded store kill -9, and started again, three times",
  instances: 2,
  open: async () => ({ env: {}, parts: undefined, stop: async () => {} }),
  async strike(world) {
    for (let round = 0; round < 3; round++) {
      const lost = instance(world, 1);
      await lost.kill9();
      world.remove(lost);
      await world.add();
    }
  },
});

export const SERVICE_FAULTS: readonly AnyFault[] = [
  onServices("one instance SIGSTOP for 5.2 s (2.6 R)", async (world) => {
    instance(world, 1).kill("SIGSTOP");
    await sleep(5_200);
    instance(world, 1).kill("SIGCONT");
  }),
  onServices("one instance kill -9, and another starts", async (world) => {
    const lost = instance(world, 1);
    await lost.kill9();
    world.remove(lost);
    await world.add();
  }),
  rolling,
  killedOnEmbeddedStore,
];

const LIBRARY = ["/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib"]
  .map((directory) => join(directory, "faketime/libfaketime.so.1"))
  .find((path) => existsSync(path));

/** Returns the environment of a process that takes its wall clock from a file, and its monotonic clock from the machine. */
function clockFile(): { readonly env: Readonly<Record<string, string>>; set(offset: string): void } {
  if (LIBRARY === undefined) throw new Error("libfaketime is missing: sh test/setup.sh");
  const file = join(scratch(), "clock");
  const set = (offset: string) => writeFileSync(file, `${offset}\n`);
  set("+0s");
  const env = {
    LD_PRELOAD: LIBRARY,
    FAKETIME_TIMESTAMP_FILE: file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
  return { env, set };
}

type Clock = { set(offset: string): void };

/**
 * The steps of the services' wall clock. The clock of Redis is not changed, because its allocator does not work with libfaketime;
 * test/service/store covers the steps of that clock.
 */
const STEPS = ["+5s", "-4s", "+60s", "+0s", "+3600s", "+82800s", "+82790s", "+0s"];

export const serviceClockSteps = (pauseMs: number): AnyFault =>
  fault<Clock>({
    name: "clock: the service's is set 8 times, by −4 s to +23 h and back; embedded store",
    instances: 1,
    async open() {
      const { env, set } = clockFile();
      return { env, parts: { set }, stop: async () => {} };
    },
    async strike({ parts }) {
      for (const offset of STEPS) {
        parts.set(offset);
        await sleep(pauseMs);
      }
    },
  });
