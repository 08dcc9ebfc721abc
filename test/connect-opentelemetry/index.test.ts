/** The tracing interceptors between a Connect client and a Connect server in one process. */
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, createClient, type Interceptor } from "@connectrpc/connect";
import {
  connectNodeAdapter,
  createConnectTransport,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { context, propagation, SpanKind, SpanStatusCode, TraceFlags, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import { W3CTraceContextPropagator } from "@opentelemetry/core";
import {
  AlwaysOffSampler,
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { tracingClientInterceptor, tracingServerInterceptor } from "../../src/connect-opentelemetry/index.ts";
import { ItemSchema, RelayService } from "../connect-http-routes/gen/relay/v1/relay_pb.ts";
import { type Listener, openHttp2 } from "../connect-http-routes/support/servers.ts";
import { until } from "../support/until.ts";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
/** The span that the handler of the last call ran in. */
let current: string | undefined;
const note = () => {
  current = trace.getActiveSpan()?.spanContext().spanId;
};

let listener: Listener;
beforeAll(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  propagation.setGlobalPropagator(new W3CTraceContextPropagator());
  trace.setGlobalTracerProvider(provider);
  const routes: Parameters<typeof connectNodeAdapter>[0]["routes"] = (router) =>
    void router.service(RelayService, {
      get(item) {
        note();
        if (item.name === "absent") throw new ConnectError("secret text", Code.NotFound);
        if (item.name === "broken") throw new Error("secret text");
        return item;
      },
      async *count(item, { signal }) {
        yield item;
        if (item.name === "endless") await new Promise((resolve) => signal.addEventListener("abort", resolve));
        note();
        yield item;
      },
    });
  listener = await openHttp2(connectNodeAdapter({ routes, interceptors: [tracingServerInterceptor()] }));
});
afterAll(async () => {
  await listener[Symbol.asyncDispose]();
  trace.disable();
  context.disable();
  propagation.disable();
});
beforeEach(() => exporter.reset());

const PROTOCOLS = [
  ["Connect", createConnectTransport, "connectrpc"],
  ["gRPC", createGrpcTransport, "grpc"],
  ["gRPC-Web", createGrpcWebTransport, "grpc"],
] as const;

/** The spans of the client and the server, once both have ended. */
const both = () =>
  until(async () => {
    const spans = exporter.getFinishedSpans();
    const of = (kind: SpanKind) => spans.find((span) => span.kind === kind) as ReadableSpan;
    expect(spans).toHaveLength(2);
    return { client: of(SpanKind.CLIENT), server: of(SpanKind.SERVER) };
  });

describe.each(PROTOCOLS)("over %s", (_, createTransport, system) => {
  const isGrpc = system === "grpc";
  const named = (connect: string, grpc: string) => (isGrpc ? grpc : connect);
  const ok = isGrpc ? { "rpc.response.status_code": "OK" } : {};
  const open = (interceptors: Interceptor[] = [tracingClientInterceptor()]) =>
    createClient(RelayService, createTransport({ baseUrl: listener.origin, httpVersion: "2", interceptors }));

  test("a call is a span of the client, and in it one of the server, in which the handler runs", async () => {
    await open().get({ name: "a" });
    const { client, server } = await both();
    expect([client.name, server.name]).toEqual(["relay.v1.RelayService/Get", "relay.v1.RelayService/Get"]);
    expect(client.parentSpanContext).toBeUndefined();
    const { traceId, spanId } = client.spanContext();
    expect(server.parentSpanContext).toMatchObject({ traceId, spanId, isRemote: true });
    expect(current).toBe(server.spanContext().spanId);
    const rpc = { "rpc.system.name": system, "rpc.method": "relay.v1.RelayService/Get", ...ok };
    expect(server.attributes).toEqual(rpc);
    expect(client.attributes).toEqual({ ...rpc, "server.address": "127.0.0.1", "server.port": listener.port });
    expect([client.status.code, server.status.code]).toEqual([SpanStatusCode.UNSET, SpanStatusCode.UNSET]);
  });

  test("a failure of the caller is an error of the client alone", async () => {
    await expect(open().get({ name: "absent" })).rejects.toThrow(ConnectError);
    const { client, server } = await both();
    const code = named("not_found", "NOT_FOUND");
    expect(server.attributes["rpc.response.status_code"]).toBe(code);
    expect(client.attributes).toMatchObject({ "rpc.response.status_code": code, "error.type": code });
    expect([client.status.code, server.status.code]).toEqual([SpanStatusCode.ERROR, SpanStatusCode.UNSET]);
    expect(JSON.stringify([client.attributes, client.events, client.status])).not.toContain("secret");
  });

  test("a fault of the server is an error of both, and its text is in neither", async () => {
    await expect(open().get({ name: "broken" })).rejects.toThrow(ConnectError);
    const { client, server } = await both();
    expect(server.attributes).toMatchObject({ "error.type": named("internal", "INTERNAL") });
    expect([client.status.code, server.status.code]).toEqual([SpanStatusCode.ERROR, SpanStatusCode.ERROR]);
    expect(JSON.stringify([server.attributes, server.events, server.status])).not.toContain("secret");
  });

  test("a stream is a span until its last message, each made in its context", async () => {
    const messages = open().count({ name: "two" })[Symbol.asyncIterator]();
    await messages.next();
    expect(exporter.getFinishedSpans().filter(({ kind }) => kind === SpanKind.CLIENT)).toEqual([]);
    await messages.next();
    expect((await messages.next()).done).toBe(true);
    const { client, server } = await both();
    expect(current).toBe(server.spanContext().spanId);
    expect(server.parentSpanContext?.spanId).toBe(client.spanContext().spanId);
    expect(client.status.code).toBe(SpanStatusCode.UNSET);
    expect([client.attributes, server.attributes]).toMatchObject([ok, ok]);
  });

  test("a stream that its client leaves ends both spans, as canceled", async () => {
    const leaving = new AbortController();
    const messages = open().count({ name: "endless" }, { signal: leaving.signal })[Symbol.asyncIterator]();
    await messages.next();
    leaving.abort();
    await messages.next().catch(() => {});
    const { client, server } = await both();
    expect(client.attributes["rpc.response.status_code"]).toBe(named("canceled", "CANCELLED"));
    expect(server.attributes["rpc.response.status_code"]).toBe(named("canceled", "CANCELLED"));
    expect(server.status.code).toBe(SpanStatusCode.UNSET);
  });

  test("a caller inside of a span is its child, and the server goes on with the same trace", async () => {
    const outer = provider.getTracer("test").startSpan("outer");
    await context.with(trace.setSpan(context.active(), outer), () => open().get({ name: "a" }));
    const { client, server } = await both();
    expect(client.parentSpanContext?.spanId).toBe(outer.spanContext().spanId);
    expect(server.spanContext().traceId).toBe(outer.spanContext().traceId);
  });

  test("a context that a middleware has extracted is the parent", async () => {
    const remote = { traceId: "1".repeat(32), spanId: "2".repeat(16), traceFlags: TraceFlags.SAMPLED, isRemote: true };
    await context.with(trace.setSpanContext(context.active(), remote), () => open().get({ name: "a" }));
    const { client, server } = await both();
    expect(client.parentSpanContext?.spanId).toBe(remote.spanId);
    expect(server.spanContext().traceId).toBe(remote.traceId);
  });

  test("inside of a span that is not recorded no span is made, and its context goes out", async () => {
    const silent = new BasicTracerProvider({ sampler: new AlwaysOffSampler() }).getTracer("test").startSpan("silent");
    let sent: string | null = null;
    const spy: Interceptor = (next) => (request) => {
      sent = request.header.get("traceparent");
      return next(request);
    };
    const client = open([tracingClientInterceptor(), spy]);
    await context.with(trace.setSpan(context.active(), silent), () => client.get(create(ItemSchema, { name: "a" })));
    const { traceId, spanId } = silent.spanContext();
    expect(sent).toBe(`00-${traceId}-${spanId}-00`);
    expect(exporter.getFinishedSpans()).toEqual([]);
  });
});

test("spans go to the provider that is given", async () => {
  const own = new InMemorySpanExporter();
  const tracerProvider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(own)] });
  const interceptors = [tracingClientInterceptor({ tracerProvider })];
  await createClient(RelayService, createGrpcTransport({ baseUrl: listener.origin, interceptors })).get({ name: "a" });
  expect(own.getFinishedSpans().map(({ kind }) => kind)).toEqual([SpanKind.CLIENT]);
});
