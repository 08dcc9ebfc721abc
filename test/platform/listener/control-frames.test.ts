/** Which control frames end an HTTP/2 connection: those for which no request is served. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  FRAMES_PER_REQUEST,
  MAX_CONTROL_FRAMES,
  MAX_PROXY_RESETS,
  MAX_RESETS,
} from "../../../src/platform/listener/limits.ts";
import { END_HEADERS, END_STREAM, FRAME, frame, PREFACE, requestBlock, settings } from "../../attacks/frames.ts";
import { servesAfterCancelling } from "../../support/cancelled-streams.ts";
import { type Service, startService } from "../../support/service.ts";
import { cookie, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

let service: Service;
/** A request for which the service asks its store, so that it can be reset before its response begins. */
let refresh: (stream: number) => Buffer;
beforeAll(async () => {
  service = await startService();
  const block = requestBlock("POST", "/v1/auth/refresh", cookie((await logIn(service)).refreshToken));
  refresh = (stream) => frame(FRAME.headers, END_HEADERS | END_STREAM, stream, block);
});
afterAll(() => service.stop());

const ping = frame(FRAME.ping, 0, 0, Buffer.alloc(8));
const reset = (stream: number) => frame(FRAME.reset, 0, stream, Buffer.from([0, 0, 0, 8]));
const get = (stream: number) => frame(FRAME.headers, END_HEADERS | END_STREAM, stream, requestBlock("GET", "/healthz"));
const times = (count: number, bytes: Buffer) => Buffer.concat(Array.from({ length: count }, () => bytes));
const streams = (from: number, count: number, make: (stream: number) => Buffer) =>
  Buffer.concat(Array.from({ length: count }, (_, i) => make(2 * (from + i) + 1)));

/** Opens a connection, and reads frames from it. */
async function open({ publicUrl } = service) {
  const { hostname, port } = new URL(publicUrl);
  const socket = connect(Number(port), hostname);
  await once(socket, "connect");
  let unread: Buffer = Buffer.alloc(0);
  const seen = { ended: 0, pongs: 0, goaway: undefined as number | undefined, isClosed: false };
  socket
    .on("error", () => {})
    .once("close", () => {
      seen.isClosed = true;
    });
  socket.on("data", (bytes: Buffer) => {
    unread = Buffer.concat([unread, bytes]);
    while (unread.length >= 9 && unread.length >= 9 + unread.readUIntBE(0, 3)) {
      const length = unread.readUIntBE(0, 3);
      const [type, flags] = [unread[3], unread[4] ?? 0];
      if (type === FRAME.goaway) seen.goaway = unread.readUInt32BE(13);
      if (type === FRAME.ping) seen.pongs++;
      if ((type === FRAME.data || type === FRAME.headers) && (flags & END_STREAM) !== 0) seen.ended++;
      unread = unread.subarray(9 + length);
    }
  });
  socket.write(Buffer.concat([PREFACE, settings()]));
  return { socket, seen };
}

/** How many requests are sent at once: fewer than streams may be open. */
const BATCH = 80;

test("a client may send PINGs with each response that it reads, for thousands of requests a second", async () => {
  const { socket, seen } = await open();
  for (let from = 0; from < 20 * BATCH; from += BATCH) {
    socket.write(streams(from, BATCH, (stream) => Buffer.concat([get(stream), times(FRAMES_PER_REQUEST, ping)])));
    await until(async () => expect(seen.ended).toBe(from + BATCH));
  }
  expect(seen).toMatchObject({ pongs: 20 * BATCH * FRAMES_PER_REQUEST, goaway: undefined, isClosed: false });
  socket.destroy();
});

test("as many calls may be cancelled as are served", async () => {
  const { socket, seen } = await open();
  for (let from = 0, served = 0; from < 16 * BATCH; from += BATCH) {
    const pair = (stream: number) => (stream % 4 === 1 ? get(stream) : Buffer.concat([refresh(stream), reset(stream)]));
    socket.write(streams(from, BATCH, pair));
    served += BATCH / 2;
    await until(async () => expect(seen.ended).toBe(served));
  }
  expect(seen).toMatchObject({ goaway: undefined, isClosed: false });
  socket.destroy();
});

test("a proxy keeps its connection when its clients cancel many calls, up to a limit", async () => {
  const trusting = await startService({ TRUST_PROXY: "127.0.0.1" });
  expect(await servesAfterCancelling(trusting.publicUrl, "POST", "/v1/auth/refresh")).toBe(true);
  expect(await servesAfterCancelling(service.publicUrl, "POST", "/v1/auth/refresh")).toBe(false);
  const { socket, seen } = await open(trusting);
  socket.write(streams(0, 3 * MAX_PROXY_RESETS, (stream) => Buffer.concat([refresh(stream), reset(stream)])));
  await until(async () => expect(seen.isClosed).toBe(true));
  await trusting.stop();
});

test.each<[string, () => Buffer]>([
  ["PINGs alone", () => times(3 * MAX_CONTROL_FRAMES, ping)],
  ["SETTINGS alone", () => times(3 * MAX_CONTROL_FRAMES, settings([3, 100]))],
  [
    "PINGs behind a few requests",
    () => Buffer.concat([streams(0, 20, (stream) => Buffer.concat([get(stream), times(500, ping)]))]),
  ],
  ["resets alone", () => streams(0, 3 * MAX_RESETS, (stream) => Buffer.concat([refresh(stream), reset(stream)]))],
  [
    "resets behind a few requests",
    () =>
      streams(0, 6 * MAX_RESETS, (stream) =>
        stream % 40 === 1 ? get(stream) : Buffer.concat([refresh(stream), reset(stream)]),
      ),
  ],
  [
    // CVE-2025-8671: the client makes the server reset the streams, here by a window that overflows.
    "resets that the client provokes",
    () =>
      streams(0, 4 * MAX_RESETS, (stream) =>
        Buffer.concat([refresh(stream), times(2, frame(FRAME.window, 0, stream, Buffer.from([0x7f, 255, 255, 255])))]),
      ),
  ],
])("%s end the connection", async (_, bytes) => {
  const { socket, seen } = await open();
  socket.write(bytes());
  await until(async () => expect(seen.isClosed).toBe(true));
});
