/** Malformed and unusual requests: the service responds or closes the connection, and continues to work. */
import { once } from "node:events";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { aService } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { until } from "../../support/until.ts";

const service = aService();
const PATHS = [
  ["public", "/auth.v1.SessionService/Refresh"],
  ["public", "/auth.v1.SessionService/ListSessions"],
  ["public", "/v1/auth/refresh"],
  ["public", "/healthz"],
  ["admin", "/auth.admin.v1.SessionAdminService/CreateSession"],
  ["admin", "/auth.admin.v1.SessionAdminService/WatchRevocations"],
] as const;
/** Opens a stream to the service. */
const REFLECTION = {
  ":method": "POST",
  ":path": "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "content-type": "application/grpc",
};
const urlOf = (listener: "public" | "admin") => (listener === "public" ? service.publicUrl : service.adminUrl);

/** Sends bytes, and half-closes the connection afterwards if `last` is set. Returns what was received until the connection was closed. */
async function exchange(url: string, bytes: Buffer, last = false): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let heard = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    heard += chunk;
  });
  socket.on("error", () => {});
  if (last) socket.end(bytes);
  else socket.write(bytes);
  await once(socket, "close");
  return heard;
}

afterEach(async () => {
  for (const url of [service.publicUrl, service.adminUrl]) {
    expect((await request(url, { path: "/healthz" })).status).toBe(200);
  }
  expect(service.stderr()).not.toContain('"bug"');
});

const BODY = "Content-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";

describe.each(PATHS)("on the %s listener, %s", (listener, path) => {
  test.each<[string, string]>([
    ["no host", `POST ${path} HTTP/1.0`],
    ["half a host", `POST ${path} HTTP/1.1\r\nHost: [`],
    ["a host with a space", `POST ${path} HTTP/1.1\r\nHost: a b`],
    ["an empty host", `POST ${path} HTTP/1.1\r\nHost: `],
    ["a host with a port that is none", `POST ${path} HTTP/1.1\r\nHost: x:99999`],
    ["two hosts", `POST ${path} HTTP/1.1\r\nHost: x\r\nHost: y`],
    ["half of an absolute target", `POST http://[${path} HTTP/1.1\r\nHost: x`],
    ["an absolute target", `POST http://x${path} HTTP/1.1\r\nHost: x`],
    ["a query of nonsense", `GET ${path}?%zz&&==&message=%ff&encoding=json&connect=v1 HTTP/1.1\r\nHost: x`],
    ["an upgrade", `POST ${path} HTTP/1.1\r\nHost: x\r\nUpgrade: h2c\r\nConnection: Upgrade\r\nHTTP2-Settings: AAA`],
    ["an expectation of nonsense", `POST ${path} HTTP/1.1\r\nHost: x\r\nExpect: nonsense`],
    ["bytes in a cookie", `POST ${path} HTTP/1.1\r\nHost: x\r\nCookie: refresh_token=\u00ff\u00fe`],
    ["bytes in a credential", `POST ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer \u00ff`],
    ["an unknown encoding", `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Encoding: zzz`],
    ["a body that is no gzip", `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip`],
    ["a deadline that is none", `POST ${path} HTTP/1.1\r\nHost: x\r\nConnect-Timeout-Ms: x`],
    ["a deadline that has passed", `POST ${path} HTTP/1.1\r\nHost: x\r\nConnect-Timeout-Ms: 0`],
  ])("%s gets a response, and not a 500", async (_, head) => {
    const response = await exchange(urlOf(listener), Buffer.from(`${head}\r\n${BODY}`, "latin1"));
    expect(response).toMatch(/^HTTP\/1\.1 (2|4|501|504)/);
  });

  test("anything at all is survived", async () => {
    const word = fc.string({ unit: "binary", maxLength: 40 }).map((text) => text.replace(/[\r\n\0]/g, ""));
    const name = fc.constantFrom(
      ...["Host", "Content-Type", "Content-Length", "Cookie", "Authorization", "Origin", "Sec-Fetch-Site", "Accept"],
      ...[
        "Content-Encoding",
        "Grpc-Timeout",
        "Connect-Timeout-Ms",
        "Connect-Protocol-Version",
        "TE",
        "X-Forwarded-For",
      ],
    );
    const type = fc.constantFrom("json", "proto", "grpc", "grpc+json", "grpc-web", "grpc-web+proto", "connect+json");
    const rough = fc.record({
      method: fc.constantFrom("GET", "POST", "PUT", "DELETE", "OPTIONS", "HEAD", "TRACE"),
      query: fc.oneof(
        fc.constant(""),
        word.map((text) => `?${text.replaceAll(" ", "+")}`),
      ),
      type,
      headers: fc.array(fc.tuple(name, word), { maxLength: 5 }),
      body: fc.uint8Array({ maxLength: 64 }),
    });
    await fc.assert(
      fc.asyncProperty(rough, async ({ method, query, type: kind, headers, body }) => {
        const lines = headers.map(([key, value]) => `${key}: ${value}\r\n`).join("");
        const head =
          `${method} ${path}${query} HTTP/1.1\r\nHost: x\r\nContent-Type: application/${kind}\r\n${lines}` +
          `Content-Length: ${body.length}\r\nConnection: close\r\n\r\n`;
        const response = await exchange(urlOf(listener), Buffer.concat([Buffer.from(head, "latin1"), body]), true);
        expect(response).not.toMatch(/^HTTP\/1\.1 500/);
      }),
      { numRuns: 60 },
    );
  });

  test.each<[string, Record<string, string>]>([
    ["half an authority", { ":authority": "[" }],
    ["an authority with a space", { ":authority": "a b" }],
    ["a scheme of nonsense", { ":scheme": "x" }],
  ])("over HTTP/2 %s gets a response or a reset", async (_, headers) => {
    const session = connectHttp2(urlOf(listener));
    const stream = session.request({
      ":method": "POST",
      ":path": path,
      "content-type": "application/json",
      ...headers,
    });
    stream.on("error", () => {});
    stream.resume().end("{}");
    await new Promise((resolve) => stream.once("close", resolve));
    session.destroy();
  });
});

test.each([
  ["is no message", Buffer.from([0, 0, 0, 0, 3, 255, 255, 255])],
  ["is compressed, but does not say how", Buffer.from([1, 0, 0, 0, 3, 1, 2, 3])],
])("what is streamed to the service and %s is a fault of the caller", async (_what, body) => {
  const session = connectHttp2(service.publicUrl);
  const stream = session.request(REFLECTION);
  stream.resume().end(body);
  const [trailers] = await once(stream, "trailers");
  session.destroy();
  expect(trailers).toMatchObject({ "grpc-status": "3" });
});

test("callers that leave while messages are being sent to them leave no bug behind", async () => {
  const streams = Array.from({ length: 20 }, async () => {
    // With a window of 0 bytes, the client accepts no data.
    const session = connectHttp2(service.publicUrl, { settings: { initialWindowSize: 0 } });
    const stream = session.request(REFLECTION);
    stream.on("error", () => {});
    const listServices = Buffer.from([0, 0, 0, 0, 3, 0x3a, 1, 0x2a]);
    stream.write(Buffer.concat(Array.from({ length: 5000 }, () => listServices)));
    await once(stream, "response");
    return session;
  });
  for (const session of await Promise.all(streams)) session.destroy();
  await until(async () => {
    const { body } = await request(service.adminUrl, { path: "/metrics" });
    expect(body).toMatch(/^session_open_streams\{method="ServerReflectionInfo"\} 0$/m);
  });
});
