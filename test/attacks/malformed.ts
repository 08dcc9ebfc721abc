/** Requests that are almost valid, in every format that the listeners read, and the checks of their responses. */
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { CreateSessionRequestSchema } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { ListSessionsRequestSchema, SessionService } from "../../gen/auth/v1/session_pb.ts";
import type { RawRequest, RawResponse } from "../support/raw-http.ts";

export type Malformed = RawRequest & {
  readonly api: "public" | "admin";
  /** How many bytes of the body are sent before the connection is cut; undefined if the whole body is sent. */
  readonly cutAfter: number | undefined;
};

const PUBLIC = "/auth.v1.SessionService";
const ADMIN = "/auth.admin.v1.SessionAdminService";
const UNARY = [
  ...SessionService.methods.map(({ name }) => ["public", `${PUBLIC}/${name}`] as const),
  ...["CreateSession", "IntrospectToken", "ListSessions"].map((name) => ["admin", `${ADMIN}/${name}`] as const),
  ["public", "/grpc.health.v1.Health/Check"],
] as const;
const STREAMS = [
  ["admin", `${ADMIN}/WatchRevocations`],
  ["public", "/grpc.health.v1.Health/Watch"],
] as const;
const ROUTES = [
  ["POST", "/v1/auth/refresh"],
  ["DELETE", "/v1/auth/logout"],
  ["POST", "/v1/auth/logout"],
  ["GET", "/v1/auth/sessions?pageSize=2"],
  ["DELETE", "/v1/auth/sessions/x%2e"],
  ["POST", "/v1/auth/sessions:revokeOthers"],
  ["POST", "/v1/auth/device"],
] as const;
const CODECS = ["json", "proto"] as const;

const from = (text: string) => Buffer.from(text, "latin1");
const SPOILT_JSON = [
  ...["{", "[]", "null", "1e400", '{"pageSize":"x"}', '{"pageSize":1,"pageSize":2}', '{"__proto__":{"a":1}}', "{}{}"],
  ...['{"pageToken":7}', '{"subject":"\\ud800"}', '{"claims":{"a":1e400}}', '{"authTime":"1"}', "\xff\xfe{}", "{\0}"],
  ...['{"cursor":{}}', '{"ttl":"-1s"}', "[".repeat(9_000), '{"claims":'.repeat(500), "\ufeff{}"],
];
const json = fc.oneof(fc.constantFrom("{}", "", '{"pageSize":1}', ...SPOILT_JSON).map(from), fc.json().map(from));
const PROTO = [
  toBinary(ListSessionsRequestSchema, create(ListSessionsRequestSchema, { pageSize: 3, pageToken: "x" })),
  toBinary(CreateSessionRequestSchema, create(CreateSessionRequestSchema, { subject: "s", claims: { a: [1, "b"] } })),
];
const SPOILT_PROTO = [
  ...[[0x00], [0x08], [0x0a, 0x7f], [0x0b], [0x0c], [0x0f, 1], [0xff, 0xff, 0xff, 0xff, 0xff, 0xff], [0x0a, 1, 0xff]],
  ...[
    [0x0b, 0x0b, 0x0b, 0x0b],
    [0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1],
    [0x12, 0xff],
  ],
];
const proto = fc.oneof(
  fc.constantFrom(...PROTO, ...SPOILT_PROTO).map((bytes) => Buffer.from(bytes)),
  fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
  fc.constant(Buffer.alloc(3000, 0x0b)),
);
const messageOf = (codec: (typeof CODECS)[number]) => (codec === "json" ? json : proto);

/** The values of the encoding header. The body is compressed independently of this value, so the two often disagree. */
const COMPRESSIONS = ["gzip", "gzip", undefined, "identity", "", "br", "GZIP", "gzip, gzip", "deflate", "x\xe9"];
type Packing = (data: Buffer) => Buffer;
const PACKINGS: readonly Packing[] = [
  (data) => data,
  (data) => gzipSync(data),
  (data) => gzipSync(data).subarray(0, 14),
  (data) => Buffer.concat([gzipSync(data), from("more")]),
  (data) => spoil(gzipSync(data), 12),
  (data) => spoil(gzipSync(data), gzipSync(data).length - 6),
  () => gzipSync(Buffer.alloc(200_000, "{")),
];
function spoil(data: Buffer, at: number): Buffer {
  data[at] = (data[at] ?? 0) ^ 0xff;
  return data;
}

