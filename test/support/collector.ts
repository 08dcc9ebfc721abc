/** An OpenTelemetry collector over HTTP. It decodes the real exports of the service, in protobuf or JSON. */
import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { loadSync, type ServiceDefinition } from "@grpc/proto-loader";

export type Attributes = Readonly<Record<string, string | number | boolean>>;

export type CollectedSpan = {
  readonly name: string;
  /** The kind of the span; 2 means server, 3 means client. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  /** The id of the parent span; empty for a root. */
  readonly parentSpanId: string;
  readonly attributes: Attributes;
  /** The status; 0 means unset, 2 means error. */
  readonly status: number;
  readonly resource: Attributes;
};

export type CollectedMetric = {
  readonly name: string;
  readonly unit: string;
  readonly kind: "gauge" | "sum" | "histogram";
  readonly points: readonly {
    readonly attributes: Attributes;
    readonly value: number;
    readonly buckets?: readonly number[];
  }[];
};

export type Collector = AsyncDisposable & {
  readonly url: string;
  /** The spans that have been exported so far. */
  readonly spans: readonly CollectedSpan[];
  /** The last export of metrics. */
  readonly metrics: readonly CollectedMetric[];
  readonly contentTypes: ReadonlySet<string>;
  /** The credentials with which the exports came. */
  readonly authorizations: ReadonlySet<string>;
  /** Returns all payloads as text. */
  text(): string;
  /** Returns how many export requests the collector has received. */
  exports(): number;
};

const definition = loadSync(join(import.meta.dirname, "otlp.proto"), { longs: Number, defaults: true });
const service = definition["otlp.Collector"] as ServiceDefinition;
const decode = (rpc: "ExportTraces" | "ExportMetrics", body: Buffer) => service[rpc]?.requestDeserialize(body);

// biome-ignore lint/suspicious/noExplicitAny: two encodings of one protocol, read field by field
type Decoded = any;

/**
 * Converts a list of attributes to an object. An attribute has several fields for its value, one for each type. In protobuf, those that are
 * not set have default values. In JSON, integers are strings.
 */
const attributesOf = (list: Decoded[] = []): Attributes =>
  Object.fromEntries(
    list.map(({ key, value: { stringValue, intValue, doubleValue, boolValue } }) => [
      key,
      stringValue || Number(intValue) || doubleValue || boolValue || "",
    ]),
  );

const idOf = (id: Buffer | string | undefined) => (Buffer.isBuffer(id) ? id.toString("hex") : (id ?? ""));

function spansOf(request: Decoded): CollectedSpan[] {
  return request.resourceSpans.flatMap(({ resource, scopeSpans }: Decoded) =>
    scopeSpans.flatMap(({ spans }: Decoded) =>
      spans.map((span: Decoded) => ({
        name: span.name,
        kind: span.kind,
        traceId: idOf(span.traceId),
        spanId: idOf(span.spanId),
        parentSpanId: idOf(span.parentSpanId),
        attributes: attributesOf(span.attributes),
        status: span.status?.code ?? 0,
        resource: attributesOf(resource.attributes),
      })),
    ),
  );
}

function metricsOf(request: Decoded): CollectedMetric[] {
  return request.resourceMetrics.flatMap(({ scopeMetrics }: Decoded) =>
    scopeMetrics.flatMap(({ metrics }: Decoded) =>
      metrics.map(({ name, unit, gauge, sum, histogram }: Decoded) => ({
        name,
        unit,
        kind: gauge ? "gauge" : sum ? "sum" : "histogram",
        points: (gauge ?? sum ?? histogram).dataPoints.map((point: Decoded) => ({
          attributes: attributesOf(point.attributes),
          value: histogram ? Number(point.count) : point.asDouble,
          ...(histogram && { buckets: point.bucketCounts.map(Number) }),
        })),
      })),
    ),
  );
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  return request.headers["content-encoding"] === "gzip" ? gunzipSync(body) : body;
}

/** @param stalls whether it accepts requests but never responds */
export async function startCollector({ stalls = false } = {}): Promise<Collector> {
  const spans: CollectedSpan[] = [];
  let metrics: CollectedMetric[] = [];
  const payloads: Buffer[] = [];
  const contentTypes = new Set<string>();
  const authorizations = new Set<string>();
  let exports = 0;
  const server = createServer(async (request, response) => {
    exports++;
    authorizations.add(request.headers.authorization ?? "none");
    if (stalls) return;
    const body = await bodyOf(request);
    payloads.push(body);
    const type = request.headers["content-type"] ?? "";
    contentTypes.add(type);
    const isTraces = request.url === "/v1/traces";
    const decoded = type.includes("json")
      ? JSON.parse(body.toString())
      : decode(isTraces ? "ExportTraces" : "ExportMetrics", body);
    if (isTraces) spans.push(...spansOf(decoded));
    else metrics = metricsOf(decoded);
    response.writeHead(200, { "content-type": type }).end(type.includes("json") ? "{}" : undefined);
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    get metrics() {
      return metrics;
    },
    contentTypes,
    authorizations,
    text: () => Buffer.concat(payloads).toString("latin1"),
    exports: () => exports,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}
