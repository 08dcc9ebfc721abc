/** gRPC health checks and server reflection on both listeners, called by stock gRPC clients. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { reflectServices } from "../../../src/connect-http-gateway/reflection.ts";
import { healthClient } from "../../support/health-client.ts";
import { request } from "../../support/raw-http.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, startService, withKeys } from "../../support/service.ts";
import { bearer } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const run = promisify(execFile);
const PUBLIC = "auth.v1.SessionService";
const ADMIN = "auth.admin.v1.SessionAdminService";

function open(url: string) {
  const client = healthClient(url);
  onTestFinished(() => client.close());
  return client;
}

let redis: RedisServer;
let service: Service;
beforeAll(async () => {
  redis = await startRedis();
  const env = { REDIS_URL: redis.url, DATA_DIR: withKeys(), ADMIN_TOKENS: "health".repeat(8), DRAIN_DELAY: "600s" };
  service = await startService(env);
});
afterAll(async () => {
  await service.kill9();
  await redis.stop();
});

const listeners = [
  ["public", () => service.publicUrl, PUBLIC, "auth.v1.OAuthService"],
  ["admin", () => service.adminUrl, ADMIN, "auth.admin.v1.OAuthAdminService"],
] as const;

describe.each(listeners)("of the %s listener", (_, url, name, second) => {
  test("health is open to anybody, for the server and its services", async () => {
    const client = open(url());
    expect(await client.check("")).toBe("SERVING");
    expect(await client.check(name)).toBe("SERVING");
    expect(await client.check("other.Service")).toBe("NOT_FOUND");
    expect(await client.list()).toEqual({ "": "SERVING", [name]: "SERVING", [second]: "SERVING" });
  });

  test("one address has so many watches open at a time and no more", async () => {
    const [client, other] = [open(url()), open(url())];
    const watches = Array.from({ length: 25 }, () => client.watch(name));
    for (const watch of watches) expect(await watch.next()).toBe("SERVING");
    expect(await other.watch(name).next()).toBe("RESOURCE_EXHAUSTED");
    for (const watch of watches) watch.cancel();
    await until(async () => expect(await other.watch(name).next()).toBe("SERVING"));
  });
});

test("a store that goes away and comes back is seen by checks and watchers of both", async () => {
  const clients = listeners.map(([, url, name]) => ({ client: open(url()), name }));
  const watches = clients.map(({ client, name }) => client.watch(name));
  for (const watch of watches) expect(await watch.next()).toBe("SERVING");
  await redis.kill();
  for (const watch of watches) expect(await watch.next()).toBe("NOT_SERVING");
  for (const { client, name } of clients) expect(await client.check(name)).toBe("NOT_SERVING");
  await redis.start();
  for (const watch of watches) expect(await watch.next()).toBe("SERVING");
  for (const watch of watches) watch.cancel();
});

describe("reflection", () => {
  test("of the admin API needs a credential, whatever its scope", async () => {
    await expect(reflectServices(createGrpcTransport({ baseUrl: service.adminUrl }))).rejects.toThrow(
      "unauthenticated",
    );
    const { stdout } = await run("node_modules/.bin/buf", [
      ...["curl", "--http2-prior-knowledge", "--protocol", "grpc", "--reflect", "--list-methods"],
      ...["--reflect-header", `Authorization: ${bearer(service.adminToken).authorization}`, service.adminUrl],
    ]);
    expect(stdout).toContain(`${ADMIN}/RevokeSession\n`);
    expect(stdout).toContain("grpc.health.v1.Health/Check\n");
  });

  test("of the public API is off with Redis", async () => {
    const reflected = reflectServices(createGrpcTransport({ baseUrl: service.publicUrl }));
    await expect(reflected).rejects.toThrow("no server reflection");
  });

  test("of the public API is on with the embedded store, and can be switched off", async () => {
    const embedded = await startService();
    const registry = await reflectServices(createGrpcTransport({ baseUrl: embedded.publicUrl }));
    await embedded.stop();
    const services = [...registry].filter(({ kind }) => kind === "service").map(({ typeName }) => typeName);
    expect(services.toSorted()).toEqual(["auth.v1.OAuthService", PUBLIC]);
    const silent = await startService({ REFLECTION: "false" });
    const reflected = reflectServices(createGrpcTransport({ baseUrl: silent.publicUrl }));
    await expect(reflected).rejects.toThrow("no server reflection");
    await silent.stop();
  });
});

test("a service that drains is NOT_SERVING at once, for new checks and for watchers", async () => {
  const [one, other] = [open(service.publicUrl), open(service.adminUrl)];
  const watches = [one.watch(PUBLIC), other.watch("")];
  for (const watch of watches) expect(await watch.next()).toBe("SERVING");
  service.kill("SIGTERM");
  for (const watch of watches) expect(await watch.next()).toBe("NOT_SERVING");
  expect([await one.check(""), await other.check(ADMIN)]).toEqual(["NOT_SERVING", "NOT_SERVING"]);
  expect((await request(service.publicUrl, { path: "/readyz" })).status).toBe(503);
});

test("a service that is asked for the first time while it drains is NOT_SERVING", async () => {
  const draining = await startService({ DRAIN_DELAY: "600s" });
  onTestFinished(() => draining.kill9().then(() => {}));
  draining.kill("SIGTERM");
  await until(async () => expect((await request(draining.publicUrl, { path: "/readyz" })).status).toBe(503));
  expect(await open(draining.publicUrl).check("")).toBe("NOT_SERVING");
  expect(await open(draining.adminUrl).watch("").next()).toBe("NOT_SERVING");
});