/**
 * Functions that compute the length field of a message's prefix in gRPC and Connect streams from the actual length. Some return a wrong
 * length on purpose.
 */
const LENGTHS: readonly ((length: number) => number)[] = [
  ...[(length: number) => length, (length: number) => length, (length: number) => length],
  ...[(length: number) => length + 1, (length: number) => Math.max(0, length - 1)],
  ...[() => 0, () => 0xffffffff, () => 65_537],
];
const enveloped = (message: fc.Arbitrary<Buffer>) =>
  fc
    .record({
      message,
      flags: fc.constantFrom(0, 0, 1, 1, 2, 3, 0x80, 0x81, 0xff),
      pack: fc.constantFrom(...PACKINGS),
      length: fc.constantFrom(...LENGTHS),
    })
    .map(({ message: data, flags, pack, length }) => {
      const packed = (flags & 1) === 1 ? pack(data) : data;
      const head = Buffer.from([flags, 0, 0, 0, 0]);
      head.writeUInt32BE(length(packed.length), 1);
      return Buffer.concat([head, packed]);
    });
const envelopes = (message: fc.Arbitrary<Buffer>) =>
  fc
    .tuple(fc.array(enveloped(message), { minLength: 0, maxLength: 3 }), fc.constantFrom("", "", "\0", "\0\0\0\0"))
    .map(([all, rest]) => Buffer.concat([...all, from(rest)]));

const header = (name: string, ...values: readonly (string | undefined)[]) =>
  fc
    .constantFrom(undefined, ...values)
    .map((value): Record<string, string> => (value === undefined ? {} : { [name]: value }));
const TIMEOUTS = ["50", "0", "-1", "1e9", "99999999999", "x", "1.5"];
const GRPC_TIMEOUTS = ["50m", "0n", "99999999H", "999999999S", "1", "m", "-1S"];
const ENCODINGS = ["gzip", "br", "identity, gzip", "", ";q=1", "*"];

const merged = (...parts: readonly fc.Arbitrary<Record<string, string>>[]) =>
  fc.tuple(...parts).map((all): Record<string, string> => Object.assign({}, ...all));
const PARAMETERS = ["; charset=utf-8", ";charset=latin1", ";", "; boundary=x", "+xml", ", a/b"];
/** A parameter of a content type, right or wrong. */
const parameter = fc.oneof({ weight: 2, arbitrary: fc.constant("") }, fc.constantFrom(...PARAMETERS));

type Form = Pick<Malformed, "api" | "path" | "body"> & { readonly method: string; headers: Record<string, string> };

const unaryForm: fc.Arbitrary<Form> = fc.constantFrom(...CODECS).chain((codec) =>
  fc
    .record({
      target: fc.constantFrom(...UNARY),
      message: messageOf(codec),
      pack: fc.constantFrom(...PACKINGS),
      headers: merged(
        header("content-encoding", ...COMPRESSIONS),
        header("connect-timeout-ms", ...TIMEOUTS),
        header("connect-protocol-version", "1", "2", ""),
        header("accept-encoding", ...ENCODINGS),
      ),
      type: parameter.map((more) => `application/${codec}${more}`),
    })
    .map(({ target: [api, path], message, pack, headers, type }) => {
      const body = "content-encoding" in headers ? pack(message) : message;
      return { api, path, method: "POST", headers: { "content-type": type, ...headers }, body };
    }),
);

const BASE64 = [
  (data: Buffer) => data.toString("base64url"),
  (data: Buffer) => data.toString("base64"),
  (data: Buffer) => `${data.toString("base64url")}%`,
  (data: Buffer) => data.toString("base64url").slice(1),
  (data: Buffer) => data.toString("latin1"),
];
const getForm: fc.Arbitrary<Form> = fc
  .record({
    message: fc.oneof(json, proto),
    pack: fc.constantFrom(...PACKINGS),
    write: fc.constantFrom(...BASE64),
    query: merged(
      header("connect", "v1", "v2", ""),
      header("encoding", "json", "json", "proto", "x", ""),
      header("base64", "1", "1", "0", "true"),
      header("compression", ...COMPRESSIONS),
    ),
    headers: header("connect-timeout-ms", ...TIMEOUTS),
  })
  .map(({ message, pack, write, query, headers }) => {
    // The service accepts request heads of at most 32 KiB, so the query is shortened.
    const text = write("compression" in query ? pack(message) : message).slice(0, 20_000);
    const search = new URLSearchParams({ ...query, message: text });
    return { api: "public", path: `${PUBLIC}/ListSessions?${search}`, method: "GET", headers, body: undefined };
  });

