/** Metrics in the format of Prometheus, on a listener of their own. The module is loaded only if they are asked for. */
import { Code } from "@connectrpc/connect";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { acceptsHost, authorityOf } from "../platform/listener/hosts.ts";
import { type Handler, type Listener, openListener, respond } from "../platform/listener/listener.ts";
import type { GatewayArguments } from "./arguments.ts";
import { countBodyBytes } from "./body-bytes.ts";
import { type ObserveRequest, reasonsOf, type WriteLog } from "./request-log.ts";

export interface Metrics {
  readonly observe: ObserveRequest;
  upstreamFailed(): void;
  readonly listener: Listener;
}

const BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Prometheus needs one connection, and the browser of an operator a few. */
const MAX_CONNECTIONS = 16;

/** @throws Error if the port is taken */
export async function openMetrics(
  { host, port, hosts }: NonNullable<GatewayArguments["metrics"]>,
  write: WriteLog,
): Promise<Metrics> {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const durations = new Histogram({
    name: "gateway_request_duration_seconds",
    help: "Duration of a request until its response is complete or cut, by RPC, status and code",
    labelNames: ["rpc", "status", "code"],
    buckets: BUCKETS,
    registers,
  });
  const open = new Gauge({
    name: "gateway_requests_in_flight",
    help: "Requests without a complete response",
    registers,
  });
  const bytesOf = (body: "request" | "response") =>
    new Counter({
      name: `gateway_${body}_body_bytes_total`,
      help: `Bytes of ${body} bodies as they are sent (compressed), by RPC, counted when the response has ended`,
      labelNames: ["rpc"],
      registers,
    });
  const [requestBytes, responseBytes] = [bytesOf("request"), bytesOf("response")];
  const failures = new Counter({
    name: "gateway_upstream_errors_total",
    help: "Failed calls of the upstream",
    registers,
  });
  const listener = await openListener("metrics", host, port, {
    settings: { host: "--metrics-listen", port: "--metrics-listen" },
    limits: { maxConnections: MAX_CONNECTIONS, maxConnectionsPerAddress: MAX_CONNECTIONS },
    onBug: (error) => write({ event: "bug", reason: reasonsOf(error) }),
  });
  listener.serve(pageOf(registry, acceptsHost(hosts)));
  return {
    listener,
    observe(request, response) {
      open.inc();
      const bytes = countBodyBytes(request, response);
      return ({ rpc, status, code, seconds }) => {
        open.dec();
        const name = rpc === undefined ? "" : `${rpc.parent.typeName}/${rpc.name}`;
        durations.observe({ rpc: name, status, code: code === undefined ? "OK" : (Code[code] ?? "") }, seconds);
        requestBytes.inc({ rpc: name }, bytes.request);
        responseBytes.inc({ rpc: name }, bytes.response);
      };
    },
    upstreamFailed: () => failures.inc(),
  };
}

function pageOf(registry: Registry, accepts: (authority: string) => boolean): Handler {
  const plain = { "content-type": "text/plain" };
  return (request, response) => {
    if (request.url !== "/metrics") return respond(response, 404, plain, "not found\n");
    // A page that lets its own name resolve to this address (DNS rebinding) sends that name as host, so unknown names are refused.
    if (!accepts(authorityOf(request) ?? "localhost"))
      return respond(response, 421, plain, "--metrics-host must name this host\n");
    registry.metrics().then(
      (body) => respond(response, 200, { "content-type": registry.contentType }, body),
      () => response.destroy(),
    );
  };
}
