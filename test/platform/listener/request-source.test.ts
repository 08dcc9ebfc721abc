import { once } from "node:events";
import { createServer, request as httpRequest } from "node:http";
import { connect, constants, createServer as createHttp2 } from "node:http2";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { HttpRequest } from "../../../src/platform/listener/listener.ts";
import { NodeRequestSource } from "../../../src/platform/listener/request-source.ts";
import { type ProxyTrust, proxyTrust } from "../../../src/platform/net/proxy-trust.ts";

let trust: ProxyTrust = 0;
const server = createServer((request, response) => {
  const source = new NodeRequestSource(request, trust);
  response.end(JSON.stringify([source.origin(), source.address()]));
});
beforeAll(() => once(server.listen(0, "127.0.0.1"), "listening"));
afterAll(() => server.close());

/** Returns the origin and the address that the service determines for a request with these headers, behind these proxies. */
async function sourceOf(
  proxies: number | readonly string[],
  headers: Record<string, string>,
): Promise<[origin: string | null, address?: string]> {
  trust = proxyTrust(proxies);
  const { port } = server.address() as AddressInfo;
  const outgoing = httpRequest({
    port,
    host: "127.0.0.1",
    agent: false,
    headers: { host: "Auth.Example:8443", ...headers },
  });
  outgoing.end();
  const [incoming] = await once(outgoing, "response");
  let text = "";
  for await (const chunk of incoming.setEncoding("utf8")) text += chunk;
  return JSON.parse(text);
}

const forwarded = { "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.66, 192.0.2.1" };

const LOCAL = ["127.0.0.0/8", "10.0.0.0/8"];
const twice = { "x-forwarded-proto": "https, http", "x-forwarded-for": "192.0.2.66, 10.0.0.1" };

test.each<[string, number | readonly string[], Record<string, string>, string, string]>([
  ["the connection itself", 0, {}, "http", "127.0.0.1"],
  ["no header without a trusted proxy", 0, forwarded, "http", "127.0.0.1"],
  ["the only proxy, not what the client sent to it", 1, forwarded, "https", "192.0.2.1"],
  ["two proxies", 2, { ...forwarded, "x-forwarded-proto": "https, http" }, "https", "192.0.2.66"],
  [
    "the outermost of two proxies, whatever a client put before it",
    2,
    { "x-forwarded-proto": "https, http, http" },
    "http",
    "127.0.0.1",
  ],
  ["as many proxies as there were", 3, forwarded, "https", "192.0.2.66"],
  ["an address without its port", 1, { "x-forwarded-for": "192.0.2.1:4711" }, "http", "192.0.2.1"],
  ["an IPv6 address without brackets and port", 1, { "x-forwarded-for": "[2001:db8::1]:4711" }, "http", "2001:db8::1"],
  ["an IPv6 address", 1, { "x-forwarded-for": "2001:db8::1" }, "http", "2001:db8::1"],
  ["no text that is not an address", 1, { "x-forwarded-for": "192.0.2.1\u0085evil" }, "http", "127.0.0.1"],
  ["no address longer than any real one", 1, { "x-forwarded-for": `::1%${"a".repeat(8000)}` }, "http", "127.0.0.1"],
  ["no text that is not a scheme", 1, { "x-forwarded-proto": "javascript" }, "http", "127.0.0.1"],
  ["the connection where a proxy sends no header", 1, {}, "http", "127.0.0.1"],
  ["no header of a client that is no trusted proxy", ["10.0.0.0/8"], forwarded, "http", "127.0.0.1"],
  ["the last address that a trusted proxy reports", LOCAL, forwarded, "https", "192.0.2.1"],
  ["the reports of all proxies in trusted networks", LOCAL, twice, "https", "192.0.2.66"],
  [
    "a proxy that reports the scheme of the proxy before it",
    LOCAL,
    { ...twice, "x-forwarded-proto": "https" },
    "https",
    "192.0.2.66",
  ],
  [
    "the outermost proxy where all addresses are trusted",
    LOCAL,
    { "x-forwarded-for": "10.0.0.2, 10.0.0.1" },
    "http",
    "10.0.0.2",
  ],
  ["a trusted proxy that sends no header", LOCAL, {}, "http", "127.0.0.1"],
  [
    "the proxy that reports a text that is not an address",
    LOCAL,
    { "x-forwarded-for": "192.0.2.1, evil" },
    "http",
    "127.0.0.1",
  ],
  [
    "nothing before a text that is not an address",
    LOCAL,
    { "x-forwarded-for": "192.0.2.1, _hidden, 10.0.0.1" },
    "http",
    "10.0.0.1",
  ],
])("trusts %s", async (_, proxies, headers, scheme, address) => {
  expect(await sourceOf(proxies, headers)).toEqual([`${scheme}://auth.example:8443`, address]);
});

