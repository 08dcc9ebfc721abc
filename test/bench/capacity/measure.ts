/** Measures the cost of each operation alone, and then a mixture of all, to check whether the costs add up. */
import { serverVersion } from "../../support/redis.ts";
import { startWatchers } from "../logout/watchers.ts";
import { machine } from "../machine.ts";
import { ADMIN_TOKEN, logIn, type Service } from "../refresh/service.ts";
import type { Costs } from "./costs.ts";
import { type Demand, instanceCores, PLAN, redisCores } from "./needs.ts";
import {
  bytesOfRefresh,
  figures,
  logouts,
  refreshes,
  SLICE_S,
  type Spent,
  spent,
  startWorld,
  type World,
} from "./world.ts";

/** The rate of refreshes at which the measurement looks for the one that takes the plan's share of a core. */
const FIRST_RATE = 2_400;
/**
 * How many intervals of `SLICE_S` pass before a measurement begins, to warm up the service. V8 compiles a function only after many calls.
 */
const WARM_SLICES = 3;
/** Of how many intervals of a steady load the median counts: on a virtual machine one differs from the next by a fifth. */
const ROUNDS = 5;
const ENDINGS_PER_SECOND = 100;
/** The number of instances that receive no requests and only read from the log which sessions another instance has ended. */
const READERS = 3;
const SESSIONS = 10_000;
/** The mixture besides its refreshes, a second: what an instance takes of a deployment with 100,000 refreshes a second. */
const MIXTURE = { creationsPerSecond: 4, endingsPerSecond: 28, verifiers: 200 };
/** The bytes of a message of the feed without revocations, as Connect frames it. */
const MESSAGE_BYTES = 130;

type Log = (text: string) => void;
type Cost = { readonly instance: number; readonly redis: number };

const rest = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Measures the cost of a second without work, in µs of CPU. The median leaves out the time when Redis enlarges its tables after logins. */
async function atRest(world: World): Promise<Cost> {
  const { seconds, instance, redis } = (await typical(world, () => rest(SLICE_S))).spending;
  return { instance: instance / seconds, redis: redis / seconds };
}

const each = ({ seconds, instance, redis }: Spent, idle: Cost, count: number): Cost => ({
  instance: (instance - idle.instance * seconds) / count,
  redis: (redis - idle.redis * seconds) / count,
});

/** @returns the costs on this machine */
export async function measure(log: Log): Promise<Costs> {
  const world = await startWorld(1);
  try {
    const [service] = world.services as [Service];
    const { creation, session, idle } = await measureCreations(world, service, log);
    log("endings");
    const { ending, reading } = await measureEndings(world, service, idle);
    log("watchers");
    const message = await measureMessages(world, service, idle, ending);
    log("refreshes");
    const costs = { creation: creation.instance, ending: ending.instance, message, rest: idle.instance };
    const { refresh, refreshAtRedis } = await measureRefreshes(world, service, idle, shareOfRefreshes(costs));
    const [user] = await logIn(service, 1);
    if (user === undefined) throw new Error("no session");
    const bytes = {
      refresh: await bytesOfRefresh(service, user),
      refreshAtRedis,
      message: MESSAGE_BYTES,
    };
    log("a cluster at rest");
    const cluster = await startWorld(1, "cluster");
    const alone = await startWorld(0, "cluster");
    const restOfCluster = (await atRest(cluster)).redis - (await atRest(alone)).redis;
    await Promise.all([cluster.stop(), alone.stop()]);
    return {
      instance: {
        refresh: refresh.instance,
        creation: creation.instance,
        ending: ending.instance,
        reading: reading.instance,
        message,
        rest: idle.instance,
      },
      redis: {
        refresh: refresh.redis,
        creation: creation.redis,
        ending: ending.redis,
        reading: reading.redis,
        rest: idle.redis,
        restOfCluster,
      },
      bytes,
      memory: { session },
      machine: machine(serverVersion()),
    };
  } finally {
    await world.stop();
  }
}

/** Returns the share of a core that refreshes have in a mixture with which an instance is as busy as planned. */
function shareOfRefreshes(costs: Omit<Costs["instance"], "refresh" | "reading">): number {
  const demand = { refreshesPerSecond: 0, sessions: 0, ...MIXTURE };
  const { requests, feed } = instanceCores(demand, { instance: { ...costs, refresh: 0, reading: 0 } });
  return PLAN.use - requests - feed - costs.rest / 1e6;
}

/**
 * Measures refreshes at the rate that they have in the mixture. At a tenth of that rate each costs nearly twice as much: the process wakes up for
 * each one, and its code has left the processor's caches.
 *
 * @param share the share of a core that refreshes have in the mixture
 */
async function measureRefreshes(world: World, service: Service, idle: Cost, share: number) {
  const sessions = await logIn(service, SESSIONS);
  let rate = FIRST_RATE;
  let found = { refresh: idle, refreshAtRedis: 0 };
  for (let round = 0; round < WARM_SLICES; round++) {
    const load = await refreshes(service, sessions.splice(0, SESSIONS / WARM_SLICES), rate);
    await load.run(); // The first run warms up the service.
    const { spending, counted } = await typical(world, load.run);
    await load.stop();
    found = { refresh: each(spending, idle, counted), refreshAtRedis: spending.redisBytes / counted };
    rate = (share * 1e6) / found.refresh.instance;
  }
  return found;
}

