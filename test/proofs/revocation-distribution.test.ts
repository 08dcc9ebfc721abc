/**
 * A logout holds everywhere: many verifiers over real sockets refuse every token of a session that was logged out, whatever is cut or
 * restarted in between. No verifier may miss a revocation; the times are only printed.
 */
import { EventEmitter, once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { PATIENCE_MS } from "../support/patience.ts";
import { startRedisCluster } from "../support/redis.ts";
import type { Service } from "../support/service.ts";
import { bearer, logIn } from "../support/sessions.ts";
import { until } from "../support/until.ts";
import { callersOf, deploy, ISSUER, outcomeOf, pick, startTestRedis } from "./support/deployment.ts";
import { CuttingProxy } from "./support/proxy.ts";
import { long } from "./support/run-length.ts";
import { now, type Refusal } from "./support/verifier-messages.ts";
import { VerifierProcess } from "./support/verifiers.ts";

const VERIFIERS = long ? 50 : 20;
const PROCESSES = long ? 2 : 1;
const { logout } = SessionService.method;

/** Starts a Redis that keeps everything that it has acknowledged. */
const durableRedis = () => startTestRedis("--appendonly", "yes", "--appendfsync", "always");

/** Starts 50 verifiers on two services with one store, with a proxy in front of each service. */
async function startWorld(store: { readonly REDIS_URL?: string }) {
  const deployment = await deploy(2, { ...store, ACCESS_TOKEN_TTL: "30m" });
  const { services, adminToken } = deployment;
  const adminPort = (service: Service) => Number(new URL(service.adminUrl).port);
  const proxies = await Promise.all(services.map((service) => CuttingProxy.to(adminPort(service))));
  onTestFinished(async () => {
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  });
  const adminUrls = proxies.map(({ port }) => `http://127.0.0.1:${port}`);
  const processes = Array.from({ length: PROCESSES }, () => new VerifierProcess());
  const count = VERIFIERS / PROCESSES;
  await Promise.all(processes.map((each) => each.start({ count, adminUrls, adminToken, issuer: ISSUER })));
  const dead: string[] = [];
  const events = new EventEmitter<{ dead: [] }>();

  /** Logs in on any available instance. */
  const logInSomewhere = () =>
    until(async (): Promise<string> => (await logIn({ ...pick(services), adminToken })).accessToken);
  /** Logs out, and repeats the request until the outcome is known. @returns the time of the acknowledgement */
  const logOut = async (token: string): Promise<number> => {
    for (;;) {
      const response = await callersOf(pick(services)).public.call(logout, {}, bearer(token));
      // An earlier attempt has ended the session, although its response was lost.
      if (outcomeOf(response, () => "done") !== undefined) return now();
      await pause(10);
    }
  };

  /**
   * Logs this many sessions out, several at a time, and prints how long each verifier took to refuse each.
   *
   * @param disturb called before and after each logout
   */
  const logOutMany = async (sessions: number, disturb = () => {}): Promise<void> => {
    const outcomes: Promise<readonly (Refusal & { acknowledgedAt: number })[]>[] = [];
    let left = sessions;
    const users = Array.from({ length: 4 }, async () => {
      while (left-- > 0) {
        const token = await logInSomewhere();
        const watches = await Promise.all(processes.map((each) => each.watch(token)));
        disturb();
        const acknowledgedAt = await logOut(token);
        dead.push(token);
        events.emit("dead");
        disturb();
        outcomes.push(
          Promise.all(watches.map(({ refused }) => refused)).then((refusals) =>
            refusals.flat().map((refusal) => ({ ...refusal, acknowledgedAt })),
          ),
        );
      }
    });
    await Promise.all(users);
    // A verifier that still accepts a token after `PATIENCE_MS` has missed the revocation.
    let refused = 0;
    for (const outcome of outcomes) void outcome.then(() => refused++);
    await Promise.race([Promise.all(outcomes), pause(PATIENCE_MS, undefined, { ref: false })]);
    expect(sessions - refused, "tokens that a verifier still accepts").toBe(0);
    const refusals = (await Promise.all(outcomes)).flat();
    expect(refusals).toHaveLength(sessions * VERIFIERS);
    const { currentTestName } = expect.getState();
    console.log(`${currentTestName}: ${sessions} logouts, ${VERIFIERS} verifiers`, {
      "acknowledged → refused, ms": distribution(refusals.map((each) => each.refusedAt - each.acknowledgedAt)),
      "accepted after that, ms": distribution(refusals.map((each) => each.lastAcceptedAt - each.acknowledgedAt)),
    });
  };

  /** Checks that all verifiers, and a new one, refuse ended sessions and accept live ones. */
  const finish = async (): Promise<void> => {
    const live = await Promise.all(Array.from({ length: 5 }, logInSomewhere));
    const wrong = await Promise.all(processes.map((each) => each.check(dead, live)));
    expect(wrong.flat()).toEqual([]);
    const newcomer = createVerifier({ adminUrl: pick(adminUrls), adminToken, issuer: ISSUER, audience: ISSUER });
    onTestFinished(() => newcomer.close());
    await newcomer.ready;
    for (const token of dead) expect(await newcomer.verify(token)).toMatchObject({ reason: "revoked" });
    for (const token of live) expect(await newcomer.verify(token)).toMatchObject({ ok: true });
  };

  /** Stops a service in one of two ways and starts it again behind its proxy. */
  const restart = async (at: number, how: "kill9" | "stop"): Promise<void> => {
    const [proxy, service] = [proxies[at], services[at]];
    if (proxy === undefined || service === undefined) throw new Error("no such service");
    proxy.target = undefined;
    await service[how]();
    const successor = await service.restart();
    services[at] = successor;
    proxy.target = adminPort(successor);
  };

  /** Waits until some logouts have succeeded since the last fault. On a busy machine, faults at fixed times would prevent all logouts. */
  const progress = async (ended: Promise<void>): Promise<void> => {
    const enough = dead.length + 10;
    let over = false;
    const noted = ended.finally(() => {
      over = true;
    });
    while (dead.length < enough && !over) await Promise.race([once(events, "dead"), noted]);
  };

  return { proxies, logOutMany, finish, restart, progress };
}

/** Returns the distribution of times. A token that was refused before the acknowledgement has a negative time, which counts as 0. */
function distribution(values: readonly number[]) {
  const sorted = values.map((value) => Math.max(0, value)).sort((a, b) => a - b);
  const at = (share: number) => Number((sorted[Math.ceil(share * sorted.length) - 1] ?? 0).toFixed(1));
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

test("on the embedded store", async () => {
  const { logOutMany, finish } = await startWorld({});
  await logOutMany(long ? 1000 : 50);
  await finish();
});

if (long) {
  test("on Redis", async () => {
    const { url } = await durableRedis();
    const { logOutMany, finish } = await startWorld({ REDIS_URL: url });
    await logOutMany(1000);
    await finish();
  });

  test("on a cluster", async () => {
    const cluster = await startRedisCluster();
    onTestFinished(() => cluster.stop());
    const { logOutMany, finish } = await startWorld({ REDIS_URL: cluster.url });
    await logOutMany(1000);
    await finish();
  });
}

/** Calls `again` repeatedly while `work` is running, at least once. */
async function whilst(work: Promise<void>, again: (ended: Promise<void>) => Promise<void>): Promise<void> {
  let over = false;
  const done = work.finally(() => {
    over = true;
  });
  done.catch(() => {}); // A rejection is handled where the result is awaited below.
  do await again(done);
  while (!over);
  await done;
}

test("streams cut at random, services killed and stopped, and started again", async () => {
  const { url } = await durableRedis();
  const { proxies, logOutMany, restart, progress, finish } = await startWorld({ REDIS_URL: url });
  const cut = () => {
    for (const proxy of proxies) proxy.cut(0.05);
  };
  await whilst(logOutMany(long ? 1000 : 50, cut), async (ended) => {
    await restart(0, "kill9");
    await progress(ended);
    await restart(1, "stop");
    await progress(ended);
  });
  await finish();
});

test("Redis killed and started again", async () => {
  const redis = await durableRedis();
  const { logOutMany, progress, finish } = await startWorld({ REDIS_URL: redis.url });
  await whilst(logOutMany(long ? 1000 : 50), async (ended) => {
    await redis.kill();
    await redis.start();
    await progress(ended);
  });
  await finish();
});
