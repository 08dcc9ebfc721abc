import type { BoundsOptions, TableOptions } from "connect-http-routes";
import { isNetwork, isProxyIn } from "../platform/net/proxy-trust.ts";
import { readOptions } from "./read-options.ts";

export interface GatewayArguments {
  /** The URLs of the upstream servers. All of them have the same path. */
  readonly upstreams: readonly [string, ...string[]];
  readonly upstreamConnections: number;
  readonly descriptors: string | undefined;
  readonly serviceConfig: string | undefined;
  readonly services: readonly string[];
  readonly autoRoutes: boolean;
  readonly reading: TableOptions;
  readonly protobuf: boolean;
  readonly protocol: "grpc" | "grpc-web" | "connect";
  readonly upstreamHttp: "1.1" | "2";
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly cert: string; readonly key: string } | undefined;
  readonly upstreamCa: string | undefined;
  readonly timeoutMs: number;
  readonly maxTimeoutMs: number;
  readonly maxBodyBytes: number;
  readonly bounds: Required<BoundsOptions>;
  readonly maxConnections: number;
  readonly pingIntervalMs: number;
  readonly retries: number;
  /** Whether `X-Forwarded-*` is trusted, for all requests or by the address that a request comes from. */
  readonly trustForwarded: boolean | ((address: string) => boolean);
  /** The other origins whose pages may send requests that change something; false: all, because no browser's credential counts. */
  readonly origins: readonly string[] | false;
  /** What pages of `origins` may read; undefined if they may read nothing. */
  readonly cors: { readonly exposed: readonly string[] } | undefined;
  readonly metrics: { readonly host: string; readonly port: number; readonly hosts: readonly string[] } | undefined;
  readonly livePath: string;
  readonly readyPath: string;
  readonly heartbeatMs: number;
  readonly ndjsonHeartbeats: boolean;
  readonly problemDetails: boolean;
  readonly drainMs: number;
  readonly log: "all" | "errors" | "none";
  readonly logRate: number;
}

const TEXT = { type: "string" } as const;
const FLAG = { type: "boolean", default: false } as const;

const OPTIONS = {
  upstream: { type: "string", multiple: true },
  "upstream-connections": { ...TEXT, default: "2" },
  descriptors: TEXT,
  reflection: FLAG,
  "service-config": TEXT,
  service: { type: "string", multiple: true },
  "auto-routes": FLAG,
  "case-insensitive-enums": FLAG,
  "form-posts": FLAG,
  "method-override": FLAG,
  protobuf: FLAG,
  "unescape-all": FLAG,
  protocol: { ...TEXT, default: "grpc" },
  "upstream-http": { ...TEXT, default: "2" },
  listen: { ...TEXT, default: "127.0.0.1:8080" },
  "tls-cert": TEXT,
  "tls-key": TEXT,
  "upstream-ca": TEXT,
  "timeout-ms": { ...TEXT, default: "30000" },
  "max-timeout-ms": { ...TEXT, default: "3600000" },
  "max-body-bytes": { ...TEXT, default: "4194304" },
  "max-pending-bytes": { ...TEXT, default: "134217728" },
  "body-timeout-ms": { ...TEXT, default: "60000" },
  "max-calls": { ...TEXT, default: "10000" },
  "max-connections": { ...TEXT, default: "10000" },
  "ping-interval-ms": { ...TEXT, default: "310000" },
  retries: { ...TEXT, default: "0" },
  "trust-forwarded": FLAG,
  "trust-proxy": TEXT,
  "allow-origin": { type: "string", multiple: true },
  "allow-cross-site": FLAG,
  cors: FLAG,
  "expose-header": { type: "string", multiple: true },
  "metrics-listen": TEXT,
  "metrics-host": { type: "string", multiple: true },
  "live-path": { ...TEXT, default: "/healthz" },
  "ready-path": { ...TEXT, default: "/readyz" },
  "heartbeat-ms": { ...TEXT, default: "15000" },
  "ndjson-heartbeats": FLAG,
  "problem-details": FLAG,
  heap: { ...TEXT, default: "small" },
  "drain-ms": { ...TEXT, default: "10000" },
  log: { ...TEXT, default: "all" },
  "log-rate": { ...TEXT, default: "1000" },
} as const;

