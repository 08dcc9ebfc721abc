/** Spans of the gateway, as a collector receives them, and the trace context that the upstream receives. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Collector, startCollector } from "../support/collector.ts";
import { recordLoads } from "../support/loaded-modules.ts";
import { until } from "../support/until.ts";
import { runGatewayWith, startRelay } from "./running.ts";

const { directory, set, upstream, lastMetadata } = startRelay();
let collector: Collector;
beforeAll(async () => {
  collector = await startCollector();
});
afterAll(() => collector[Symbol.asyncDispose]());

const id = (bytes: number) => randomBytes(bytes).toString("hex");

async function start(...args: string[]) {
  const headers = join(directory, "headers");
  writeFileSync(headers, "authorization=Bearer secret\n");
  const otlp = ["--otlp-endpoint", collector.url, "--otlp-headers", headers, ...args];
  const gateway = await runGatewayWith(
    { OTEL_BSP_SCHEDULE_DELAY: "20", OTEL_EXPORTER_OTLP_TIMEOUT: "2000", OTEL_SERVICE_NAME: "front" },
    ...[...upstream(), "--descriptors", set, ...otlp],
  );
  const call = (path: string, headers: Record<string, string> = {}) => fetch(`${gateway.origin}${path}`, { headers });
  const spansOf = (traceId: string) =>
    until(() => {
      const spans = collector.spans.filter((span) => span.traceId === traceId);
      const [server, client] = [2, 3].map((kind) => spans.find((span) => span.kind === kind));
      if (server === undefined || client === undefined) throw new Error(`there are ${spans.length} spans`);
      return { server, client };
    });
  return { ...gateway, call, spansOf };
}

test.each([
  ["a unary call", "/v1/items/a?how=headers", "relay.v1.RelayService/Get"],
  ["a stream", "/v1/counts/a?number=2", "relay.v1.RelayService/Count"],
])("%s continues the trace of its client, and the upstream gets the span of the call", async (_, path, rpc) => {
  const { call, spansOf, line } = await start();
  const [traceId, parent] = [id(16), id(8)];
  const context = { traceparent: `00-${traceId}-${parent}-01`, tracestate: "acme=1" };
  const response = await call(path, context);
  expect([response.status, (await response.text()) !== ""]).toEqual([200, true]);
  const { server, client } = await spansOf(traceId);
  expect(server).toMatchObject({ name: "GET", parentSpanId: parent, resource: { "service.name": "front" } });
  expect(client).toMatchObject({ name: rpc, parentSpanId: server.spanId });
  expect(client.attributes).toMatchObject({ "rpc.system.name": "grpc", "server.address": "127.0.0.1" });
  expect(lastMetadata().get("traceparent")).toEqual([`00-${traceId}-${client.spanId}-01`]);
  expect(lastMetadata().get("tracestate")).toEqual(["acme=1"]);
  expect(lastMetadata().get("content-type")).toEqual([]);
  expect((await line(({ event }) => event === "request")).traceId).toBe(traceId);
  expect([...collector.authorizations]).toEqual(["Bearer secret"]);
});

test("a failed call is an error of its span, without its text", async () => {
  const { call, spansOf } = await start();
  const traceId = id(16);
  await call("/v1/items/a?how=detail", { traceparent: `00-${traceId}-${id(8)}-01` });
  const { server, client } = await spansOf(traceId);
  expect([server.status, client.status]).toEqual([0, 2]);
  expect(client.attributes).toMatchObject({ "rpc.response.status_code": "RESOURCE_EXHAUSTED" });
});

test("a trace that is not recorded goes on to the upstream as it came, and so does each without a collector", async () => {
  const [caller, sampled] = [`00-${id(16)}-${id(8)}-00`, `00-${id(16)}-${id(8)}-01`];
  const { call } = await start("--trace-ratio", "0");
  await call("/v1/items/a", { traceparent: caller });
  expect(lastMetadata().get("traceparent")).toEqual([caller]);
  await call("/v1/items/a");
  expect(lastMetadata().get("traceparent")).toEqual([]);
  const modules = recordLoads();
  const off = await runGatewayWith(modules.env, ...upstream(), "--descriptors", set);
  await fetch(`${off.origin}/v1/items/a`, { headers: { traceparent: sampled } });
  expect(lastMetadata().get("traceparent")).toEqual([sampled]);
  expect(modules.loaded()).toContain("/src/connect-http-gateway/gateway.ts");
  expect(modules.loaded()).not.toMatch(/opentelemetry|\/telemetry\/|tracing\.ts/);
});

test("waiting spans are exported before the gateway ends, and a collector that is away changes nothing", async () => {
  const gateway = await start();
  const traceId = id(16);
  await gateway.call("/v1/items/a", { traceparent: `00-${traceId}-${id(8)}-01` });
  gateway.process.kill("SIGTERM");
  await gateway.spansOf(traceId);
  const away = await start("--otlp-endpoint", "http://127.0.0.1:9");
  expect((await away.call("/v1/items/a")).status).toBe(200);
  await away.line(({ event }) => event === "tracing failed");
  expect((await away.call("/v1/items/a")).status).toBe(200);
});