/** Measures an action several times, and returns the time for which the instances needed the median of all CPU time. */
async function typical<T>(world: World, what: () => Promise<T>) {
  const all: { spending: Spent; counted: T }[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    let counted: T | undefined;
    const spending = await spent(world, async () => {
      counted = await what();
    });
    all.push({ spending, counted: counted as T });
  }
  const cores = ({ spending }: { spending: Spent }) => spending.instance / spending.seconds;
  return all.sort((one, other) => cores(one) - cores(other))[ROUNDS >> 1] as (typeof all)[number];
}

/** Measures the end of sessions at one instance, alone and with other instances that only read the log. */
async function measureEndings(world: World, service: Service, idle: Cost): Promise<{ ending: Cost; reading: Cost }> {
  const ending = await endings(world, service, idle);
  const all = await startWorld(1 + READERS);
  try {
    const [first, ...readers] = all.services as [Service, ...Service[]];
    const others = { ...all, services: readers };
    await logIn(first, SESSIONS); // The first logins warm up the service.
    const idleOthers = await atRest(others);
    const steadily = await endings(others, first, idleOthers, ENDINGS_PER_SECOND);
    const together = await endings(others, first, idleOthers);
    const redis = Math.max(0, (together.redis - ending.redis) / READERS);
    return { ending, reading: { instance: steadily.instance / READERS, redis } };
  } finally {
    await all.stop();
  }
}

/** @param rate how many sessions to end per second; without it, as many as possible */
async function endings(world: World, service: Service, idle: Cost, rate?: number): Promise<Cost> {
  const load = await logouts(service, await logIn(service, SESSIONS), rate);
  if (rate !== undefined) await load.run(); // The first run warms up the service.
  let count = 0;
  const spending = await spent(world, async () => {
    count = await load.run();
  });
  await load.stop();
  return each(spending, idle, count);
}

/** Measures what a message of the feed costs for each watcher, while sessions end. What an ending itself costs is `ending`. */
async function measureMessages(world: World, service: Service, idle: Cost, ending: Cost): Promise<number> {
  const load = await logouts(service, await logIn(service, SESSIONS), MIXTURE.endingsPerSecond);
  const watchers = await startWatchers([service.adminUrl], ADMIN_TOKEN, MIXTURE.verifiers);
  await load.run(); // The first run warms up the service.
  const { spending, counted } = await typical(world, async () => {
    const before = await watchers.messages();
    return { endings: await load.run(), messages: (await watchers.messages()) - before };
  });
  watchers.stop();
  await load.stop();
  const ofEndings = { ...spending, instance: spending.instance - counted.endings * ending.instance };
  return each(ofEndings, idle, counted.messages).instance;
}

async function measureCreations(world: World, service: Service, log: Log) {
  log("creations");
  await logIn(service, SESSIONS); // The first logins warm up the service.
  const idle = await atRest(world);
  const before = await figures(world.nodes, "memory", "used_memory");
  const creating = await spent(world, () => logIn(service, SESSIONS));
  const session = ((await figures(world.nodes, "memory", "used_memory")) - before) / SESSIONS;
  return { creation: each(creating, idle, SESSIONS), session, idle };
}

type Compared = { readonly what: string; readonly predicted: number; readonly measured: number };

/**
 * Measures a mixture of all operations that takes the plan's share of a core of one instance, beside another instance that only reads the
 * log, and compares the costs with those that the formulas predict.
 */
export async function compare(costs: Costs, log: Log): Promise<Compared[]> {
  const world = await startWorld(2);
  try {
    const [busy] = world.services as [Service, Service];
    log("a mixture");
    const rate = (shareOfRefreshes(costs.instance) * 1e6) / costs.instance.refresh;
    const refreshing = await refreshes(busy, await logIn(busy, SESSIONS), rate);
    const ending = await logouts(busy, await logIn(busy, SESSIONS / 2), MIXTURE.endingsPerSecond);
    for (let slice = 0; slice < WARM_SLICES; slice++) await refreshing.run();
    await ending.run(); // The first run warms up the service.
    const watchers = await startWatchers([busy.adminUrl], ADMIN_TOKEN, MIXTURE.verifiers);
    const creations = MIXTURE.creationsPerSecond * SLICE_S;
    const { spending, counted } = await typical(world, async () => {
      const [refreshed, ended] = await Promise.all([refreshing.run(), ending.run(), logIn(busy, creations)]);
      return { refreshed, ended };
    });
    watchers.stop();
    await Promise.all([refreshing, ending].map((load) => load.stop()));
    const { seconds } = spending;
    const demand: Demand = {
      refreshesPerSecond: counted.refreshed / seconds,
      creationsPerSecond: creations / seconds,
      endingsPerSecond: counted.ended / seconds,
      sessions: 0,
      verifiers: MIXTURE.verifiers,
    };
    const idle = (2 * costs.instance.rest) / 1e6;
    const reading = (demand.endingsPerSecond * costs.instance.reading) / 1e6;
    const { requests, feed } = instanceCores(demand, costs);
    return [
      {
        what: "CPU of two instances, cores",
        predicted: requests + feed + reading + idle,
        measured: spending.instance / seconds / 1e6,
      },
      {
        what: "CPU of Redis, cores",
        predicted: redisCores(demand, costs, 2, false),
        measured: spending.redis / seconds / 1e6,
      },
    ];
  } finally {
    await world.stop();
  }
}
