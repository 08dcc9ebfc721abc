/**
 * Every acknowledged end of a session reaches every receiver, despite receivers that fail for an hour of simulated time, an instance that
 * is killed (kill -9) while it delivers, and a failover of the store. Repeated signals have the same id.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, onTestFinished, test } from "vitest";
import { STORES } from "../support/every-protocol.ts";
import { type MovedClock, movedClock } from "../support/moved-clock.ts";
import { startReplica, startSentinel } from "../support/redis.ts";
import type { Service } from "../support/service.ts";
import { until } from "../support/until.ts";
import { startTestCluster, startTestRedis } from "./support/deployment.ts";
import type { Behaviour, Receiver } from "./support/receiver.ts";
import { long } from "./support/run-length.ts";
import { deploySignals, type SignalsWorld } from "./support/signals-world.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const LEASE_MS = 31_000;
const REFRESH_MS = 5_000;
const STEP_MS = (long ? 10 : 30) * MINUTE_MS;
const LOOKS_PER_STEP = long ? 100 : 15;
const ENDINGS = long ? 1_000 : 40;
/** The faults of receivers. A silent receiver delays each attempt by 10 s. */
const FAULTS: readonly Behaviour[] = ["garbage", 500, 302, 404, ...(long ? (["silent"] as const) : [])];

const SERVERS = { redis: startTestRedis, cluster: startTestCluster };

const envOf = async (store: "embedded" | keyof typeof SERVERS): Promise<Readonly<Record<string, string>>> =>
  store === "embedded" ? {} : { REDIS_URL: (await SERVERS[store]()).url };

/** Advances the clock in steps until a condition holds. Between two steps, instances have time to renew their leases. */
async function passUntil(clock: MovedClock, stepMs: number, holds: () => Promise<boolean>): Promise<void> {
  for (let looks = 0; !(await holds()); looks++) {
    if (looks % LOOKS_PER_STEP === 0) clock.pass(stepMs);
    await sleep(200);
  }
}

/** Asserts that no signal is lost and that each session has one signal id. Prints the counts. */
function expectWhole({ endings }: SignalsWorld, receivers: Readonly<Record<string, Receiver>>): void {
  const rows = Object.entries(receivers).map(([name, receiver]) => {
    const { repeated, ambiguous, redirected } = receiver;
    const lost = receiver.missing(endings.acknowledged).length;
    return {
      receiver: name,
      endings: endings.acknowledged.size,
      lost,
      repeated,
      ambiguous: ambiguous.length,
      redirected,
    };
  });
  if (long) console.table(rows);
  for (const row of rows) expect(row).toMatchObject({ lost: 0, ambiguous: 0, redirected: false });
}

describe.each(STORES)("on the %s store", (store) => {
  test("receivers that fail for an hour get all endings when they are repaired", async () => {
    const clock = movedClock();
    const world = await deploySignals(1, { ...(await envOf(store)), ...clock.env });
    const { endings, subscribe, reported, delivered } = world;
    const healthy = await subscribe();
    const slow = await subscribe("slow");
    const cut = await subscribe("cut");
    const down = await subscribe();
    await down.receiver.stop();
    const failing = [down, cut, ...(await Promise.all(FAULTS.map((fault) => subscribe(fault))))];
    clock.pass(10_000); // Instances look for new subscriptions at intervals, so the clock is advanced.
    await endings.end(ENDINGS);
    const from = Date.now();
    await passUntil(clock, STEP_MS, async () => {
      const subscriptions = await reported();
      return failing.every(
        ({ id }) => Number(subscriptions.get(id)?.lastErrorTime?.seconds ?? 0) * 1000 > from + HOUR_MS,
      );
    });
    await delivered([healthy.receiver, slow.receiver]);
    for (const { receiver } of failing) if (receiver !== cut.receiver) expect(receiver.accepted.size).toBe(0);

    await down.receiver.start();
    for (const { receiver } of failing) receiver.behaviour = "accept";
    const all = [healthy, slow, ...failing].map(({ receiver }) => receiver);
    await passUntil(clock, STEP_MS, async () =>
      all.every((receiver) => receiver.missing(endings.acknowledged).length === 0),
    );
    const names = ["healthy", "slow", "down", "response lost", ...FAULTS.map(String)];
    expectWhole(world, Object.fromEntries(all.map((receiver, at) => [names[at], receiver])));
    expect(cut.receiver.repeated).toBeGreaterThan(0);
  });
});