test.each([
  ["https", "auth.example:443", "https://auth.example"],
  ["https", "[2001:db8::443]:443", "https://[2001:db8::443]"],
  ["https", "[2001:db8::443]", "https://[2001:db8::443]"],
  ["https", "auth.example:80", "https://auth.example:80"],
  ["http", "auth.example:80", "http://auth.example"],
  ["http", "auth.example:443", "http://auth.example:443"],
  ["https", "auth.example:8443", "https://auth.example:8443"],
])("a default port that a proxy adds is no part of the origin (%s, %s)", async (scheme, host, origin) => {
  expect((await sourceOf(1, { host, "x-forwarded-proto": scheme }))[0]).toBe(origin);
});

test("abort ends the call, over HTTP/2 without the other calls of its connection", async () => {
  const handle = (request: HttpRequest, response: { end(): unknown }) =>
    request.url === "/other" ? response.end() : new NodeRequestSource(request, 0).abort();
  const http1 = createServer(handle).listen(0, "127.0.0.1");
  await once(http1, "listening");
  const outgoing = httpRequest({ port: (http1.address() as AddressInfo).port, host: "127.0.0.1", agent: false });
  outgoing.end();
  expect(await new Promise((resolve) => outgoing.once("error", resolve))).toMatchObject({ code: "ECONNRESET" });
  http1.close();

  const http2 = createHttp2(handle).listen(0, "127.0.0.1");
  await once(http2, "listening");
  const session = connect(`http://127.0.0.1:${(http2.address() as AddressInfo).port}`);
  const given = session.request({ ":path": "/" });
  given.on("error", () => {});
  await new Promise((resolve) => given.once("close", resolve));
  expect(given.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
  const [headers] = await once(session.request({ ":path": "/other" }), "response");
  expect(headers[":status"]).toBe(200);
  session.destroy();
  http2.close();
});

/** Returns the ids that the log has for a request with these headers. */
const correlationOf = (headers: Record<string, string>, traceId?: () => string | undefined) =>
  new NodeRequestSource({ headers } as unknown as HttpRequest, 0, traceId).correlation();

test("the id of a request is the one that its caller gave, if it is one", () => {
  for (const id of ["a", "A.b:c/d=e-f+_9", "x".repeat(64)]) {
    expect(correlationOf({ "x-request-id": id })).toEqual({ requestId: id });
  }
  for (const id of ["", "x".repeat(65), "a b", "a\n", "é"]) {
    expect(correlationOf({ "x-request-id": id }).requestId).toMatch(/^[\da-f]{16}$/);
  }
  const source = new NodeRequestSource({ headers: {} } as HttpRequest, 0);
  expect(source.correlation()).toEqual(source.correlation());
});

test("the trace of a request is that of this process, or the one that its caller sent", () => {
  const [trace, span] = ["0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"];
  const traceOf = (traceparent: string) => correlationOf({ traceparent }).traceId;
  expect(traceOf(`00-${trace}-${span}-01`)).toBe(trace);
  expect(traceOf(`01-${trace}-${span}-01-more`)).toBe(trace);
  for (const text of [
    ...[`ff-${trace}-${span}-01`, `00-${"0".repeat(32)}-${span}-01`, `00-${trace}-${"0".repeat(16)}-01`],
    ...[`00-${trace}-${span}`, `00-${trace}-${span}-012`, `x00-${trace}-${span}-01`, ""],
  ]) {
    expect(traceOf(text)).toBeUndefined();
  }
  const headers = { traceparent: `00-${trace}-${span}-01` };
  expect(correlationOf(headers, () => "own").traceId).toBe("own");
  expect(correlationOf(headers, () => undefined).traceId).toBe(trace);
});
