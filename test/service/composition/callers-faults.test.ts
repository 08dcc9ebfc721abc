/** Invalid requests are reported as the caller's fault on every protocol: never with status 500, and never logged as a bug. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type RawResponse, request } from "../../support/raw-http.ts";
import { type Service, startService } from "../../support/service.ts";
import { bearer, cookie, logIn } from "../../support/sessions.ts";

let service: Service;
/** Valid credentials. Without them the service would refuse a request before reading its message. */
let credentials: Record<string, string>;
beforeAll(async () => {
  service = await startService({ LOG_LEVEL: "debug" });
  const { refreshToken, accessToken } = await logIn(service);
  credentials = { ...cookie(refreshToken), ...bearer(accessToken) };
});
afterAll(async () => {
  await service.stop();
  expect(service.stderr()).not.toMatch(/"bug"|"level":"error"/);
  // Every line of the log is JSON. A library that prints something itself would break this format.
  const lines = service.stderr().split("\n").slice(0, -1);
  expect(lines.filter((line) => !line.startsWith("{"))).toEqual([]);
});

const UNARY = "/auth.v1.SessionService/Refresh";
const WATCH = "/auth.admin.v1.SessionAdminService/WatchRevocations";
/** The first half of a gzip stream. */
const half = gzipSync("{}".repeat(100)).subarray(0, 15);
/** Encodes a message of a stream. @param flags 1 if the data is compressed */
const envelope = (flags: number, data: Buffer) => Buffer.concat([Buffer.from([flags, 0, 0, 0, data.length]), data]);

async function post(path: string, headers: Record<string, string>, body: Buffer): Promise<RawResponse> {
  const [url, credential] = path.startsWith("/auth.admin")
    ? [service.adminUrl, bearer(service.adminToken)]
    : [service.publicUrl, credentials];
  return request(url, { method: "POST", path, headers: { ...credential, ...headers }, body });
}

/** Returns the text of an error response of any protocol. */
function reported({ headers, trailers, body }: RawResponse): string {
  const details =
    trailers.get("grpc-status-details-bin") ??
    headers.get("grpc-status-details-bin") ??
    /details-bin: (\S+)/i.exec(body)?.[1];
  return details === undefined ? body : Buffer.from(details, "base64").toString();
}

test.each([
  ["gRPC, compressed", "application/grpc+json", 1],
  ["gRPC-Web", "application/grpc-web+json", 0],
  ["gRPC-Web, compressed", "application/grpc-web+json", 1],
])("half of a character in a message, over %s", async (_, type, flags) => {
  const text = Buffer.from(String.raw`{"service":{"\ud800":"\ud800"},"\ud800":1}`);
  for (const quoted of [text, Buffer.from(String.raw`"\ud800"`)]) {
    const body = envelope(flags, flags === 1 ? gzipSync(quoted) : quoted);
    const headers = { "content-type": type, ...(flags === 1 && { "grpc-encoding": "gzip" }) };
    const response = await post("/grpc.health.v1.Health/Check", headers, body);
    expect([response.status, reported(response)]).toEqual([200, expect.stringContaining("E400_INVALID_REQUEST")]);
  }
});

describe.each<[string, string, string, string]>([
  ["Connect unary, JSON", UNARY, "application/json", "content-encoding"],
  ["Connect unary, binary", UNARY, "application/proto", "content-encoding"],
  ["Connect streaming", WATCH, "application/connect+json", "connect-content-encoding"],
  ["gRPC", UNARY, "application/grpc+proto", "grpc-encoding"],
  ["gRPC streaming", WATCH, "application/grpc+proto", "grpc-encoding"],
  ["gRPC-Web", UNARY, "application/grpc-web+proto", "grpc-encoding"],
])("%s", (name, path, type, encodingHeader) => {
  const isUnary = name.startsWith("Connect unary");

  test.each([
    ["no gzip", "gzip", Buffer.from("{}")],
    ["half a gzip stream", "gzip", half],
    ["in an encoding that is not read", "br", Buffer.from("{}{}{}")],
  ])("a body that is %s", async (_, encoding, data) => {
    const expected = encoding === "br" ? ["E415_UNSUPPORTED_MEDIA_TYPE", 400] : ["E400_INVALID_REQUEST", 400];
    const body = isUnary ? data : envelope(1, data);
    const response = await post(path, { "content-type": type, [encodingHeader]: encoding }, body);
    expect(reported(response)).toContain(expected[0]);
    expect(response.status).toBe(isUnary ? expected[1] : 200);
    if (isUnary) expect(response.headers.get("accept-encoding")).toBe(encoding === "br" ? "gzip" : null);
  });

  test("a body that stops in the middle", async () => {
    const { hostname, port } = new URL(path === WATCH ? service.adminUrl : service.publicUrl);
    const socket = connect(Number(port), hostname);
    const head = `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: ${type}\r\nContent-Length: 100\r\n`;
    socket.write(`${head}Authorization: Bearer ${service.adminToken}\r\nExpect: 100-continue\r\n\r\n`);
    await once(socket, "data"); // The response `100 Continue` shows that the service is handling the request.
    socket.write("{");
    socket.resetAndDestroy();
    await once(socket, "close");
    await post(path, { "content-type": "text/plain" }, Buffer.alloc(0));
  });

  test.each([1, 2, 8, 11])("a stream that its caller resets with code %d", async (code) => {
    const session = connectHttp2(path === WATCH ? service.adminUrl : service.publicUrl);
    const headers = { ":method": "POST", ":path": path, "content-type": type, ...bearer(service.adminToken) };
    const stream = session.request(headers);
    stream.on("error", () => {});
    stream.write("{");
    await new Promise((resolve) => session.ping(resolve));
    stream.close(code);
    await new Promise((resolve) => session.ping(resolve));
    session.destroy();
  });
});