/** @throws Error with a text for the user */
export function parseArguments(args: readonly string[]): GatewayArguments {
  const values = readOptions(args, OPTIONS);
  if ((values.descriptors === undefined) !== values.reflection) {
    throw new Error("give either --descriptors or --reflection");
  }
  const { "tls-cert": cert, "tls-key": key } = values;
  if ((cert === undefined) !== (key === undefined)) throw new Error("--tls-cert and --tls-key belong together");
  const protocol = oneOf("protocol", values.protocol, ["grpc", "grpc-web", "connect"]);
  const upstreamHttp = oneOf("upstream-http", values["upstream-http"], ["1.1", "2"]);
  if (values.reflection && upstreamHttp !== "2") throw new Error("--upstream-http: server reflection needs HTTP/2");
  if (protocol === "grpc" && upstreamHttp !== "2") throw new Error("--upstream-http: gRPC needs HTTP/2");
  const upstreams = upstreamsOf(values.upstream);
  if (upstreams.length > 1 && upstreamHttp !== "2") throw new Error("--upstream-http: several upstreams need HTTP/2");
  return {
    upstreams,
    upstreamConnections: integer("upstream-connections", values["upstream-connections"], 1),
    descriptors: values.descriptors,
    serviceConfig: values["service-config"],
    services: [...new Set(values.service ?? [])],
    autoRoutes: values["auto-routes"],
    reading: {
      caseInsensitiveEnums: values["case-insensitive-enums"],
      formPosts: values["form-posts"],
      methodOverride: values["method-override"],
      ...(values["unescape-all"] && { multiSegmentDecoding: "all" }),
    },
    protobuf: values.protobuf,
    protocol,
    upstreamHttp,
    ...addressOf(values.listen),
    tls: cert === undefined || key === undefined ? undefined : { cert, key },
    upstreamCa: values["upstream-ca"],
    timeoutMs: integer("timeout-ms", values["timeout-ms"], 1),
    maxTimeoutMs: integer("max-timeout-ms", values["max-timeout-ms"], 1),
    maxBodyBytes: integer("max-body-bytes", values["max-body-bytes"], 1),
    bounds: {
      maxPendingBodyBytes: integer("max-pending-bytes", values["max-pending-bytes"], 1),
      bodyTimeoutMs: integer("body-timeout-ms", values["body-timeout-ms"], 1),
      maxCalls: integer("max-calls", values["max-calls"], 1),
    },
    maxConnections: integer("max-connections", values["max-connections"], 1),
    pingIntervalMs: integer("ping-interval-ms", values["ping-interval-ms"], 0),
    retries: integer("retries", values.retries, 0),
    trustForwarded: trustOf(values["trust-forwarded"], values["trust-proxy"]),
    origins: originsOf(values["allow-origin"], values["allow-cross-site"]),
    cors: corsOf(values.cors, values["allow-origin"], values["expose-header"]),
    metrics: metricsOf(values["metrics-listen"], values["metrics-host"]),
    livePath: values["live-path"],
    readyPath: values["ready-path"],
    heartbeatMs: integer("heartbeat-ms", values["heartbeat-ms"], 0),
    ndjsonHeartbeats: ndjsonHeartbeatsOf(values["ndjson-heartbeats"], values["heartbeat-ms"]),
    problemDetails: values["problem-details"],
    drainMs: integer("drain-ms", values["drain-ms"], 0),
    log: oneOf("log", values.log, ["all", "errors", "none"]),
    logRate: integer("log-rate", values["log-rate"], 1),
  };
}

