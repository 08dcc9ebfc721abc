import { parseArgs } from "node:util";
import type { BoundsOptions, TableOptions } from "connect-http-routes";
import { nearest } from "../platform/spelling/nearest.ts";
import {
  addressOf,
  filePair,
  integer,
  oneOf,
  originsOf,
  otlpOf,
  pathOf,
  trustOf,
  upstreamsOf,
} from "./argument-values.ts";

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
  "unset-fields": FLAG,
  "proto-names": FLAG,
  "enum-numbers": FLAG,
  "int64-numbers": FLAG,
  "stream-results": FLAG,
  "grpc-metadata": FLAG,
  "any-update-mask": FLAG,
  protobuf: FLAG,
  "unescape-all": FLAG,
  protocol: { ...TEXT, default: "grpc" },
  "upstream-http": { ...TEXT, default: "2" },
  listen: { ...TEXT, default: "127.0.0.1:8080" },
  "tls-cert": TEXT,
  "tls-key": TEXT,
  "upstream-ca": TEXT,
  "upstream-cert": TEXT,
  "upstream-key": TEXT,
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
  "otlp-endpoint": TEXT,
  "otlp-headers": TEXT,
  "trace-ratio": TEXT,
  "trace-limit": TEXT,
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

export type GatewayArguments = Readonly<ReturnType<typeof parseArguments>>;

/** @throws Error with a text for the user */
export function parseArguments(args: readonly string[]) {
  const values = readOptions(args);
  if ((values.descriptors === undefined) !== values.reflection) {
    throw new Error("give either --descriptors or --reflection");
  }
  const protocol = oneOf("protocol", values.protocol, ["grpc", "grpc-web", "connect"]);
  const upstreamHttp = oneOf("upstream-http", values["upstream-http"], ["1.1", "2"]);
  if (values.reflection && upstreamHttp !== "2") throw new Error("--upstream-http: server reflection needs HTTP/2");
  if (protocol === "grpc" && upstreamHttp !== "2") throw new Error("--upstream-http: gRPC needs HTTP/2");
  const upstreams = upstreamsOf(values.upstream);
  if (upstreams.length > 1 && upstreamHttp !== "2") throw new Error("--upstream-http: several upstreams need HTTP/2");
  return {
    /** The URLs of the upstream servers. All of them have the same path. */
    upstreams,
    upstreamConnections: integer("upstream-connections", values["upstream-connections"], 1),
    descriptors: values.descriptors,
    serviceConfig: values["service-config"],
    services: [...new Set(values.service ?? [])],
    autoRoutes: values["auto-routes"],
    tables: {
      caseInsensitiveEnums: values["case-insensitive-enums"],
      formPosts: values["form-posts"],
      methodOverride: values["method-override"],
      int64AsNumber: values["int64-numbers"],
      streamResults: values["stream-results"],
      grpcMetadata: values["grpc-metadata"],
      ...(values["any-update-mask"] && { inferUpdateMask: "any-name" }),
      ...(values["unescape-all"] && { multiSegmentDecoding: "all" }),
    } satisfies TableOptions,
    json: {
      alwaysEmitImplicit: values["unset-fields"],
      useProtoFieldName: values["proto-names"],
      enumAsInteger: values["enum-numbers"],
    },
    protobuf: values.protobuf,
    protocol,
    upstreamHttp,
    ...addressOf(values.listen),
    tls: filePair("tls", values["tls-cert"], values["tls-key"]),
    /** The authorities of the upstream, and the certificate with which the gateway identifies itself to it. */
    ...upstreamTlsOf(upstreams, values),
    timeoutMs: integer("timeout-ms", values["timeout-ms"], 1),
    maxTimeoutMs: integer("max-timeout-ms", values["max-timeout-ms"], 1),
    maxBodyBytes: integer("max-body-bytes", values["max-body-bytes"], 1),
    bounds: {
      maxPendingBodyBytes: integer("max-pending-bytes", values["max-pending-bytes"], 1),
      bodyTimeoutMs: integer("body-timeout-ms", values["body-timeout-ms"], 1),
      maxCalls: integer("max-calls", values["max-calls"], 1),
    } satisfies BoundsOptions,
    maxConnections: integer("max-connections", values["max-connections"], 1),
    pingIntervalMs: integer("ping-interval-ms", values["ping-interval-ms"], 0),
    retries: integer("retries", values.retries, 0),
    /** Whether `X-Forwarded-*` is trusted, for all requests or by the address that a request comes from. */
    trustForwarded: trustOf(values["trust-forwarded"], values["trust-proxy"]),
    /** The other origins whose pages may send requests that change something; false: all, as the upstream trusts no browser credential. */
    origins: originsOf(values["allow-origin"], values["allow-cross-site"]),
    /** What pages of `origins` may read; undefined if they may read nothing. */
    cors: corsOf(values.cors, values["allow-origin"], values["expose-header"]),
    metrics: metricsOf(values["metrics-listen"], values["metrics-host"]),
    otlp: otlpOf(values),
    livePath: pathOf("live-path", values["live-path"]),
    readyPath: pathOf("ready-path", values["ready-path"]),
    heartbeatMs: integer("heartbeat-ms", values["heartbeat-ms"], 0),
    ndjsonHeartbeats: ndjsonHeartbeatsOf(values["ndjson-heartbeats"], values["heartbeat-ms"]),
    problemDetails: values["problem-details"],
    drainMs: integer("drain-ms", values["drain-ms"], 0),
    log: oneOf("log", values.log, ["all", "errors", "none"]),
    logRate: integer("log-rate", values["log-rate"], 1),
  };
}

type TlsValues = { readonly [name in `upstream-${"ca" | "cert" | "key"}`]?: string | undefined };

function upstreamTlsOf(upstreams: readonly string[], values: TlsValues) {
  const { "upstream-ca": upstreamCa, "upstream-cert": cert, "upstream-key": key } = values;
  const upstreamClient = filePair("upstream", cert, key);
  if ((upstreamCa ?? upstreamClient) !== undefined && !upstreams.some((url) => url.startsWith("https:")))
    throw new Error(`--upstream-${upstreamCa === undefined ? "cert" : "ca"} needs an https --upstream`);
  return { upstreamCa, upstreamClient };
}

function corsOf(isOn: boolean, origins: readonly string[] = [], exposed: readonly string[] = []) {
  if (isOn && origins.length === 0) throw new Error("--cors needs --allow-origin");
  if (!isOn && exposed.length > 0) throw new Error("--expose-header needs --cors");
  const bad = exposed.find((name) => !/^[\w!#$%&'*+.^`|~-]+$/.test(name));
  if (bad !== undefined) throw new Error(`--expose-header: "${bad}" is not the name of a header`);
  return isOn ? { exposed } : undefined;
}

function metricsOf(listen: string | undefined, hosts: readonly string[] | undefined) {
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
  return oneOf("heap", readOptions(args).heap, ["small", "node"]) === "small";
}

/** Reads the options of a command line. @throws Error with a text for the user, which names the option that was probably meant */
function readOptions(args: readonly string[]) {
  const given = { args: [...args], options: OPTIONS };
  const { tokens } = parseArgs({ ...given, strict: false, tokens: true });
  for (const token of tokens) {
    if (token.kind !== "option" || Object.hasOwn(OPTIONS, token.name)) continue;
    const meant = nearest(token.name, Object.keys(OPTIONS));
    throw new Error(`there is no option ${token.rawName}: ${meant ? `did you mean --${meant}?` : "--help lists all"}`);
  }
  return parseArgs(given).values;
}
