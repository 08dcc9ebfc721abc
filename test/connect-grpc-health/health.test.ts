/** The health package on a Connect server of its own, as the stock gRPC client sees it. */
import { createClient } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { Health as HealthService } from "../../gen/grpc/health/v1/health_pb.ts";
import {
  addHealth,
  Health,
  type HealthOptions,
  type HealthServiceOptions,
  ServingStatus,
} from "../../src/connect-grpc-health/index.ts";
import { RichService } from "../connect-http-routes/gen/rich/v1/rich_pb.ts";
import { openHttp2 } from "../connect-http-routes/support/servers.ts";
import { type HealthClient, healthClient } from "../support/health-client.ts";
import { until } from "../support/until.ts";

async function serve(options: Partial<HealthOptions> = {}, service: HealthServiceOptions = {}) {
  const health = new Health({ services: [RichService, "acme.v1.Other"], ...options });
  const adapter = connectNodeAdapter({
    routes: (router) => void addHealth(router, health, service),
  });
  const listener = await openHttp2(adapter);
  const client: HealthClient = healthClient(listener.origin);
  onTestFinished(async () => {
    client.close();
    await listener[Symbol.asyncDispose]();
  });
  return { health, client, origin: listener.origin };
}

test("the server and each service are SERVING at first, and an unknown service is NOT_FOUND", async () => {
  const { client } = await serve();
  expect(await client.check("")).toBe("SERVING");
  expect(await client.check(RichService.typeName)).toBe("SERVING");
  expect(await client.check("acme.v1.Other")).toBe("SERVING");
  expect(await client.check("acme.v1.Nothing")).toBe("NOT_FOUND");
});

test("a status that is set concerns its service alone", async () => {
  const { client, health } = await serve();
  health.set("acme.v1.Other", ServingStatus.NOT_SERVING);
  expect(await client.list()).toEqual({
    "": "SERVING",
    "rich.v1.RichService": "SERVING",
    "acme.v1.Other": "NOT_SERVING",
  });
});

test("a watcher gets the status at once, and then each change and nothing else", async () => {
  const { client, health } = await serve();
  const watch = client.watch("acme.v1.Other");
  expect(await watch.next()).toBe("SERVING");
  health.set("acme.v1.Other", ServingStatus.SERVING);
  health.set(RichService.typeName, ServingStatus.NOT_SERVING);
  health.set("acme.v1.Other", ServingStatus.NOT_SERVING);
  expect(await watch.next()).toBe("NOT_SERVING");
  health.set("acme.v1.Other", ServingStatus.SERVING);
  expect(await watch.next()).toBe("SERVING");
  watch.cancel();
});

test("a watcher of an unknown service waits for it", async () => {
  const { client, health } = await serve();
  const watch = client.watch("acme.v1.Later");
  expect(await watch.next()).toBe("SERVICE_UNKNOWN");
  health.set("acme.v1.Later", ServingStatus.SERVING);
  expect(await watch.next()).toBe("SERVING");
  expect(await client.check("acme.v1.Later")).toBe("SERVING");
  watch.cancel();
});

test("after the shutdown nothing is serving, whatever is set", async () => {
  const { client, health } = await serve();
  const watch = client.watch("");
  expect(await watch.next()).toBe("SERVING");
  health.shutdown();
  expect(await watch.next()).toBe("NOT_SERVING");
  health.set("acme.v1.Other", ServingStatus.SERVING);
  expect(await client.check("acme.v1.Other")).toBe("NOT_SERVING");
  watch.cancel();
});

test("the probe decides at every check, by a rejection or by false", async () => {
  let outcome: () => unknown = () => true;
  const { client } = await serve({ probe: () => outcome() });
  expect(await client.check("")).toBe("SERVING");
  outcome = () => Promise.reject(new Error("the database is away"));
  expect(await client.check("acme.v1.Other")).toBe("NOT_SERVING");
  outcome = () => false;
  expect(await client.list()).toMatchObject({ "": "NOT_SERVING" });
  outcome = () => Promise.resolve();
  expect(await client.check("")).toBe("SERVING");
});

test("the probe goes on while there is a watcher, however many, and stops with the last", async () => {
  let calls = 0;
  let passes = true;
  const { client, health } = await serve({
    probeIntervalMs: 5,
    probe: () => {
      calls++;
      return passes;
    },
  });
  const watches = [client.watch(""), client.watch(""), client.watch("acme.v1.Other")];
  for (const watch of watches) expect(await watch.next()).toBe("SERVING");
  passes = false;
  for (const watch of watches) expect(await watch.next()).toBe("NOT_SERVING");
  for (const watch of watches) watch.cancel();
  await until(async () => expect(health.watchers).toBe(0));
  const before = calls;
  await client.check("");
  expect(calls).toBe(before + 1);
});

test("checks at the same time share one probe", async () => {
  const probes: (() => void)[] = [];
  const { client } = await serve({ probe: () => new Promise<void>((resolve) => probes.push(resolve)) });
  const checks = [client.check(""), client.check("acme.v1.Other")];
  await until(async () => expect(probes).toHaveLength(1));
  await client.check("acme.v1.Nothing"); // When this check returns, the server has also received the earlier checks.
  expect(probes).toHaveLength(1);
  probes[0]?.();
  expect(await Promise.all(checks)).toEqual(["SERVING", "SERVING"]);
});

test("watchers are bounded", async () => {
  const { client } = await serve({}, { maxWatchers: 2 });
  const watches = [client.watch(""), client.watch("")];
  for (const watch of watches) expect(await watch.next()).toBe("SERVING");
  expect(await client.watch("").next()).toBe("UNAVAILABLE");
  for (const watch of watches) watch.cancel();
});

test("one client has a quarter of the watches, and leaves the others to others", async () => {
  let asking = "a";
  const { client } = await serve({}, { maxWatchers: 8, clientOf: () => asking });
  const watches = [client.watch(""), client.watch("")];
  for (const watch of watches) expect(await watch.next()).toBe("SERVING");
  expect(await client.watch("").next()).toBe("RESOURCE_EXHAUSTED");
  asking = "b";
  const other = client.watch("");
  expect(await other.next()).toBe("SERVING");
  watches[0]?.cancel();
  asking = "a";
  const again = async () => {
    const watch = client.watch("");
    const status = await watch.next();
    watch.cancel();
    return status;
  };
  await until(async () => expect(await again()).toBe("SERVING"));
  for (const watch of [...watches, other]) watch.cancel();
});

test("a list of more services than a message should hold is refused", async () => {
  const { client } = await serve({ services: Array.from({ length: 101 }, (_, at) => `acme.v1.S${at}`) });
  await expect(client.list()).rejects.toThrow("RESOURCE_EXHAUSTED");
});

test("it speaks Connect too", async () => {
  const { origin } = await serve();
  const transport = createConnectTransport({ baseUrl: origin, httpVersion: "2" });
  const { status } = await createClient(HealthService, transport).check({ service: "" });
  expect(status).toBe(ServingStatus.SERVING);
});
