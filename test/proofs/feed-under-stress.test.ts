/** The revocation feed over real sockets: slow watchers, many watchers, watchers that change instances, load, and outages. */
import { readdir, readFile } from "node:fs/promises";
import { request } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import type { Readable } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { createRandom, systemEntropy } from "../../src/service/tokens/random.ts";
import type { Service } from "../support/service.ts";
import { admin, bearer, logIn, message, somebody } from "../support/sessions.ts";
import { until as eventually } from "../support/until.ts";
import { callersOf, type Deployment, deploy, pick, startTestRedis } from "./support/deployment.ts";
import { long, seconds } from "./support/run-length.ts";
import { Watcher } from "./support/watcher.ts";

function watch(deployment: Deployment, service: Service, cursor = ""): Watcher {
  const watcher = new Watcher(service.adminUrl, deployment.adminToken, cursor);
  onTestFinished(() => void watcher.stop());
  return watcher;
}

/** Starts a watcher of an idle instance. Tests measure time by its heartbeats, which a busy machine delays like those of other watchers. */
async function startPulse(): Promise<Watcher> {
  const quiet = await deploy(1, {});
  const pulse = watch(quiet, first(quiet));
  await pulse.until(({ caughtUp }) => caughtUp);
  return pulse;
}

/** Revokes a session that never existed: the feed reports it like any other. */
async function revokeOne({ services, adminToken }: Deployment): Promise<string> {
  const sid = createRandom(systemEntropy()).sessionId(somebody());
  const { admin: listener } = callersOf(pick(services));
  message(await listener.call(admin.revokeSession, { sessionId: sid }, bearer(adminToken)));
  return sid;
}

const first = ({ services }: Deployment): Service => {
  const [service] = services;
  if (service === undefined) throw new Error("no service");
  return service;
};

test("200 watchers cost Redis no more than one", async () => {
  const redis = await startTestRedis();
  const deployment = await deploy(1, { REDIS_URL: redis.url });
  const one = watch(deployment, first(deployment));
  await one.until(({ caughtUp }) => caughtUp);

  /** Returns how often the service reads the log and publishes during one revocation and some heartbeats. */
  const cost = async () => {
    await redis.admin.config("RESETSTAT");
    const sid = await revokeOne(deployment);
    await one.until(({ reportedAt }) => reportedAt.has(sid));
    await one.beats(3);
    const stats = await redis.admin.info("commandstats");
    const calls = (name: string) => Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(stats)?.[1] ?? 0);
    return { reads: calls("zrange"), published: calls("publish") };
  };
  const forOne = await cost();
  const others = Array.from({ length: 200 }, () => watch(deployment, first(deployment)));
  await Promise.all(others.map((watcher) => watcher.until(({ caughtUp }) => caughtUp)));
  const sid = await revokeOne(deployment);
  await Promise.all(others.map((watcher) => watcher.until(({ reportedAt }) => reportedAt.has(sid))));
  const forAll = await cost();
  // The instance must not read the log once for each of the watchers. On a busy machine it may read it up to four times as often as for one.
  expect(forAll.reads).toBeLessThanOrEqual(4 * forOne.reads);
  expect(forAll.published).toBe(forOne.published);
});

test("watchers that move between instances by their cursors miss nothing", async () => {
  const { url } = await startTestRedis();
  const deployment = await deploy(3, { REDIS_URL: url });
  const until = performance.now() + seconds(2, 60);
  const ended: string[] = [];
  const revoking = (async () => {
    while (performance.now() < until) ended.push(await revokeOne(deployment));
  })();
  let moves = 0;
  const movers = Array.from({ length: 10 }, async () => {
    const seen = new Set<string>();
    let cursor = "";
    const stay = async (enough: (watcher: Watcher) => boolean) => {
      const watcher = watch(deployment, pick(deployment.services), cursor);
      await watcher.until(enough);
      await watcher.stop();
      for (const sid of watcher.reportedAt.keys()) seen.add(sid);
      ({ cursor } = watcher);
    };
    while (performance.now() < until) {
      const batches = pick([1, 2, 5, 20]);
      await stay((watcher) => watcher.batches.length >= batches || performance.now() >= until);
      moves++;
    }
    await revoking;
    const last = await revokeOne(deployment);
    await stay((watcher) => watcher.reportedAt.has(last));
    return ended.filter((sid) => !seen.has(sid));
  });
  const missed = (await Promise.all(movers)).flat();
  console.log({ revocations: ended.length, moves, missed: missed.length });
  expect(missed).toEqual([]);
});

