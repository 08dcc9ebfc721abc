/** Two faults at once. */
import { setTimeout as sleep } from "node:timers/promises";
import { CuttingProxy } from "../proofs/support/proxy.ts";
import { type HoldingProxy, startHoldingProxy } from "../support/holding-proxy.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { type AnyFault, fault, type World } from "./world.ts";

type Both<P> = { readonly redis: RedisServer; readonly proxy: P };

const pair = <P extends { readonly port: number; stop(): Promise<void> }>(
  name: string,
  openProxy: (port: number) => Promise<P>,
  strike: (world: World<Both<P>>) => Promise<unknown>,
): AnyFault =>
  fault<Both<P>>({
    name: `two at once: ${name}`,
    async open() {
      const redis = await startRedis("--appendonly", "yes", "--appendfsync", "always");
      const proxy = await openProxy(redis.port);
      const stop = async () => {
        await proxy.stop();
        await redis.stop();
      };
      return { env: { REDIS_URL: `redis://127.0.0.1:${proxy.port}` }, parts: { redis, proxy }, stop };
    },
    async strike(world) {
      await strike(world);
    },
    instances: 2,
  });

async function killAndRestart(redis: RedisServer): Promise<void> {
  await redis.kill();
  await sleep(500);
  await redis.start();
}

async function cutAtRandom(proxy: CuttingProxy): Promise<void> {
  for (let at = 0; at < 20; at++) {
    proxy.cut(0.5);
    await sleep(100);
  }
}

async function loseReplies(proxy: HoldingProxy): Promise<void> {
  proxy.loseReplies();
  await sleep(2_000);
  proxy.recover();
}

async function stop(process: { kill(signal: NodeJS.Signals): void } | undefined, ms: number): Promise<void> {
  process?.kill("SIGSTOP");
  await sleep(ms);
  process?.kill("SIGCONT");
}

export const PAIRS: readonly AnyFault[] = [
  pair(
    "Redis kill -9, and connections are cut at random",
    (port) => CuttingProxy.to(port),
    ({ parts }) => Promise.all([killAndRestart(parts.redis), cutAtRandom(parts.proxy)]),
  ),
  pair("Redis SIGSTOP for 2 s, and one instance SIGSTOP for 3 s", startHoldingProxy, async ({ parts, services }) => {
    parts.redis.pause();
    await Promise.all([stop(services[1], 3_000), sleep(2_000).then(() => parts.redis.resume())]);
  }),
  pair("replies of Redis are lost for 2 s, and one instance kill -9", startHoldingProxy, async (world) => {
    const [, lost] = world.services;
    const losing = loseReplies(world.parts.proxy);
    await lost?.kill9();
    if (lost !== undefined) world.remove(lost);
    await losing;
    await world.add();
  }),
];
