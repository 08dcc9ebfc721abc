/** Shutting down without failures: rolling restarts behind a load balancer, under load. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startBalancer } from "../../support/balancer.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { startLoad, type Way } from "../../support/load.ts";
import { HANG_MS } from "../../support/patience.ts";
import { request } from "../../support/raw-http.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, startService, withKeys } from "../../support/service.ts";
import { admin, bearer, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

/** With PROOF=long there are four rolling restarts of three instances with the default delay. */
const LONG = process.env.PROOF === "long";
const INSTANCES = LONG ? 3 : 2;
const ROUNDS = LONG ? 4 : 1;
const CLIENTS = LONG ? 8 : 3;
const WAYS: readonly Way[] = ["keep-alive", "rare keep-alive", "new connections", "HTTP/2"];

let redis: RedisServer;
let env: Record<string, string>;
beforeAll(async () => {
  redis = await startRedis();
  env = {
    REDIS_URL: redis.url,
    DATA_DIR: withKeys(),
    ISSUER: "http://auth.example",
    ADMIN_TOKENS: "drain".repeat(8),
    // The delay is long enough for the three round trips that end an HTTP/2 connection, even on a busy machine.
    DRAIN_DELAY: "5s",
    // Each client refreshes its session without a pause until the restarts are over.
    RATE_LIMIT_REFRESH: "off",
  };
});
afterAll(() => redis.stop());

test("rolling restarts behind a load balancer fail no request", { timeout: LONG ? 900_000 : HANG_MS }, async () => {
  const balancer = await startBalancer();
  const services: Service[] = [];
  const join = async () => {
    const service = await startService(env);
    services.push(service);
    await balancer.add(service.publicUrl);
    return service;
  };
  for (let i = 0; i < INSTANCES; i++) await join();
  const loads = await Promise.all(
    WAYS.map(async (way) => {
      const users = await Promise.all(Array.from({ length: CLIENTS }, () => logIn(services[0] as Service)));
      return startLoad(
        balancer.url,
        way,
        users.map(({ refreshToken }) => `refresh_token=${refreshToken}`),
      );
    }),
  );
  for (let restart = 0; restart < ROUNDS * INSTANCES; restart++) {
    await join();
    const leaving = services.shift() as Service;
    expect(await leaving.stop()).toEqual({ code: 0, signal: null });
    balancer.remove(leaving.publicUrl);
  }
  await Promise.all(loads.map((load) => load.stop()));
  expect(loads.flatMap(({ failures }) => failures)).toEqual([]);
  const requests = loads.map((load) => load.requests());
  expect(Math.min(...requests)).toBeGreaterThan(5);
  process.stdout.write(`rolling restarts: ${ROUNDS * INSTANCES}, requests: ${requests.join(" + ")}, failures: 0\n`);
  balancer.close();
  await Promise.all(services.map((service) => service.stop()));
});

test("while it drains it is not ready, and serves everything, new connections and streams too", async () => {
  const service = await startService({ ...env, DRAIN_DELAY: "60s" });
  const kept = connect(Number(new URL(service.publicUrl).port), "127.0.0.1");
  const ask = async () => {
    kept.write("GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n");
    return String((await once(kept, "data"))[0]);
  };
  expect(await ask()).toMatch(/^HTTP\/1\.1 200 /);
  service.kill("SIGTERM");
  await until(async () => expect(await ask()).toMatch(/^HTTP\/1\.1 503 /));
  expect(await ask()).not.toMatch(/connection: close/i);
  expect((await request(service.adminUrl, { path: "/readyz" })).status).toBe(503);
  const user = await logIn(service);
  const headers = { cookie: `refresh_token=${user.refreshToken}` };
  expect((await request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers })).status).toBe(200);
  const watch = RPC_PROTOCOLS[0]?.open(service.adminUrl).stream(admin.watchRevocations, {}, bearer(service.adminToken));
  const batches = watch?.[Symbol.asyncIterator]();
  expect((await batches?.next())?.value.cursor).not.toBe("");
  service.kill("SIGINT");
  // The stream ends with a specific error, after which it can be resumed at another instance from its last cursor.
  await expect(
    (async () => {
      while (!(await batches?.next())?.done);
    })(),
  ).rejects.toThrow("resume elsewhere");
  expect(await service.exited).toEqual({ code: 0, signal: null });
});
