/** The telemetry that the service sends to an OpenTelemetry collector, which contains no secrets. */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS } from "../../../support/clients.ts";
import { type CollectedSpan, type Collector, startCollector } from "../../../support/collector.ts";
import { request } from "../../../support/raw-http.ts";
import { type Service, startService } from "../../../support/service.ts";
import {
  admin,
  bearer,
  cookie,
  type LoggedIn,
  logIn,
  openAdmin,
  openPublic,
  successor,
} from "../../../support/sessions.ts";
import { until } from "../../../support/until.ts";

const { refresh, listSessions } = SessionService.method;

/** Returns the trace context of a caller, sampled or not. */
function aCaller(recorded = true) {
  const traceId = randomBytes(16).toString("hex");
  const spanId = randomBytes(8).toString("hex");
  return { traceId, spanId, headers: { traceparent: `00-${traceId}-${spanId}-0${recorded ? 1 : 0}` } };
}

let collector: Collector;
let service: Service;
let user: LoggedIn;
beforeAll(async () => {
  collector = await startCollector();
  service = await startService({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: "sessions-of-acme",
    OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test,team=auth",
    OTEL_BSP_SCHEDULE_DELAY: "20",
    OTEL_METRIC_EXPORT_INTERVAL: "1000",
    LOG_LEVEL: "debug",
  });
  user = await logIn(service);
});
afterAll(async () => {
  await service.stop();
  await collector[Symbol.asyncDispose]();
});

/** Resolves with the spans of a trace as soon as there are `count` of them. */
const trace = (traceId: string, count: number): Promise<readonly CollectedSpan[]> =>
  until(async () => {
    const found = collector.spans.filter((span) => span.traceId === traceId);
    if (found.length < count) throw new Error("not yet");
    return found;
  });

const named = (spans: readonly CollectedSpan[], name: string) =>
  spans.find((span) => span.name === name) as CollectedSpan;

describe.each(PUBLIC_PROTOCOLS)("over $name", (protocol) => {
  const isGrpc = protocol.name.startsWith("gRPC");

  test("a refresh is a request, a call in it, and a command in that", async () => {
    const caller = protocol.open(service.publicUrl);
    const { traceId, spanId, headers } = aCaller();
    const response = await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...headers });
    caller.close();
    expect(response.ok).toBe(true);
    const spans = await trace(traceId, 3);
    expect(spans).toHaveLength(3);
    const http = named(spans, "POST");
    const rpc = named(spans, "auth.v1.SessionService/Refresh");
    const command = named(spans, "rotate");
    expect([http.parentSpanId, rpc.parentSpanId, command.parentSpanId]).toEqual([spanId, http.spanId, rpc.spanId]);
    expect([http.kind, rpc.kind, command.kind]).toEqual([2, 2, 3]);
    expect(http.attributes).toMatchObject({ "http.request.method": "POST", "http.response.status_code": 200 });
    expect(rpc.attributes).toEqual({
      "rpc.system.name": isGrpc ? "grpc" : "connectrpc",
      "rpc.method": "auth.v1.SessionService/Refresh",
      ...(isGrpc && { "rpc.response.status_code": "OK" }),
    });
    expect(command.attributes).toEqual({ "db.system.name": "sqlite", "db.operation.name": "rotate" });
    expect(http.resource).toMatchObject({
      "service.name": "sessions-of-acme",
      "deployment.environment.name": "test",
      team: "auth",
      "service.instance.id": expect.any(String),
    });
  });

  test("a refusal has its code, and is no error of the server", async () => {
    const caller = protocol.open(service.publicUrl);
    const { traceId, headers } = aCaller();
    await caller.call(refresh, {}, { ...cookie("nonsense"), ...headers });
    caller.close();
    const rpc = named(await trace(traceId, 2), "auth.v1.SessionService/Refresh");
    expect([rpc.attributes["rpc.response.status_code"], rpc.status]).toEqual([
      isGrpc ? "UNAUTHENTICATED" : "unauthenticated",
      0,
    ]);
  });
});

test("a caller whose trace is not recorded has none here", async () => {
  const caller = openPublic(service);
  const silent = aCaller(false);
  const loud = aCaller();
  await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...silent.headers });
  await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...loud.headers });
  caller.close();
  await trace(loud.traceId, 3);
  expect(collector.spans.filter(({ traceId }) => traceId === silent.traceId)).toEqual([]);
});