// On Redis, leases end by the clock of Redis, which the test cannot advance, so each kill takes half a minute.
const KILLED = long ? ([...STORES, "cluster"] as const) : (["embedded"] as const);

test.each(KILLED)("an instance on the %s store is killed while it delivers, and goes on", async (store) => {
  const clock = movedClock();
  const env = { ...(await envOf(store)), ...(store === "embedded" && clock.env) };
  const world = await deploySignals(1, env);
  const { services, endings, subscribe, reported } = world;
  const [quick, held] = [await subscribe(), await subscribe()];
  for (let kill = 0; kill < (long ? 5 : 2); kill++) {
    const before = quick.receiver.accepted.size;
    let over = false;
    const running = endings.endUntil(() => over);
    await passUntil(clock, LEASE_MS, async () => quick.receiver.accepted.size > before + ENDINGS / 4);
    // The requests to this receiver are under way when the instance is killed.
    held.receiver.behaviour = "silent";
    await until(async () => expect(held.receiver.missing(endings.acknowledged)).not.toEqual([]));
    // The position of signals that were accepted is stored, but not that of signals that were only sent.
    const stored = (await reported()).get(quick.id)?.delivered ?? 0n;
    clock.pass(REFRESH_MS);
    await until(async () => expect((await reported()).get(quick.id)?.delivered).toBeGreaterThan(stored));
    over = true;
    const [service] = services;
    await service?.kill9();
    await running;
    held.receiver.behaviour = "accept";
    services.splice(0, 1, (await service?.restart()) as Service);
  }
  const receivers = [quick.receiver, held.receiver];
  await passUntil(clock, LEASE_MS, async () =>
    receivers.every((receiver) => receiver.missing(endings.acknowledged).length === 0),
  );
  expectWhole(world, { quick: quick.receiver, held: held.receiver });
});

test("two instances take leases from each other while sessions end", async () => {
  const world = await deploySignals(2, await envOf("redis"));
  const { services, endings, subscribe, delivered } = world;
  const [quick, slow] = [await subscribe(), await subscribe("slow")];
  let over = false;
  const running = endings.endUntil(() => over);
  for (let turn = 0; turn < (long ? 6 : 2); turn++) {
    const before = endings.acknowledged.size;
    await until(async () => expect(endings.acknowledged.size).toBeGreaterThan(before + ENDINGS / 4));
    const at = turn % 2;
    const service = services[at] as Service;
    if (long) {
      // A suspended instance still believes that it holds its leases after the other instance has taken them over.
      service.kill("SIGSTOP");
      await sleep(LEASE_MS + 5_000);
      service.kill("SIGCONT");
    } else {
      await service.stop();
      services.splice(at, 1, await service.restart());
    }
  }
  over = true;
  await running;
  await delivered([quick.receiver, slow.receiver]);
  expectWhole(world, { quick: quick.receiver, slow: slow.receiver });
});

if (long)
  test("the master is killed while it has signals, and its replica promoted by Sentinel", async () => {
    const master = await startTestRedis("--appendonly", "yes");
    const replica = await startReplica(master, "--appendonly", "yes");
    const sentinel = await startSentinel(master);
    onTestFinished(async () => {
      await Promise.all([sentinel.stop(), replica.stop()]);
    });
    await until(async () =>
      expect((await sentinel.admin.call("SENTINEL", "REPLICAS", "main")) as unknown[]).toHaveLength(1),
    );
    const REDIS_URL = `redis+sentinel://127.0.0.1:${sentinel.port}/main`;
    const world = await deploySignals(2, { REDIS_URL, REDIS_WAIT_REPLICAS: "1", REDIS_COMMAND_TIMEOUT: "2s" });
    const { endings, subscribe, delivered } = world;
    const [quick, slow] = [await subscribe(), await subscribe("slow")];
    let over = false;
    const running = endings.endUntil(() => over);
    await until(async () => expect(quick.receiver.accepted.size).toBeGreaterThan(ENDINGS / 4));
    await master.kill();
    await until(async () => expect(await replica.admin.info("replication")).toContain("role:master"));
    await master.start(); // After about 10 s, Sentinel makes the old master a replica.
    const before = endings.acknowledged.size;
    await until(async () => expect(endings.acknowledged.size).toBeGreaterThan(before + ENDINGS / 4));
    over = true;
    await running;
    await delivered([quick.receiver, slow.receiver]);
    expectWhole(world, { quick: quick.receiver, slow: slow.receiver });
  });
