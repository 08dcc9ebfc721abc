// Measures what signals cost and how soon they arrive, with one service, and receivers on loopback in a separate process.
//
//     npm run bench:signals [-- --part logout|latency|memory] [--store embedded|redis|cluster] [--rounds 20] [--rate 100]
//                           [--seconds 20] [--endings 100000] [--subscriptions 20]
//
// logout: the time of a logout with 100 subscriptions, 10 of which have an unreachable receiver, and without subscriptions, in turns.
// latency: from an acknowledged logout to its receiver, at a steady rate. memory: the resident memory of the service while many endings
// are delivered to many subscriptions. Other load on the machine distorts the figures, so the load average is printed with them.
import { loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { residentMemory } from "./refresh/proc.ts";
import { type BenchService, type Open, openService, storeNamed } from "./signals/service.ts";
import { startSink, wallNow } from "./signals/sink.ts";

const { values } = parseArgs({
  options: {
    part: { type: "string" },
    store: { type: "string", default: "embedded" },
    rounds: { type: "string", default: "20" },
    rate: { type: "string", default: "100" },
    seconds: { type: "string", default: "20" },
    endings: { type: "string", default: "100000" },
    subscriptions: { type: "string", default: "20" },
  },
});
const store = storeNamed(values.store);
/** An address at which nobody listens. */
const DEAD = "http://127.0.0.1:9/";
/**
 * How many logouts are made at one service before it is the turn of the second service, with which it is compared. `BLOCK_RATE` is the
 * number of logouts per second.
 */
const BLOCK = 20;
const BLOCK_RATE = 10;
/** How long to wait until the service uses new subscriptions, in ms. The service looks for them every 5 s. */
const SETTLE_MS = 6_000;
const SAMPLES = 10;

const parts = { logout: measureLogout, latency: measureLatency, memory: measureMemory };
for (const [name, measure] of Object.entries(parts)) {
  if (values.part !== undefined && values.part !== name) continue;
  await measure();
  console.log(`(${store} store, load ${loadavg()[0]?.toFixed(1)})`);
}
process.exit(0);

/** Makes calls at a steady rate, whether or not earlier calls have ended. */
async function paced<T>(items: readonly T[], perSecond: number, call: (item: T) => Promise<void>): Promise<void> {
  const begun = performance.now();
  const calls: Promise<void>[] = [];
  for (const [at, item] of items.entries()) {
    const wait = begun + (at * 1000) / perSecond - performance.now();
    if (wait > 0) await sleep(wait);
    calls.push(call(item));
  }
  await Promise.all(calls);
}

async function logIns(service: BenchService, count: number): Promise<readonly Open[]> {
  const opened: Open[] = [];
  while (opened.length < count) {
    const size = Math.min(16, count - opened.length);
    opened.push(...(await Promise.all(Array.from({ length: size }, () => service.logIn()))));
  }
  return opened;
}

function quantiles(times: readonly number[]): string {
  const sorted = times.toSorted((one, other) => one - other);
  const at = (share: number) => `${(sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(2)} ms`;
  return `p50 ${at(0.5)}, p90 ${at(0.9)}, p99 ${at(0.99)} of ${sorted.length}`;
}

async function measureLogout(): Promise<void> {
  const sink = await startSink(90);
  const [without, withMany] = [await openService(store), await openService(store)];
  for (const url of [...Array(10).fill(DEAD), ...sink.urls]) await withMany.subscribe(url);
  await sleep(SETTLE_MS);
  const times = new Map<BenchService, number[]>([
    [without, []],
    [withMany, []],
  ]);
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const service of round % 2 === 0 ? [without, withMany] : [withMany, without]) {
      const opened = await logIns(service, BLOCK);
      await paced(opened, BLOCK_RATE, async (session) => {
        const begun = performance.now();
        await service.logOut(session);
        // The first round only warms up the services, and is not counted.
        if (round > 0) times.get(service)?.push(performance.now() - begun);
      });
    }
  }
  console.log(`logout at ${BLOCK_RATE}/s without subscriptions: ${quantiles(times.get(without) ?? [])}`);
  console.log(`logout at ${BLOCK_RATE}/s with 100, 10 dead:     ${quantiles(times.get(withMany) ?? [])}`);
  await Promise.all([without.stop(), withMany.stop()]);
  sink.stop();
}

async function measureLatency(): Promise<void> {
  const [rate, seconds] = [Number(values.rate), Number(values.seconds)];
  const sink = await startSink(1);
  const service = await openService(store);
  for (const url of sink.urls) await service.subscribe(url);
  await sleep(SETTLE_MS);
  const warm = await logIns(service, rate);
  await paced(warm, rate, async (session) => void (await service.logOut(session)));
  const opened = await logIns(service, rate * seconds);
  const acknowledgedAt = new Map<string, number>();
  await paced(opened, rate, async (session) => {
    await service.logOut(session);
    acknowledgedAt.set(session.sessionId, wallNow());
  });
  let report = await sink.report();
  while (opened.some(({ sessionId }) => report.firstAt[sessionId] === undefined)) {
    await sleep(500);
    report = await sink.report();
  }
  const delays = opened.map(({ sessionId }) =>
    Math.max(0, (report.firstAt[sessionId] ?? 0) - (acknowledgedAt.get(sessionId) ?? 0)),
  );
  console.log(`acknowledged logout to receiver at ${rate}/s: ${quantiles(delays)}`);
  await service.stop();
  sink.stop();
}

async function measureMemory(): Promise<void> {
  const [endings, subscriptions] = [Number(values.endings), Number(values.subscriptions)];
  const sink = await startSink(subscriptions);
  const service = await openService(store);
  for (const url of sink.urls) await service.subscribe(url);
  await sleep(SETTLE_MS);
  const begun = performance.now();
  console.log(`${endings} endings through ${subscriptions} subscriptions; memory after each tenth (signals received):`);
  for (let sample = 0; sample < SAMPLES; sample++) {
    for (let left = endings / SAMPLES; left > 0; left -= 50) {
      const opened = await logIns(service, Math.min(50, left));
      await Promise.all(opened.map((session) => service.logOut(session)));
    }
    const { received } = await sink.report();
    console.log(`${Math.round(residentMemory(service.pid) ?? 0)} MiB (${received})`);
  }
  const ended = performance.now();
  let most = 0;
  while ((await sink.report()).received < endings * subscriptions) {
    most = Math.max(most, residentMemory(service.pid) ?? 0);
    await sleep(1_000);
  }
  const duration = (performance.now() - begun) / 1000;
  console.log(
    `most while the rest was delivered: ${Math.round(most)} MiB; at the end ${Math.round(residentMemory(service.pid) ?? 0)} MiB`,
  );
  const perSecond = Math.round((endings * subscriptions) / duration);
  console.log(
    `ended in ${Math.round((ended - begun) / 1000)} s, delivered in ${Math.round(duration)} s: ${perSecond} signals/s`,
  );
  await service.stop();
  sink.stop();
}
