import { once } from "node:events";
import { connect, constants, createServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { createStreamTimeouts } from "../../../src/platform/listener/stream-timeouts.ts";

const REQUEST_TIMEOUT_MS = 20_000;
const WRITE_TIMEOUT_MS = 30_000;

/** Opens a stream whose client sends a body only if `body` is given, and reads nothing. */
async function openStream(body?: string) {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    settings: { initialWindowSize: 0 },
  });
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const sent = client.request({ ":method": "POST" }).on("error", () => {});
  if (body !== undefined) sent.end(body);
  const [request, response] = (await once(server, "request")) as [Http2ServerRequest, Http2ServerResponse];
  const timeouts = createStreamTimeouts(REQUEST_TIMEOUT_MS, WRITE_TIMEOUT_MS);
  const { stream } = response;
  timeouts.add(stream, request, response, 0);
  /** Lets time pass, with a check in every second. @returns when the stream was reset, in ms; undefined if it was not */
  const resetAt = (fromMs: number, toMs: number): number | undefined => {
    for (let nowMs = fromMs; nowMs <= toMs; nowMs += 1_000) {
      timeouts.check(nowMs);
      if (stream.closed) return nowMs;
    }
    return undefined;
  };
  return { request, response, stream, resetAt };
}

test("a response that is not taken is reset between its limit and a third more", async () => {
  const { request, response, stream, resetAt } = await openStream("{}");
  await once(request.resume(), "end");
  response.end("x".repeat(100_000));
  expect(resetAt(0, WRITE_TIMEOUT_MS - 1_000)).toBe(undefined);
  expect(resetAt(WRITE_TIMEOUT_MS, 2 * WRITE_TIMEOUT_MS)).toBeLessThanOrEqual(WRITE_TIMEOUT_MS + 10_000);
  expect(stream.rstCode).toBe(constants.NGHTTP2_ENHANCE_YOUR_CALM);
});

test("a request that is not finished is reset between its limit and a quarter more", async () => {
  const { resetAt } = await openStream();
  expect(resetAt(0, REQUEST_TIMEOUT_MS - 1_000)).toBe(undefined);
  expect(resetAt(REQUEST_TIMEOUT_MS, 2 * REQUEST_TIMEOUT_MS)).toBeLessThanOrEqual(REQUEST_TIMEOUT_MS + 5_000);
});

test("a stream whose handler works stays open", async () => {
  const { request, resetAt } = await openStream("{}");
  await once(request.resume(), "end");
  expect(resetAt(0, 100 * WRITE_TIMEOUT_MS)).toBe(undefined);
});

/** Opens streams on one connection whose client reads nothing. Their responses may hold 50 KiB. */
async function openStreams() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, {
    settings: { initialWindowSize: 0 },
  });
  client.on("error", () => {});
  onTestFinished(() => {
    client.destroy();
    server.close();
  });
  const timeouts = createStreamTimeouts(REQUEST_TIMEOUT_MS, WRITE_TIMEOUT_MS, 50 * 1024);
  const streams: Http2ServerResponse["stream"][] = [];
  const open = async (isEnded: boolean, nowMs = 0) => {
    client.request({ ":path": "/" }).on("error", () => {});
    const [request, response] = (await once(server, "request")) as [Http2ServerRequest, Http2ServerResponse];
    timeouts.add(response.stream, request, response, nowMs);
    streams.push(response.stream);
    if (isEnded) response.end("x".repeat(100_000));
  };
  const closed = () => streams.map((stream) => stream.closed);
  return { timeouts, streams, open, closed };
}

test("too many responses that are not taken are reset, the oldest first; a connection that takes no reset ends", async () => {
  const { timeouts, streams, open, closed } = await openStreams();
  // Streams whose handlers work for a long time count for nothing, however many they are.
  for (const isEnded of [false, false, false, false, false, false, true, true]) await open(isEnded);
  timeouts.check(1_000);
  expect(closed()).toEqual(Array(8).fill(false));
  for (let i = 0; i < 5; i++) await open(true);
  timeouts.check(2_000);
  expect(closed()).toEqual([...Array(6).fill(false), ...Array(5).fill(true), false, false]);
  const session = streams[0]?.session;
  // Nothing has removed the streams from the list, as if their client had not taken the resets.
  timeouts.check(3_000);
  expect(session?.destroyed).toBe(true);
});

test("the oldest are reset first, also if they were checked after younger ones had come", async () => {
  const { timeouts, open, closed } = await openStreams();
  for (const openedAt of [0, 0, 4_000, 4_000]) await open(true, openedAt);
  timeouts.check(REQUEST_TIMEOUT_MS / 4);
  expect(closed()).toEqual(Array(4).fill(false));
  await open(true, 5_000);
  timeouts.check(6_000);
  expect(closed()).toEqual([true, true, true, false, false]);
});