const STREAM_TYPES = ["connect", "grpc", "grpc-web"] as const;
const streamForm: fc.Arbitrary<Form> = fc
  .tuple(fc.constantFrom(...STREAM_TYPES), fc.constantFrom(...CODECS))
  .chain(([protocol, codec]) => {
    const isConnect = protocol === "connect";
    // Streaming RPCs that watch for changes would never end without a deadline.
    const deadline: Record<string, string> = isConnect ? { "connect-timeout-ms": "50" } : { "grpc-timeout": "50m" };
    return fc
      .record({
        target: isConnect ? fc.constantFrom(...STREAMS) : fc.constantFrom(...UNARY, ...STREAMS),
        body: envelopes(messageOf(codec)),
        headers: merged(
          fc.constant(deadline),
          header(isConnect ? "connect-content-encoding" : "grpc-encoding", ...COMPRESSIONS),
          header(isConnect ? "connect-accept-encoding" : "grpc-accept-encoding", ...ENCODINGS),
          isConnect ? fc.constant({}) : header("grpc-timeout", ...GRPC_TIMEOUTS),
        ),
        type: parameter.map((more) => `application/${protocol}+${codec}${more}`),
      })
      .map(({ target: [api, path], body, headers, type }) => {
        const isEndless = /[HS]$/.test(headers["grpc-timeout"] ?? "") && STREAMS.some((each) => each[1] === path);
        return {
          ...{ api, path, method: "POST", body },
          headers: { "content-type": type, ...headers, ...(isEndless && deadline) },
        };
      });
  });

const routeForm: fc.Arbitrary<Form> = fc
  .record({
    target: fc.constantFrom(...ROUTES),
    message: json,
    pack: fc.constantFrom(...PACKINGS),
    query: fc.constantFrom("", "", "?a=%ff", "?pageSize=x", "?pageSize=1&pageSize=2", "?a[b]=1", "?%00"),
    headers: merged(
      header(
        "content-type",
        "application/json",
        "application/json;charset=utf-16",
        "text/plain",
        "application/proto",
        "",
      ),
      header("content-encoding", ...COMPRESSIONS),
      header("x-server-timeout", "1", "-1", "x", "1e-9"),
      header("accept", "text/event-stream", "*/*", "a"),
    ),
  })
  .map(({ target: [method, path], message, pack, query, headers }) => ({
    ...{ api: "public" as const, method, headers },
    path: path.includes("?") ? path : path + query,
    body: method === "GET" ? undefined : "content-encoding" in headers ? pack(message) : message,
  }));

/** @param credentials header fields that each API accepts */
export function malformedRequests(
  credentials: Record<Malformed["api"], Record<string, string>>,
): fc.Arbitrary<Malformed> {
  const bad = { authorization: "Bearer a.b.c", cookie: "refresh_token=x" };
  return fc
    .record({
      form: fc.oneof(unaryForm, getForm, streamForm, routeForm),
      credential: fc.constantFrom("good", "good", "good", "none", "bad"),
      isChunked: fc.constantFrom(false, false, false, true),
      cut: fc.oneof({ weight: 19, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary: fc.nat(20) }),
    })
    .map(({ form, credential, isChunked, cut }) => {
      const presented = credential === "good" ? credentials[form.api] : credential === "bad" ? bad : {};
      const chunked = isChunked && form.body !== undefined && { "transfer-encoding": "chunked" };
      const headers = { ...form.headers, ...presented, ...chunked };
      return { ...form, headers, cutAfter: form.body === undefined || form.body.length === 0 ? undefined : cut };
    });
}

/** Checks the rules that hold for every response. Returns the rule that this response breaks; undefined if none. */
export function faultOf({ status, headers, trailers, body }: RawResponse): string | undefined {
  const grpc = trailers.get("grpc-status") ?? headers.get("grpc-status") ?? /grpc-status: ?(\d+)/i.exec(body)?.[1];
  if (status >= 500 && status !== 504 && status !== 505) return `status ${status}`;
  if (grpc === "2" || grpc === "13") return `grpc-status ${grpc}`;
  return /"code":"(internal|unknown)"|E500_INTERNAL/.exec(body)?.[0];
}
