/** The revocation feed over real sockets, where others break: slow readers, many readers, moving readers, load, outages. */
import { readdir, readFile } from "node:fs/promises";
import { request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import type { Readable } from "node:stream";
import { setTimeout as pause } from "node:timers/promises";
import { Code } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { createRandom, systemEntropy } from "../../src/tokens/random.ts";
import type { Service } from "../support/service.ts";
import { admin, bearer, logIn, message, somebody } from "../support/sessions.ts";
import { aRedis, type Deployment, deploy, doorsOf, pick, read } from "./support/deployment.ts";
import { long, seconds } from "./support/run-length.ts";
import { Watcher } from "./support/watcher.ts";

function watch(deployment: Deployment, service: Service, cursor = ""): Watcher {
  const watcher = new Watcher(service.adminUrl, deployment.adminToken, cursor);
  onTestFinished(() => void watcher.stop());
  return watcher;
}

/** Ends a session that nobody knows, which is told like any other. */
async function revokeOne({ services, adminToken }: Deployment): Promise<string> {
  const sid = createRandom(systemEntropy()).sessionId(somebody());
  const { admin: listener } = doorsOf(pick(services));
  message(await listener.call(admin.revokeSession, { sessionId: sid }, bearer(adminToken)));
  return sid;
}

const first = ({ services }: Deployment): Service => {
  const [service] = services;
  if (service === undefined) throw new Error("no service");
  return service;
};

async function openFilesOf({ pid }: Service): Promise<number> {
  return (await readdir(`/proc/${pid}/fd`)).length;
}

test("200 watchers cost Redis no more than one", async () => {
  const redis = await aRedis();
  const deployment = await deploy(1, { REDIS_URL: redis.url });
  const one = watch(deployment, first(deployment));
  await one.until(({ caughtUp }) => caughtUp);

  /** Commands that Redis did for the service during some beats and some revocations. */
  const cost = async () => {
    await one.beats(1);
    await redis.admin.config("RESETSTAT");
    for (let i = 0; i < 3; i++) {
      await revokeOne(deployment);
      await one.beats(1);
    }
    await one.beats(2);
    const stats = await redis.admin.info("commandstats");
    const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
    return { scripts: calls("evalsha"), reads: calls("zrangebyscore"), published: calls("publish") };
  };
  const forOne = await cost();
  const others = Array.from({ length: 200 }, () => watch(deployment, first(deployment)));
  await Promise.all(others.map((watcher) => watcher.until(({ caughtUp }) => caughtUp)));
  const sid = await revokeOne(deployment);
  await Promise.all(others.map((watcher) => watcher.until(({ told }) => told.has(sid))));
  const forAll = await cost();
  console.log({ forOne, forAll });
  // A beat more or less falls into the time of measuring; each reads all 256 partitions.
  expect(forAll.scripts - forOne.scripts).toBeLessThanOrEqual(3);
  expect(forAll.reads - forOne.reads).toBeLessThanOrEqual(3 * 256);
  expect(forAll.published).toBe(forOne.published);
});

test("watchers that move between instances by their cursors are told of everything", async () => {
  const { url } = await aRedis();
  const deployment = await deploy(3, { REDIS_URL: url, REDIS_COMMAND_TIMEOUT: "5s" });
  const until = performance.now() + seconds(3, 60);
  const ended: string[] = [];
  const revoking = (async () => {
    while (performance.now() < until) ended.push(await revokeOne(deployment));
  })();
  let moves = 0;
  const movers = Array.from({ length: 10 }, async () => {
    const told = new Set<string>();
    let cursor = "";
    const stay = async (enough: (watcher: Watcher) => boolean) => {
      const watcher = watch(deployment, pick(deployment.services), cursor);
      await watcher.until(enough);
      await watcher.stop();
      for (const sid of watcher.told.keys()) told.add(sid);
      ({ cursor } = watcher);
    };
    while (performance.now() < until) {
      const batches = pick([1, 2, 5, 20]);
      await stay((watcher) => watcher.batches.length >= batches || performance.now() >= until);
      moves++;
    }
    await revoking;
    const last = await revokeOne(deployment);
    await stay((watcher) => watcher.told.has(last));
    return ended.filter((sid) => !told.has(sid));
  });
  const missed = (await Promise.all(movers)).flat();
  console.log({ revocations: ended.length, moves, missed: missed.length });
  expect(missed).toEqual([]);
});

test("heartbeats go on under load", async () => {
  const { url } = await aRedis();
  const deployment = await deploy(1, { REDIS_URL: url, REDIS_COMMAND_TIMEOUT: "5s" });
  const watchers = Array.from({ length: 20 }, () => watch(deployment, first(deployment)));
  await Promise.all(watchers.map((watcher) => watcher.until(({ caughtUp }) => caughtUp)));
  const start = performance.now();
  const until = start + seconds(3, 30);
  let calls = 0;
  const callers = Array.from({ length: 32 }, async () => {
    while (performance.now() < until) {
      // Refresh tokens: nothing of this load beats by being told.
      await logIn({ ...first(deployment), adminToken: deployment.adminToken });
      calls++;
    }
  });
  await Promise.all(callers);
  await Promise.all(watchers.map((watcher) => watcher.beats(1)));
  const gaps = watchers.flatMap(({ batches }) => {
    const times = batches.filter((time) => time >= start);
    return times.slice(1).map((time, i) => time - (times[i] ?? time));
  });
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  console.log({ calls, beats: gaps.length, meanGap: Math.round(mean), longestGap: Math.round(Math.max(...gaps)) });
  expect(mean).toBeLessThan(1000);
  // The short form shares its machine with other tests.
  if (long) expect(Math.max(...gaps)).toBeLessThan(1000);
});

test("while Redis is away there is silence, no heartbeat; then the same watchers go on", async () => {
  const redis = await aRedis("--appendonly", "yes", "--appendfsync", "always");
  const deployment = await deploy(2, { REDIS_URL: redis.url });
  const watchers = deployment.services.map((service) => watch(deployment, service));
  await Promise.all(watchers.map((watcher) => watcher.until(({ caughtUp }) => caughtUp)));
  const before = await revokeOne(deployment);
  await redis.kill();
  // Every instance has noticed once it says so.
  const { adminToken } = deployment;
  for (const service of deployment.services) {
    const ask = () => doorsOf(service).admin.call(admin.getSession, { sessionId: before }, bearer(adminToken));
    while (read(await ask(), () => "answered") !== undefined);
  }
  const silentFrom = performance.now() + 1000; // a reading that had begun may fail as late as its timeout
  await pause(3000);
  const silentUntil = performance.now();
  const late = new Watcher(first(deployment).adminUrl, adminToken);
  expect(await late.ended).toMatchObject({ rawMessage: expect.stringContaining("unavailable") });
  await redis.start();
  await Promise.all(watchers.map((watcher) => watcher.beats(1)));
  const after = await revokeOne(deployment);
  await Promise.all(watchers.map((watcher) => watcher.until(({ told }) => told.has(before) && told.has(after))));
  for (const { batches } of watchers) {
    expect(batches.filter((time) => time > silentFrom && time < silentUntil)).toEqual([]);
  }
});

/** Asks for the feed over HTTP/1.1 or HTTP/2 by hand, and reads nothing of the answer until told to. */
async function askAndWait(service: Service, adminToken: string, version: 1 | 2): Promise<Readable> {
  const path = "/auth.admin.v1.SessionAdminService/WatchRevocations";
  const headers = { ...bearer(adminToken), "content-type": "application/connect+json" };
  const body = Buffer.from("\0\0\0\0\x02{}");
  if (version === 1) {
    const outgoing = request(new URL(path, service.adminUrl), { method: "POST", headers, agent: false });
    onTestFinished(() => void outgoing.destroy());
    outgoing.end(body);
    return new Promise((resolve, reject) => outgoing.once("response", resolve).once("error", reject));
  }
  const session = connectHttp2(service.adminUrl);
  onTestFinished(() => session.destroy());
  const stream = session.request({ ":method": "POST", ":path": path, ...headers });
  stream.end(body);
  return new Promise((resolve, reject) => stream.once("response", () => resolve(stream)).once("error", reject));
}

/** Reads a Connect stream to its end: how many revocations it told, and the code that it ended with. */
async function readAll(answer: Readable): Promise<{ told: number; code: string | undefined }> {
  const chunks: Buffer[] = [];
  for await (const chunk of answer) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  let told = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at + 1);
    const text = JSON.parse(bytes.toString("utf8", at + 5, at + 5 + length));
    if (bytes[at] === 2) return { told, code: text.error?.code };
    told += text.revocations?.length ?? 0;
    at += 5 + length;
  }
  return { told, code: undefined };
}