test.each([
  ["Connect streaming", WATCH, "application/connect+json"],
  ["gRPC", UNARY, "application/grpc+proto"],
  ["gRPC streaming", WATCH, "application/grpc+proto"],
  ["gRPC-Web", UNARY, "application/grpc-web+proto"],
])("a compressed flag without an encoding over %s", async (_, path, type) => {
  expect(reported(await post(path, { "content-type": type }, envelope(1, half)))).toContain("E400_INVALID_REQUEST");
});

describe.each([
  ["Connect JSON", "application/json"],
  ["gRPC", "application/grpc+proto"],
])("%s", (_, type) => {
  test.each([
    ["a method of no fields", UNARY, 512],
    ["a method of few", "/auth.v1.SessionService/ListSessions", 4096],
    ["gRPC's health check", "/grpc.health.v1.Health/Check", 4096],
    ["an admin RPC", "/auth.admin.v1.SessionAdminService/CreateSession", 65_536],
  ])("a message for %s is read up to its length, one byte more is too large", async (__, path, most) => {
    const isGrpc = type.startsWith("application/grpc");
    const send = async (length: number) => {
      // The message contains only a field that the schema does not have. The service reads its bytes and ignores them.
      const data = isGrpc
        ? Buffer.concat([Buffer.from([0xfa, 0x01, ...varint(length - 5)]), Buffer.alloc(length - 5)])
        : Buffer.from(`{"a":"${"x".repeat(length - 8)}"}`);
      expect(data.length).toBe(length);
      const head = Buffer.alloc(5);
      head.writeUInt32BE(length, 1);
      return reported(await post(path, { "content-type": type }, isGrpc ? Buffer.concat([head, data]) : data));
    };
    expect(await send(most)).not.toContain("E413_TOO_LARGE");
    expect(await send(most + 1)).toContain("E413_TOO_LARGE");
  });
});

function varint(value: number): number[] {
  return [(value & 0x7f) | 0x80, ((value >> 7) & 0x7f) | 0x80, value >> 14];
}

describe("Connect by GET", () => {
  const get = (query: string) =>
    request(service.publicUrl, {
      path: `/auth.v1.SessionService/ListSessions?connect=v1&${query}`,
      headers: credentials,
    });

  test.each([
    ["not base64", "encoding=json&base64=1&message=%25%25%25"],
    ["cut in the middle of a group", "encoding=proto&base64=1&message=A"],
    ["not base64, and said to be compressed", "encoding=json&base64=1&compression=gzip&message=!"],
  ])("a message that is %s", async (_, query) => {
    const { status, body } = await get(query);
    expect([status, JSON.parse(body).code]).toEqual([400, "invalid_argument"]);
    expect(body).toContain("E400_INVALID_REQUEST");
  });

  test("any query", async () => {
    const part = (name: string, values: fc.Arbitrary<string>) =>
      fc.option(
        values.map((value) => `${name}=${encodeURIComponent(value)}`),
        { nil: "" },
      );
    const text = fc.oneof(
      fc.string(),
      fc.stringMatching(/^[\w+/=-]{0,9}$/),
      fc.constantFrom("{}", "e30", "H4sIAAAAAAAA"),
    );
    const query = fc.tuple(
      part("encoding", fc.constantFrom("json", "proto", "x")),
      part("base64", fc.constantFrom("1", "0", "true")),
      part("compression", fc.constantFrom("gzip", "br", "identity")),
      part("message", text),
    );
    await fc.assert(
      fc.asyncProperty(query, async (parts) => {
        expect((await get(parts.join("&"))).status).toBeLessThan(500);
      }),
      { numRuns: 300 },
    );
  });
});
