/**
 * Frames are written directly to the socket below Node's HTTP/2 session. If such a frame were written in the middle of another frame, Node
 * would abort the process.
 */
import { once } from "node:events";
import { createServer as createHttp2, type Http2Session } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { writeBetweenFrames } from "../../../src/platform/http2/end-session.ts";
import { END_HEADERS, END_STREAM, FRAME, frame, requestBlock } from "../../attacks/frames.ts";
import { dialHttp2, isGoaway } from "../../support/http2-peer.ts";

const GREATEST_WINDOW = 2 ** 31 - 1;
const NOTICE = frame(FRAME.goaway, 0, 0, Buffer.from("7fffffff00000000", "hex"));
/** The length of a body that is larger than the buffers of the system. */
const BODY_BYTES = 32 * 1024 * 1024;

async function serve() {
  const accepted = Promise.withResolvers<[Http2Session, Socket]>();
  const http2 = createHttp2((_request, response) => response.end(Buffer.alloc(BODY_BYTES)));
  const server = createServer((socket) => {
    http2.once("session", (session: Http2Session) => accepted.resolve([session, socket]));
    http2.emit("connection", socket);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const peer = await dialHttp2(url, [4, GREATEST_WINDOW]);
  const [session, socket] = await accepted.promise;
  onTestFinished(() => void socket.destroy());
  return { peer, session, socket };
}

test("a frame reaches the client between those of Node", async () => {
  const { peer, session, socket } = await serve();
  writeBetweenFrames(session, socket, NOTICE);
  await peer.take(isGoaway);
});

test("no frame is put between bytes that wait for the client", async () => {
  const { peer, session, socket } = await serve();
  const window = Buffer.alloc(4);
  window.writeUInt32BE(2 ** 30);
  peer.send(frame(FRAME.window, 0, 0, window));
  peer.send(frame(FRAME.headers, END_HEADERS | END_STREAM, 1, requestBlock("GET", "/")));
  await peer.take(({ type }) => type === FRAME.headers);
  peer.pause();
  const { _handle: handle } = socket as Socket & { readonly _handle: { readonly writeQueueSize: number } };
  await expect.poll(() => handle.writeQueueSize).toBeGreaterThan(0);
  writeBetweenFrames(session, socket, NOTICE);
  peer.resume();
  await peer.take(({ type, flags }) => type === FRAME.data && (flags & END_STREAM) !== 0);
  expect(peer.frames.filter(isGoaway)).toEqual([]);
});
