/** Measures the cost of each operation alone, and then a mixture of all, to check whether the costs add up. */
import { serverVersion } from "../../support/redis.ts";
import { startWatchers } from "../logout/watchers.ts";
import { machine } from "../machine.ts";
import { ADMIN_TOKEN, logIn, type Service } from "../refresh/service.ts";
import type { Costs } from "./costs.ts";
import { type Demand, HEARTBEATS_PER_SECOND, instanceCores, redisCores } from "./needs.ts";
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

/** The rate of refreshes in the measurement: about half of what one core can serve. */
const REFRESHES_PER_SECOND = 2_400;
/**
 * How many intervals of `SLICE_S` pass before a measurement begins, to warm up the service. V8 compiles a function only after many calls.
 */
const WARM_SLICES = 3;
const ENDINGS_PER_SECOND = 100;
/** The number of instances that receive no requests and only read from the log which sessions another instance has ended. */
const READERS = 3;
const SESSIONS = 10_000;
/** Nearly as many as an instance takes. A message is encoded once for all, so for each of a few watchers it costs several times as much. */
const WATCHERS = 900;
/** The bytes of a message of the feed without revocations, as Connect frames it. */
const MESSAGE_BYTES = 130;

type Log = (text: string) => void;
type Cost = { readonly instance: number; readonly redis: number };

const rest = (seconds: number) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

/** Measures the cost of a second without work, in µs of CPU. */
async function atRest(world: World): Promise<Cost> {
  const { seconds, instance, redis } = await spent(world, () => rest(SLICE_S));
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
    log("refreshes");
    const ofRefresh = await refreshes(service, await logIn(service, SESSIONS), REFRESHES_PER_SECOND);
    for (let slice = 0; slice < WARM_SLICES; slice++) await ofRefresh.run();
    let count = 0;
    const refreshing = await spent(world, async () => {
      count = await ofRefresh.run();
    });
    await ofRefresh.stop();
    const refresh = each(refreshing, idle, count);
    log("endings");
    const { ending, reading } = await measureEndings(world, service, idle);
    log("watchers");
    const message = await measureMessages(world, service, idle);
    const [user] = await logIn(service, 1);
    if (user === undefined) throw new Error("no session");
    const bytes = {
      refresh: await bytesOfRefresh(service, user),
      refreshAtRedis: refreshing.redisBytes / (REFRESHES_PER_SECOND * SLICE_S),
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

/** Measures the cost of one message of the feed for each watcher. */
async function measureMessages(world: World, service: Service, idle: Cost): Promise<number> {
  const watchers = await startWatchers([service.adminUrl], ADMIN_TOKEN, WATCHERS);
  await rest(WARM_SLICES * SLICE_S);
  const before = await watchers.messages();
  const watching = await spent(world, () => rest(SLICE_S));
  const messages = (await watchers.messages()) - before;
  watchers.stop();
  return each(watching, idle, messages).instance;
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

/** Measures a mixture of all operations at two instances, and compares the costs with those that the formulas predict. */
export async function compare(costs: Costs, log: Log): Promise<Compared[]> {
  const world = await startWorld(2);
  try {
    const [one, two] = world.services as [Service, Service];
    log("a mixture");
    const loads = await Promise.all([
      refreshes(one, await logIn(one, SESSIONS / 2), REFRESHES_PER_SECOND / 2),
      refreshes(two, await logIn(two, SESSIONS / 2), REFRESHES_PER_SECOND / 3),
    ]);
    const ending = await logouts(two, await logIn(two, SESSIONS / 2), ENDINGS_PER_SECOND / 2);
    for (let slice = 0; slice < WARM_SLICES; slice++) await Promise.all(loads.map((load) => load.run()));
    await ending.run(); // The first run warms up the service.
    const watchers = await startWatchers([one.adminUrl], ADMIN_TOKEN, WATCHERS);
    const before = await watchers.messages();
    let counts: number[] = [];
    const CREATIONS = 200;
    const mixture = await spent(world, async () => {
      counts = await Promise.all([
        ...loads.map((load) => load.run()),
        ending.run(),
        logIn(one, CREATIONS).then(() => CREATIONS),
      ]);
    });
    const messages = (await watchers.messages()) - before;
    watchers.stop();
    await Promise.all([...loads, ending].map((load) => load.stop()));
    const [ofOne = 0, ofTwo = 0, endings = 0] = counts;
    const demand: Demand = {
      refreshesPerSecond: (ofOne + ofTwo) / mixture.seconds,
      creationsPerSecond: CREATIONS / mixture.seconds,
      endingsPerSecond: endings / mixture.seconds,
      sessions: 0,
      verifiers: 0,
    };
    const feed = (messages * costs.instance.message) / mixture.seconds / 1e6;
    const idle = (2 * costs.instance.rest) / 1e6;
    const reading = (2 * demand.endingsPerSecond * costs.instance.reading) / 1e6;
    log(
      `messages: ${messages}, heartbeats alone would be ${Math.round(WATCHERS * HEARTBEATS_PER_SECOND * mixture.seconds)}`,
    );
    return [
      {
        what: "CPU of two instances, cores",
        predicted: instanceCores(demand, costs).requests + reading + feed + idle,
        measured: mixture.instance / mixture.seconds / 1e6,
      },
      {
        what: "CPU of Redis, cores",
        predicted: redisCores(demand, costs, 2, false),
        measured: mixture.redis / mixture.seconds / 1e6,
      },
    ];
  } finally {
    await world.stop();
  }
}
