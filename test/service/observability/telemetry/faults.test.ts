/** OpenTelemetry costs nothing while it is switched off, and does not affect requests while its collector fails. */
import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { startCollector } from "../../../support/collector.ts";
import { freePort } from "../../../support/free-port.ts";
import { recordLoads } from "../../../support/loaded-modules.ts";
import { HANG_MS } from "../../../support/patience.ts";
import { request } from "../../../support/raw-http.ts";
import { runToExit, type Service, scratch, startService } from "../../../support/service.ts";
import { cookie, logIn, openPublic } from "../../../support/sessions.ts";
import { until } from "../../../support/until.ts";

const { refresh } = SessionService.method;

async function start(env: Readonly<Record<string, string>>, root?: string): Promise<Service> {
  const service = await startService({ OTEL_BSP_SCHEDULE_DELAY: "20", ...env }, root);
  onTestFinished(async () => void (await service.kill9()));
  return service;
}

async function collect(stalls = false) {
  const collector = await startCollector({ stalls });
  onTestFinished(() => collector[Symbol.asyncDispose]());
  return collector;
}

/** Makes this many refreshes and checks that all of them succeed. */
async function refreshes(
  service: Service,
  count: number,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const user = await logIn(service);
  const caller = openPublic(service);
  for (let at = 0; at < count; at++) {
    expect((await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...headers })).ok).toBe(true);
  }
  caller.close();
}

describe("the modules of OpenTelemetry", () => {
  /** Returns the list of the modules that the service loads. */
  async function loadedWith(env: Readonly<Record<string, string>>): Promise<string> {
    const modules = recordLoads();
    // The service runs from its sources, because a bundle would combine modules.
    const service = await start({ ...modules.env, ...env }, process.cwd());
    await refreshes(service, 1);
    expect((await service.stop()).code).toBe(0);
    return modules.loaded();
  }

  test.each([
    ["without a variable", {}],
    ["when it is disabled", { OTEL_SDK_DISABLED: "true", OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" }],
    ["without an exporter", { OTEL_TRACES_EXPORTER: "none", OTEL_METRICS_EXPORTER: "prometheus" }],
  ])("are not loaded %s", async (_, env) => {
    const loaded = await loadedWith(env);
    expect(loaded).toContain("/src/service/composition/start.ts");
    // The package @opentelemetry/api is excepted, because prom-client loads it.
    expect(loaded).not.toMatch(/@opentelemetry\/(?!api\/)|src\/(?:service\/observability|platform)\/telemetry\//);
  });

  test("are loaded where there is a collector", async () => {
    const collector = await collect();
    expect(await loadedWith({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url })).toContain("/@opentelemetry/sdk-trace");
  });
});

test("a collector that is away costs no request, and is logged", async () => {
  const service = await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${await freePort()}`,
    OTEL_EXPORTER_OTLP_TIMEOUT: "500",
  });
  await refreshes(service, 50);
  await until(async () => expect(service.stderr()).toMatch(/"event":"telemetry_failed","fault":"[^"]*ECONNREFUSED/));
  expect(service.stderr()).not.toMatch(/"fault":"[^}]*stack/);
  await refreshes(service, 50);
  expect((await service.stop()).code).toBe(0);
  expect(service.stderr()).not.toContain("uncaught_exception");
});

test("a collector that never responds costs no request, and does not hold up the end of the process", async () => {
  const collector = await collect(true);
  // If requests or the stop waited for an export, this timeout would exceed the time limit of the test.
  const timeout = { OTEL_EXPORTER_OTLP_TIMEOUT: String(2 * HANG_MS) };
  const service = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, ...timeout });
  await refreshes(service, 10);
  await until(async () => expect(collector.exports()).toBeGreaterThan(0));
  await refreshes(service, 200);
  expect((await service.stop()).code).toBe(0);
});

test("no more requests are recorded than the limit, whatever their callers ask for", async () => {
  const collector = await collect();
  const service = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, TRACE_LIMIT: "3/1h" });
  const traceId = randomBytes(16).toString("hex");
  await refreshes(service, 20, { traceparent: `00-${traceId}-${"1".repeat(16)}-01` });
  const { body } = await request(service.adminUrl, { path: "/metrics" });
  // The service served 21 requests: a login, and twenty refreshes of the test. Three of them were traced, so the limit omitted 18.
  expect(body).toMatch(/^session_traces_limited_total 18$/m);
  await service.stop(); // At its stop the service first exports outstanding spans.
  const recorded = collector.spans.filter(({ kind, name }) => kind === 2 && name === "POST");
  expect(recorded).toHaveLength(3);
});

test("traces and metrics go as JSON too", async () => {
  const collector = await collect();
  const service = await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
    OTEL_METRIC_EXPORT_INTERVAL: "1000",
  });
  await refreshes(service, 1);
  await until(async () => {
    expect(collector.spans.map(({ name }) => name)).toContain("rotate");
    expect(collector.metrics.map(({ name }) => name)).toContain("session_renewed_total");
  });
  expect([...collector.contentTypes]).toEqual(["application/json"]);
});

test("only traces are sent where only they have an exporter, by ratio", async () => {
  const collector = await collect();
  const service = await start({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_METRICS_EXPORTER: "none",
    OTEL_METRIC_EXPORT_INTERVAL: "1000",
    OTEL_TRACES_SAMPLER: "traceidratio",
    OTEL_TRACES_SAMPLER_ARG: "0.5",
  });
  await refreshes(service, 60);
  await service.stop();
  const recorded = collector.spans.filter(({ name }) => name === "rotate").length;
  expect(recorded).toBeGreaterThan(5);
  expect(recorded).toBeLessThan(55);
  expect(collector.metrics).toEqual([]);
});

test("a variable with a value that it cannot have refuses the start, and names itself", async () => {
  const { code, stderr } = await runToExit({ OTEL_EXPORTER_OTLP_PROTOCOL: "grpc" });
  expect([code, stderr]).toEqual([1, "OTEL_EXPORTER_OTLP_PROTOCOL is not one of http/protobuf, http/json\n"]);
});

test("a credential of exports that is replaced in its file is used from the next export on", async () => {
  const collector = await collect();
  const OTEL_EXPORTER_OTLP_HEADERS_FILE = join(scratch(), "headers");
  writeFileSync(OTEL_EXPORTER_OTLP_HEADERS_FILE, "authorization=Bearer%20first\n");
  const service = await start({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_EXPORTER_OTLP_HEADERS_FILE });
  await refreshes(service, 1);
  await until(async () => expect([...collector.authorizations]).toEqual(["Bearer first"]));
  writeFileSync(OTEL_EXPORTER_OTLP_HEADERS_FILE, "authorization=Bearer%20second\n");
  await refreshes(service, 1);
  await until(async () => expect([...collector.authorizations]).toContain("Bearer second"));
});
