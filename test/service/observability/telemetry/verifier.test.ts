/** A trace that a caller begins continues through another service and its verifier into this service and its store. */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "@connectrpc/connect";
import { connectNodeAdapter, createConnectTransport } from "@connectrpc/connect-node";
import { context, propagation, SpanKind, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import { BasicTracerProvider, InMemorySpanExporter, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-base";
import { expect, onTestFinished, test } from "vitest";
import { Health } from "../../../../gen/grpc/health/v1/health_pb.ts";
import { tracingClientInterceptor, tracingServerInterceptor } from "../../../../src/connect-opentelemetry/index.ts";
import { accessTokenInterceptor, createVerifier } from "../../../../src/verifier/index.ts";
import { startCollector } from "../../../support/collector.ts";
import { startService } from "../../../support/service.ts";
import { bearer, logIn } from "../../../support/sessions.ts";
import { until } from "../../../support/until.ts";

test("the spans of all of them have the right parents", async () => {
  const exporter = new InMemorySpanExporter();
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }));
  const collector = await startCollector();
  const service = await startService({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "20" });
  const verifier = createVerifier({
    adminUrl: service.adminUrl,
    adminToken: service.adminToken,
    issuer: service.publicUrl,
    audience: service.publicUrl,
    maxStalenessMs: 0, // With this setting the verifier introspects every token.
    interceptors: [tracingClientInterceptor()],
  });
  const adapter = connectNodeAdapter({
    routes: (router) => void router.service(Health, { check: () => ({ status: 1 }) }),
    interceptors: [tracingServerInterceptor(), accessTokenInterceptor(verifier)],
  });
  const other = createServer((request: IncomingMessage, response) => adapter(request, response)).listen(0, "127.0.0.1");
  onTestFinished(async () => {
    verifier.close();
    other.close();
    other.closeAllConnections();
    await service.stop();
    await collector[Symbol.asyncDispose]();
  });
  await verifier.ready;
  const { accessToken } = await logIn(service);

  const baseUrl = `http://127.0.0.1:${(other.address() as AddressInfo).port}`;
  const transport = createConnectTransport({ baseUrl, httpVersion: "1.1", interceptors: [tracingClientInterceptor()] });
  await createClient(Health, transport).check({}, { headers: bearer(accessToken) });

  const here = exporter.getFinishedSpans();
  const own = (name: string, kind: SpanKind) => here.find((span) => span.name === name && span.kind === kind);
  const caller = own("grpc.health.v1.Health/Check", SpanKind.CLIENT);
  const called = own("grpc.health.v1.Health/Check", SpanKind.SERVER);
  const asked = own("auth.admin.v1.SessionAdminService/IntrospectToken", SpanKind.CLIENT);
  expect(called?.parentSpanContext?.spanId).toBe(caller?.spanContext().spanId);
  expect(asked?.parentSpanContext?.spanId).toBe(called?.spanContext().spanId);

  const traceId = caller?.spanContext().traceId;
  const there = await until(async () => {
    const spans = collector.spans.filter((span) => span.traceId === traceId);
    expect(spans).toHaveLength(3);
    return spans;
  });
  const [http, rpc, command] = ["POST", "auth.admin.v1.SessionAdminService/IntrospectToken", "find"].map((name) =>
    there.find((span) => span.name === name),
  );
  expect(http?.parentSpanId).toBe(asked?.spanContext().spanId);
  expect(rpc?.parentSpanId).toBe(http?.spanId);
  expect(command?.parentSpanId).toBe(rpc?.spanId);
});
