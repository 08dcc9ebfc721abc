/** Forms in which requests are smuggled past a proxy. Each is refused as a whole, or has only one possible meaning. */
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Service, startService } from "../support/service.ts";

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

/** Sends bytes, and resolves with the status of every response until the connection is closed. */
async function statuses(bytes: string): Promise<number[]> {
  const { hostname, port } = new URL(service.publicUrl);
  const socket = connect({ port: Number(port), host: hostname });
  socket.on("error", () => {});
  let received = "";
  socket.setEncoding("latin1").on("data", (chunk: string) => {
    received += chunk;
  });
  socket.end(Buffer.from(bytes, "latin1"));
  await new Promise((resolve) => socket.once("close", resolve));
  return [...received.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
}

const POST = "POST /v1/auth/refresh HTTP/1.1\r\nHost: x\r\n";
const RPC = "POST /auth.v1.SessionService/Refresh HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n";
/** The request that an attacker would have smuggled. It is the only one whose response is 404. */
const SMUGGLED = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n";

test.each<[string, string]>([
  ["CL.TE", `Content-Length: ${SMUGGLED.length + 5}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ["TE.CL", `Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ["two lengths that differ", `Content-Length: 0\r\nContent-Length: ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`],
  ["two lengths that agree", `Content-Length: 0\r\nContent-Length: 0\r\n\r\n${SMUGGLED}`],
  ["a list of lengths", `Content-Length: 0, ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`],
  ["a length with a sign", `Content-Length: +0\r\n\r\n${SMUGGLED}`],
  ["a length in hexadecimal", `Content-Length: 0x0\r\n\r\n${SMUGGLED}`],
  ["a negative length", `Content-Length: -1\r\n\r\n${SMUGGLED}`],
  ["a length beyond all numbers", `Content-Length: 99999999999999999999\r\n\r\n${SMUGGLED}`],
  ["a length with a space before the colon", `Content-Length : ${SMUGGLED.length}\r\n\r\n${SMUGGLED}`],
  ["an unknown transfer coding", `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ["chunked, but not last", `Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ["a transfer coding with a tab", `Transfer-Encoding:\tchunked\x0b\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ["a folded transfer coding", `Transfer-Encoding:\r\n chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n${SMUGGLED}`],
  ["a field without a name", `: chunked\r\n\r\n${SMUGGLED}`],
  ["a NUL in a field", `X: a\0b\r\n\r\n${SMUGGLED}`],
  ["a bare LF between fields", `X: a\nContent-Length: 0\r\n\r\n${SMUGGLED}`],
  ["a bare CR between fields", `X: a\rContent-Length: 0\r\n\r\n${SMUGGLED}`],
  ["a chunk size with a sign", `Transfer-Encoding: chunked\r\n\r\n-0\r\n\r\n${SMUGGLED}`],
  ["a chunk size beyond all numbers", `Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n\r\n${SMUGGLED}`],
  ["a chunk that is longer than its size", `Transfer-Encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n${SMUGGLED}`],
  ["a chunk ended by LF", `Transfer-Encoding: chunked\r\n\r\n1\n{\n0\n\n${SMUGGLED}`],
  ["two hosts", `Host: y\r\nConnection: close\r\n\r\n`],
])("%s", async (_, rest) => {
  for (const post of [POST, RPC]) {
    const seen = await statuses(`${post}${rest}`);
    expect(seen).not.toContain(404);
    expect(seen.filter((status) => status >= 500 && status !== 501)).toEqual([]);
    expect(seen.length).toBeLessThanOrEqual(1);
    for (const status of seen) expect([400, 413, 501]).toContain(status);
  }
});

test("an upgrade to HTTP/2 without TLS, and a tunnel, are not entered into", async () => {
  const upgrade = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
  expect(await statuses(`${POST}${upgrade}Content-Length: 0\r\n\r\n`)).toEqual([401]);
  expect(await statuses("CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n\r\n")).toEqual([]);
});

test("two requests that follow one another by the rules are two", async () => {
  expect(await statuses(`${POST}Content-Length: 2\r\n\r\n{}${SMUGGLED}`)).toEqual([401, 404]);
});

test("a field beyond any number of others counts", async () => {
  // Node ignores header fields beyond 2,000 by default, so a field behind them might go unseen.
  const many = "a:\r\n".repeat(3_900);
  expect(await statuses(`${POST}${many}Origin: https://evil.example\r\nContent-Length: 0\r\n\r\n`)).toEqual([403]);
});

test("the largest head is read, and one that is larger is refused", async () => {
  const head = (length: number) => {
    const start = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX: ";
    return `${start}${"x".repeat(length - start.length - 4)}\r\n\r\n`;
  };
  expect(await statuses(head(16_000))).toEqual([200]);
  expect(await statuses(head(32_768 + 100))).toEqual([431]);
});