function corsOf(
  isOn: boolean,
  origins: readonly string[] = [],
  exposed: readonly string[] = [],
): GatewayArguments["cors"] {
  if (isOn && origins.length === 0) throw new Error("--cors needs --allow-origin");
  if (!isOn && exposed.length > 0) throw new Error("--expose-header needs --cors");
  const bad = exposed.find((name) => !/^[\w!#$%&'*+.^`|~-]+$/.test(name));
  if (bad !== undefined) throw new Error(`--expose-header: "${bad}" is not the name of a header`);
  return isOn ? { exposed } : undefined;
}

function metricsOf(listen: string | undefined, hosts: readonly string[] | undefined): GatewayArguments["metrics"] {
  if (listen !== undefined) return { ...addressOf(listen), hosts: hosts ?? [] };
  if (hosts !== undefined) throw new Error("--metrics-host needs --metrics-listen");
  return undefined;
}

function ndjsonHeartbeatsOf(isOn: boolean, interval: string): boolean {
  if (isOn && integer("heartbeat-ms", interval, 0) === 0) throw new Error("--ndjson-heartbeats needs --heartbeat-ms");
  return isOn;
}

/** Returns whether the command restarts Node with flags that keep its memory small. @throws Error with a text for the user */
export function wantsSmallHeap(args: readonly string[]): boolean {
  return oneOf("heap", readOptions(args, OPTIONS).heap, ["small", "node"]) === "small";
}

function upstreamsOf(texts: readonly string[] = []): readonly [string, ...string[]] {
  const [first, ...others] = texts.map(urlOf);
  if (first === undefined) throw new Error("--upstream is required");
  const { pathname } = new URL(first);
  const other = others.find((url) => new URL(url).pathname !== pathname);
  if (other !== undefined) throw new Error(`--upstream: "${other}" has another path than "${first}"`);
  return [first, ...others];
}

function urlOf(text: string): string {
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) throw new Error(`--upstream: "${text}" is not an http(s) URL`);
  return text.replace(/\/+$/, "");
}

function originsOf(texts: readonly string[] = [], all: boolean): readonly string[] | false {
  if (all && texts.length > 0) throw new Error("--allow-origin has no effect with --allow-cross-site");
  const wrong = texts.find((text) => !/^https?:/.test(text) || URL.parse(text)?.origin !== text);
  if (wrong !== undefined)
    throw new Error(`--allow-origin: "${wrong}" is not an origin such as https://app.example.com`);
  return all ? false : texts;
}

function trustOf(all: boolean, networks: string | undefined): GatewayArguments["trustForwarded"] {
  if (networks === undefined) return all;
  if (all) throw new Error("--trust-proxy has no effect with --trust-forwarded");
  const list = networks.split(",").map((text) => text.trim());
  const wrong = list.find((text) => !isNetwork(text));
  if (wrong !== undefined) throw new Error(`--trust-proxy: "${wrong}" is no network such as 10.0.0.0/8`);
  return isProxyIn(list);
}

function addressOf(text: string): { host: string; port: number } {
  const [, bracketed, plain, digits] = /^(?:\[([^\]]+)\]|([^:]*)):(\d{1,5})$/.exec(text) ?? [];
  const port = Number(digits);
  if (digits === undefined || port > 65_535) throw new Error(`--listen: "${text}" is not HOST:PORT`);
  return { host: bracketed ?? (plain || "0.0.0.0"), port };
}

/** The largest value of an integer argument: the longest delay of Node's timers, in ms. A timer with a longer delay fires at once. */
const MAX_INTEGER = 2 ** 31 - 1;

function integer(name: string, text: string, min: number): number {
  const value = Number(text);
  if (!/^\d{1,10}$/.test(text) || value < min || value > MAX_INTEGER)
    throw new Error(`--${name}: "${text}" is not an integer from ${min} to ${MAX_INTEGER}`);
  return value;
}

function oneOf<Name extends string>(option: string, text: string, names: readonly Name[]): Name {
  const name = names.find((other) => other === text);
  if (name === undefined) throw new Error(`--${option}: "${text}" is none of ${names.join(", ")}`);
  return name;
}
