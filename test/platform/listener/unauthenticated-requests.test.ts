/** The limit on HTTP/2 requests without a valid credential from one address. */
import { connect as connectHttp2, type IncomingHttpHeaders, type OutgoingHttpHeaders } from "node:http2";
import { connect } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { type Handler, type Listener, openListener, respond } from "../../../src/platform/listener/listener.ts";
import { NodeRequestSource } from "../../../src/platform/listener/request-source.ts";
import {
  CALM_MS,
  MAX_UNAUTHENTICATED,
  UNAUTHENTICATED_PER_SECOND,
  UnauthenticatedRequests,
} from "../../../src/platform/listener/unauthenticated-requests.ts";

const STRANGER = "127.0.0.8";
const listeners: Listener[] = [];
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close(0)));
});

/** Responds with the status that the path of the request contains. */
const handler: Handler = ({ url = "" }, response) => respond(response, Number(url.slice(1, 4)), {}, "x");

async function opened(bounds = true, onRefused = (_: string) => {}): Promise<Listener> {
  const listener = await openListener("test", "127.0.0.1", 0, {
    limits: { needsCredential: bounds ? (path) => path.endsWith("/call") : undefined },
    onRefused,
  });
  listeners.push(listener);
  listener.serve(handler);
  return listener;
}

/** Returns a client that sends one request after the other. */
function client(listener: Listener, localAddress = STRANGER) {
  const socket = connect({ host: "127.0.0.1", port: listener.port, localAddress });
  const session = connectHttp2(listener.url, { createConnection: () => socket }).on("error", () => {});
  const reasons: number[] = [];
  session.on("goaway", (code) => reasons.push(code));
  const send = (headers: OutgoingHttpHeaders) =>
    new Promise<number>((resolve) => {
      let status = 0;
      const stream = session.request(headers, { endStream: true });
      stream.once("response", (head: IncomingHttpHeaders) => {
        status = Number(head[":status"]);
      });
      stream.on("error", () => {}).once("close", () => resolve(status));
      stream.resume();
    });
  return { session, reasons, send };
}

/** How many requests are sent at once, so that they come faster than they are forgiven on a slow machine, too. */
const AT_ONCE = 20;

/** Returns how many of `count` requests got a response. */
async function served(
  send: (headers: OutgoingHttpHeaders) => Promise<number>,
  headers: OutgoingHttpHeaders,
  count: number,
) {
  let responses = 0;
  for (let at = 0; at < count; at += AT_ONCE) {
    const statuses = await Promise.all(Array.from({ length: AT_ONCE }, () => send(headers)));
    responses += statuses.filter((status) => status > 0).length;
  }
  return responses;
}

/** The error code ENHANCE_YOUR_CALM (RFC 9113 section 7). */
const ENHANCE_YOUR_CALM = 11;
/** The number of requests to send: so many that they exceed the rate limit. */
const MANY = MAX_UNAUTHENTICATED * 10;

describe("an address that makes many HTTP/2 requests", () => {
  test.each([
    ["that are refused", { ":path": "/401", authorization: "Bearer x" }],
    ["of pages, whatever credential they claim", { ":path": "/200", cookie: "a=b" }],
    ["of CORS", { ":method": "OPTIONS", ":path": "/200/call" }],
  ])("%s loses its connection, and gets no other for a while", async (_, headers) => {
    const refusals: string[] = [];
    const listener = await opened(true, (reason) => refusals.push(reason));
    const { session, reasons, send } = client(listener);
    const closed = new Promise((resolve) => session.once("close", resolve));
    expect(
      await served(async (given) => (session.closed || session.destroyed ? 0 : send(given)), headers, MANY),
    ).toBeLessThan(MANY);
    await closed;
    expect(reasons).toEqual([ENHANCE_YOUR_CALM]);
    const second = client(listener);
    expect(await second.send({ ":path": "/200", cookie: "a=b" }).catch(() => 0)).toBe(0);
    expect(refusals).toEqual(["requests"]);
    // While this address is refused, another address is served.
    const other = client(listener, "127.0.0.9");
    expect(await other.send({ ":path": "/200" })).toBe(200);
    other.session.destroy();
  });

  test.each([
    ["are served, and need a credential", "/200/call"],
    ["meet an outage", "/503/call"],
  ])("that %s keeps its connection", async (_, path) => {
    const { session, send } = client(await opened());
    expect(await served(send, { ":path": path }, MANY)).toBe(MANY);
    session.destroy();
  });

  test("whose handler notes that they are of no use, loses its connection", async () => {
    const listener = await opened();
    listener.serve((request, response) => {
      new NodeRequestSource(request, 0).noteUnauthenticated();
      respond(response, 200, {}, "x");
    });
    const { session, send } = client(listener);
    const sent = (given: OutgoingHttpHeaders) =>
      session.closed || session.destroyed ? Promise.resolve(0) : send(given);
    expect(await served(sent, { ":path": "/call" }, MANY)).toBeLessThan(MANY);
  });

  test.each([
    ["behind a proxy", false, STRANGER],
    ["from this machine", true, "127.0.0.1"],
  ])("%s keeps its connection", async (_, bounds, address) => {
    const { session, send } = client(await opened(bounds), address);
    expect(await served(send, { ":path": "/401" }, MANY)).toBe(MANY);
    session.destroy();
  });
});

test("the bucket leaks, and an address is barred for a while", () => {
  let now = 0;
  const requests = new UnauthenticatedRequests(
    () => false,
    () => now,
  );
  const burst = (count: number) =>
    Array.from({ length: count }, () => requests.count("192.0.2.1")).filter(Boolean).length;
  expect(burst(MAX_UNAUTHENTICATED)).toBe(0);
  now += 1000;
  expect(burst(MAX_UNAUTHENTICATED)).toBe(0);
  expect(requests.isBarred("192.0.2.1")).toBe(false);
  expect(burst(1)).toBe(1);
  expect([requests.isBarred("192.0.2.1"), requests.isBarred("192.0.2.2")]).toEqual([true, false]);
  now += CALM_MS - 1;
  expect(requests.isBarred("192.0.2.1")).toBe(true);
  // Requests on older connections do not extend the time for which the address may not connect.
  expect(burst(1)).toBe(1);
  now += 1;
  expect(requests.isBarred("192.0.2.1")).toBe(false);
  expect(burst(1)).toBe(1);
  // The bucket of the rate limit begins to leak when the address may connect again.
  now += CALM_MS + 500;
  expect(burst(UNAUTHENTICATED_PER_SECOND / 2)).toBe(0);
  expect(burst(1)).toBe(1);
});

test("gRPC refuses by its own status, and reports an outage by another", async () => {
  const listener = await opened();
  listener.serve(({ url = "" }, response) =>
    respond(response, 200, { "content-type": "application/grpc", "grpc-status": url.slice(1, 3) }),
  );
  const { session, send } = client(listener);
  expect(await served(send, { ":path": "/14/call", authorization: "y" }, MANY)).toBe(MANY);
  const sent = (given: OutgoingHttpHeaders) => (session.closed || session.destroyed ? Promise.resolve(0) : send(given));
  expect(await served(sent, { ":path": "/16/call", authorization: "y" }, MANY)).toBeLessThan(MANY);
});