test("heartbeats go on under load", async () => {
  const { url } = await startTestRedis();
  const deployment = await deploy(1, { REDIS_URL: url });
  const watchers = Array.from({ length: 20 }, () => watch(deployment, first(deployment)));
  await Promise.all(watchers.map((watcher) => watcher.until(({ caughtUp }) => caughtUp)));
  const pulse = await startPulse();
  const start = performance.now();
  const until = start + seconds(0, 30);
  let calls = 0;
  let over = false;
  const callers = Array.from({ length: 32 }, async () => {
    while (!over) {
      // The load consists of logins, which the feed does not report, so every batch is a heartbeat.
      await logIn({ ...first(deployment), adminToken: deployment.adminToken });
      calls++;
    }
  });
  const beatsOf = ({ batches }: Watcher) => batches.filter((time) => time >= start);
  const enough = (watcher: Watcher) => performance.now() >= until && beatsOf(watcher).length >= 4;
  const beating = Promise.all(watchers.map((watcher) => watcher.until(enough))).finally(() => {
    over = true;
  });
  await Promise.all([...callers, beating]).finally(() => {
    over = true;
  });
  const gaps = watchers.map(beatsOf).flatMap((times) => times.slice(1).map((time, i) => time - (times[i] ?? time)));
  console.log({ calls, beats: gaps.length, longestGap: Math.round(Math.max(...gaps)) });
  // The heartbeats of an idle instance show how slow the machine is.
  const fewest = Math.min(...watchers.map((watcher) => beatsOf(watcher).length));
  expect(3 * fewest).toBeGreaterThanOrEqual(beatsOf(pulse).length);
  // The service promises at most one second between two heartbeats only on an otherwise idle machine. The long form of the test needs one.
  if (long) expect(Math.max(...gaps)).toBeLessThan(1_000);
});

test("while Redis is down there is no heartbeat; then the same watchers go on", async () => {
  const redis = await startTestRedis("--appendonly", "yes", "--appendfsync", "always");
  const deployment = await deploy(2, { REDIS_URL: redis.url, REDIS_COMMAND_TIMEOUT: "1s" });
  const watchers = deployment.services.map((service) => watch(deployment, service));
  await Promise.all(watchers.map((watcher) => watcher.until(({ caughtUp }) => caughtUp)));
  const pulse = await startPulse();
  const before = await eventually(() => revokeOne(deployment));
  await redis.kill();
  // The instance refuses a new watcher once it has noticed the outage.
  const { adminToken } = deployment;
  for (const { adminUrl } of deployment.services) {
    for (;;) {
      const late = new Watcher(adminUrl, adminToken);
      const refused = await late.until(({ batches }) => batches.length > 0).catch((error: unknown) => error);
      void late.stop();
      if (refused === undefined) continue;
      expect(refused).toMatchObject({ rawMessage: expect.stringContaining("unavailable") });
      break;
    }
  }
  await pulse.beats(1); // By now, all earlier messages of the instances have arrived.
  const received = watchers.map(({ batches }) => batches.length);
  await pulse.beats(5);
  expect(watchers.map(({ batches }) => batches.length)).toEqual(received);
  await redis.start();
  await Promise.all(watchers.map((watcher) => watcher.beats(1)));
  const after = await eventually(() => revokeOne(deployment));
  await Promise.all(
    watchers.map((watcher) => watcher.until(({ reportedAt }) => reportedAt.has(before) && reportedAt.has(after))),
  );
});

/** Requests the feed over HTTP/1.1 or HTTP/2 without a client library. @returns the response, of which nothing has been read yet */
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

/** Returns the private memory of a process, in MiB. */
async function memoryOf(service: Service): Promise<number> {
  const status = await readFile(`/proc/${service.pid}/status`, "utf8");
  return Number(/VmRSS:\s+(\d+) kB/.exec(status)?.[1]) / 1024;
}

