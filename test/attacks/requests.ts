/** Requests that anybody may send to the public API. A search among them finds the one that costs the service most CPU time per byte. */
import { gzipSync } from "node:zlib";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";

export type Candidate = {
  readonly method: string;
  readonly path: string;
  /** The header fields. Each time the request is sent, `NUMBER` in a value is replaced by a different number with as many characters. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
};

export const NUMBER = "nnnnnnnn";

/** Returns a copy of the request in which the number `at` replaces `NUMBER` in the header fields. */
export function numbered(candidate: Candidate, at: number): Candidate {
  const number = String(at).padStart(NUMBER.length, "0");
  const headers = Object.entries(candidate.headers).map(([name, value]) => [name, value.replace(NUMBER, number)]);
  return { ...candidate, headers: Object.fromEntries(headers) };
}

const PAGES = [
  "/healthz",
  "/readyz",
  "/.well-known/jwks.json",
  "/openapi.json",
  "/docs",
  "/nothing",
  "/v1/auth/refresh",
];
const ROUTES = [
  ["POST", "/v1/auth/refresh"],
  ["DELETE", "/v1/auth/logout"],
  ["POST", "/v1/auth/logout"],
  ["GET", "/v1/auth/sessions"],
  ["DELETE", "/v1/auth/sessions/x"],
  ["POST", "/v1/auth/sessions:revokeOthers"],
  ["POST", "/v1/auth/device"],
  ["POST", "/v1/auth/device/refresh"],
] as const;
const RPCS = [
  ...SessionService.methods.map(({ name }) => `/auth.v1.SessionService/${name}`),
  "/grpc.health.v1.Health/Check",
  "/grpc.health.v1.Health/List",
];

/** The sizes of messages in bytes: some below the limit of the service, one at it, and some far above it. */
const SIZES = [0, 500, 4_090, 60_000, 1_000_000];
const JSON_SHAPES: readonly ((size: number) => string)[] = [
  (size) => `{${'"a":1,'.repeat(Math.max(0, size - 7) / 6)}"b":1}`,
  (size) => `{"a":${"[".repeat((size - 6) / 2)}${"]".repeat((size - 6) / 2)}}`,
  (size) => `{"a":[${"{},".repeat((size - 11) / 3)}{}]}`,
  (size) => `{"pageToken":"${"\\u0041".repeat((size - 16) / 6)}"}`,
];
const PROTO_SHAPES: readonly ((size: number) => Buffer)[] = [
  (size) => Buffer.alloc(size - (size % 2), Buffer.from([0x78, 0x01])),
  (size) => Buffer.alloc(size, 0x0b),
];

function messages(codec: "json" | "proto"): readonly Buffer[] {
  const shapes =
    codec === "json" ? JSON_SHAPES.map((shape) => (size: number) => Buffer.from(shape(size))) : PROTO_SHAPES;
  return SIZES.flatMap((size) => (size === 0 ? [Buffer.alloc(0)] : shapes.map((shape) => shape(size))));
}

function enveloped(data: Buffer, isCompressed: boolean): Buffer {
  const head = Buffer.alloc(5, isCompressed ? 1 : 0);
  head.writeUInt32BE(data.length, 1);
  return Buffer.concat([head, data]);
}

/**
 * The largest message that is also sent uncompressed. Larger ones are sent compressed only, because the search looks for the cost per
 * byte.
 */
const MAX_SENT = 70_000;

/** Returns a message uncompressed and compressed. */
function bodies(type: string, encodingHeader: string): readonly Pick<Candidate, "headers" | "body">[] {
  const isStream = type.includes("grpc");
  return messages(type.endsWith("json") ? "json" : "proto").flatMap((message) => {
    const packed = gzipSync(message, { level: 9 });
    const plain = { headers: { "content-type": type }, body: isStream ? enveloped(message, false) : message };
    const headers = { "content-type": type, [encodingHeader]: "gzip" };
    const gzipped = { headers, body: isStream ? enveloped(packed, true) : packed };
    return message.length > MAX_SENT ? [gzipped] : [plain, gzipped];
  });
}

/** Returns all requests of the search. @param credentials header fields with no credential, with invalid ones and with valid ones */
export function candidates(credentials: readonly Readonly<Record<string, string>>[]): readonly Candidate[] {
  const rpcs = RPCS.flatMap((path) =>
    [
      ["application/json", "content-encoding"],
      ["application/proto", "content-encoding"],
      ["application/grpc+json", "grpc-encoding"],
      ["application/grpc+proto", "grpc-encoding"],
      ["application/grpc-web+proto", "grpc-encoding"],
    ].flatMap(([type = "", header = ""]) => bodies(type, header).map((each) => ({ method: "POST", path, ...each }))),
  );
  const nothing = { headers: {}, body: Buffer.alloc(0) };
  const query = `?pageToken=${"%41".repeat(2000)}`;
  const routes: readonly Candidate[] = ROUTES.flatMap(([method, path]): readonly Candidate[] =>
    method === "GET"
      ? [{ method, path: path + query, ...nothing }]
      : bodies("application/json", "content-encoding").map((each) => ({ method, path, ...each })),
  );
  const pages = PAGES.flatMap((path) => ["GET", "OPTIONS", "DELETE"].map((method) => ({ method, path, ...nothing })));
  const withCredentials = ({ headers, ...rest }: Candidate) =>
    credentials.map((credential) => ({ ...rest, headers: { ...headers, ...credential } }));
  return [...[...rpcs, ...routes].flatMap(withCredentials), ...pages];
}