/** A watcher who asks again while the service has not read the log yet. */
async function caughtUpWatcher(deployment: Deployment): Promise<Watcher> {
  for (;;) {
    const watcher = watch(deployment, first(deployment));
    const failure = await watcher.until(({ caughtUp }) => caughtUp).catch((error: unknown) => error);
    if (failure === undefined) return watcher;
    expect(failure).toMatchObject({ code: Code.Unavailable });
  }
}

/** Memory of a process that is its own, MiB. */
async function memoryOf(service: Service): Promise<number> {
  const status = await readFile(`/proc/${service.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

/** A service whose log is more than the buffers of any connection take, 6 MiB, and somebody who has read it. */
async function aLongLog() {
  const redis = await aRedis();
  const random = createRandom(systemEntropy());
  const [now, count] = [Date.now(), 100_000];
  for (let left = count; left > 0; left -= 10_000) {
    const entries = Array.from({ length: 10_000 }, () => [
      String(now),
      `${random.sessionId("somebody")} ${now} ${now + 300_000} logout`,
    ]);
    await redis.admin.zadd("{00}l", ...entries.flat());
  }
  const deployment = await deploy(1, { REDIS_URL: redis.url, REDIS_COMMAND_TIMEOUT: "10s" });
  const service = first(deployment);
  const reader = await caughtUpWatcher(deployment);
  expect(reader.told.size).toBe(count);
  const sleepers = await Promise.all(
    Array.from({ length: 20 }, (_, i) => askAndWait(service, deployment.adminToken, i % 2 === 0 ? 1 : 2)),
  );
  const asleepSince = performance.now();
  const asleepFor = (ms: number) => reader.until(() => performance.now() - asleepSince > ms);
  return { service, count, sleepers, asleepFor };
}

test("a watcher that reads nothing is cut off and told so, and nothing is kept for it", async () => {
  const { service, count, sleepers, asleepFor } = await aLongLog();
  await asleepFor(4_000);
  const early = await memoryOf(service);
  await asleepFor(10_500);
  const late = await memoryOf(service);
  const ends = await Promise.all(sleepers.map(readAll));
  const told = ends.reduce((sum, end) => sum + end.told, 0);
  console.log({ early, late, told });
  expect(new Set(ends.map(({ code }) => code))).toEqual(new Set(["resource_exhausted"]));
  // What was made for them arrived before the error: not much more than the buffers of connections take.
  expect(told).toBeLessThan((20 * count) / 2);
  expect(late - early).toBeLessThan(32);
});

if (long) {
  test("a watcher that goes on reading nothing is hung up on", async () => {
    const { service, sleepers, asleepFor } = await aLongLog();
    const before = await openFilesOf(service);
    await asleepFor(32_000);
    expect(before - (await openFilesOf(service))).toBeGreaterThanOrEqual(10);
    for (const sleeper of sleepers) await expect(readAll(sleeper)).rejects.toThrow(/aborted|NGHTTP2_ENHANCE_YOUR_CALM/);
  });
}