test("a request without a context, or with a broken one, begins a trace", async () => {
  const roots = () => collector.spans.filter(({ parentSpanId, name }) => parentSpanId === "" && name === "GET").length;
  const before = roots();
  for (const headers of [{}, { traceparent: "00-0-0-01" }]) {
    await request(service.publicUrl, { path: "/v1/auth/sessions", headers });
  }
  await until(async () => expect(roots()).toBe(before + 2));
});

test("probes and plain pages are no traces", async () => {
  const probed = aCaller();
  for (const path of ["/healthz", "/readyz", "/.well-known/jwks.json"]) {
    await request(service.publicUrl, { path, headers: probed.headers });
  }
  const { traceId, headers } = aCaller();
  await request(service.publicUrl, { path: "/v1/auth/sessions", headers });
  await trace(traceId, 2);
  expect(collector.spans.filter((span) => span.traceId === probed.traceId)).toEqual([]);
});

test("a watch of revocations is a span until its client leaves", async () => {
  const caller = openAdmin(service);
  const leaving = new AbortController();
  const { traceId, headers } = aCaller();
  const watch = caller.stream(
    admin.watchRevocations,
    {},
    { ...bearer(service.adminToken), ...headers },
    leaving.signal,
  );
  const batches = watch[Symbol.asyncIterator]();
  await batches.next();
  leaving.abort();
  await batches.next().catch(() => {});
  caller.close();
  const rpc = named(await trace(traceId, 2), "auth.admin.v1.SessionAdminService/WatchRevocations");
  expect([rpc.attributes["rpc.response.status_code"], rpc.status]).toEqual(["canceled", 0]);
});

test("the log has the trace and the request of each line that a request caused", async () => {
  const { traceId, headers } = aCaller();
  const caller = openPublic(service);
  await caller.call(refresh, {}, { ...cookie("forged"), ...headers, "x-request-id": "proxy-7f.1" });
  await caller.call(refresh, {}, { ...cookie("forged"), "x-request-id": "not one\tid".repeat(3) });
  caller.close();
  const lines = await until(async () => {
    const found = service
      .stderr()
      .split("\n")
      .filter((line) => line.includes('"authn_failed"') && line.includes("malformed"))
      .map((line) => JSON.parse(line));
    if (found.at(-2)?.requestId !== "proxy-7f.1") throw new Error("not yet");
    return found;
  });
  expect(lines.at(-2)).toMatchObject({ traceId, requestId: "proxy-7f.1" });
  expect(lines.at(-1)).toMatchObject({
    traceId: expect.stringMatching(/^[\da-f]{32}$/),
    requestId: expect.stringMatching(/^[\da-f]{16}$/),
  });
});

test("metrics by OTLP are those of the page", async () => {
  const page = await until(async () => {
    const { body } = await request(service.adminUrl, { path: "/metrics" });
    const names = [...body.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name);
    expect(collector.metrics.map(({ name }) => name).sort()).toEqual(names.sort());
    return body;
  });
  const metric = (name: string) => collector.metrics.find((one) => one.name === name);
  expect(metric("session_created_total")).toMatchObject({ kind: "sum", points: [{ value: 1 }] });
  expect(metric("session_feed_watchers")).toMatchObject({ kind: "gauge", unit: "1" });
  const store = metric("session_store_duration_seconds");
  expect(store).toMatchObject({ kind: "histogram", unit: "s" });
  const created = store?.points.find(({ attributes }) => attributes.operation === "create");
  expect(created?.attributes).toEqual({ operation: "create", outcome: "replied" });
  expect(created?.value).toBe(1);
  expect(created?.buckets?.reduce((sum, one) => sum + one, 0)).toBe(1);
  expect(page).toContain('session_store_duration_seconds_count{operation="create",outcome="replied"} 1');
});

test("nothing that was collected holds a token, a session, a subject or an address", async () => {
  const caller = openPublic(service);
  const { traceId, headers } = aCaller();
  const refreshed = await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...headers });
  const next = successor(refreshed) ?? "";
  await caller.call(listSessions, {}, { ...bearer(user.accessToken), ...headers });
  await request(service.publicUrl, { path: `/${user.refreshToken}?token=${user.accessToken}`, headers });
  caller.close();
  await trace(traceId, 7);
  await until(async () => expect(collector.metrics.length).toBeGreaterThan(0));
  const text = collector.text();
  for (const secret of [user.refreshToken, next, user.accessToken, service.adminToken, user.sid, user.subject]) {
    expect(secret.length).toBeGreaterThan(10);
    expect(text).not.toContain(secret);
  }
  expect(text).not.toContain("127.0.0.1");
});