const SLEEPERS = 20;

/** Starts a service whose log is larger than the buffers of any connection, 6 MiB, and a watcher that has read it. */
async function startWithLongLog() {
  const redis = await startTestRedis();
  const random = createRandom(systemEntropy());
  const [now, count] = [Date.now(), 100_000];
  for (let left = count; left > 0; left -= 10_000) {
    const entries = Array.from({ length: 10_000 }, () => [
      String(now),
      `${random.sessionId("somebody")} ${now} ${now + 300_000} logout`,
    ]);
    await redis.admin.zadd("{00}l", ...entries.flat());
  }
  const deployment = await deploy(1, { REDIS_URL: redis.url });
  const service = first(deployment);
  const reader = await eventually(async () => {
    const watcher = watch(deployment, service);
    await watcher.until(({ caughtUp }) => caughtUp);
    return watcher;
  });
  expect(reader.reportedAt.size).toBe(count);
  const fallAsleep = () =>
    Promise.all(Array.from({ length: SLEEPERS }, (_, i) => askAndWait(service, deployment.adminToken, i % 2 ? 2 : 1)));
  return { service, count, reader, fallAsleep };
}

/** Reads a Connect stream to its end. Returns how many revocations it reported, and the code with which it ended. */
async function readAll(stream: Readable): Promise<{ revocations: number; code: string | undefined }> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk as Buffer);
  const bytes = Buffer.concat(chunks);
  let revocations = 0;
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at + 1);
    const text = JSON.parse(bytes.toString("utf8", at + 5, at + 5 + length));
    if (bytes[at] === 2) return { revocations, code: text.error?.code };
    revocations += text.revocations?.length ?? 0;
    at += 5 + length;
  }
  return { revocations, code: undefined };
}

// These tests run only with `PROOF=long`. In every run, test/service/session/feed/feed.test.ts checks the same limits with a simulated clock.
if (long) {
  test("for watchers that read nothing nothing is kept", async () => {
    const { service, reader, fallAsleep } = await startWithLongLog();
    const early = await memoryOf(service);
    await fallAsleep();
    await reader.beats(3);
    const late = await memoryOf(service);
    console.log({ early, late });
    // If the service kept everything for all watchers, that would be 20 × 12 MiB of JSON. The limit leaves room for garbage and for the
    // buffers of the connections.
    expect(late - early).toBeLessThan(150);
  });

  test("a watcher that reads nothing for 10 s gets an error that asks it to resume", async () => {
    const { service, count, reader, fallAsleep } = await startWithLongLog();
    const sleepers = await fallAsleep();
    const asleepSince = performance.now();
    await reader.until(() => performance.now() - asleepSince > 4_000);
    const early = await memoryOf(service);
    await reader.until(() => performance.now() - asleepSince > 10_500);
    const late = await memoryOf(service);
    const ends = await Promise.all(sleepers.map(readAll));
    const revocations = ends.reduce((sum, end) => sum + end.revocations, 0);
    console.log({ early, late, revocations });
    expect(new Set(ends.map(({ code }) => code))).toEqual(new Set(["resource_exhausted"]));
    // The watchers received only the batches from before the error, which is little more than the buffers of connections hold.
    expect(revocations).toBeLessThan((SLEEPERS * count) / 2);
    expect(late - early).toBeLessThan(32);
  });

  test("the connection of a watcher that goes on reading nothing is closed", async () => {
    const { service, reader, fallAsleep } = await startWithLongLog();
    const openFiles = async () => (await readdir(`/proc/${service.pid}/fd`)).length;
    const sleepers = await fallAsleep();
    const before = await openFiles();
    const asleepSince = performance.now();
    await reader.until(() => performance.now() - asleepSince > 32_000);
    expect(before - (await openFiles())).toBeGreaterThanOrEqual(SLEEPERS / 2);
    for (const sleeper of sleepers) await expect(readAll(sleeper)).rejects.toThrow(/aborted|NGHTTP2_ENHANCE_YOUR_CALM/);
  });
}
