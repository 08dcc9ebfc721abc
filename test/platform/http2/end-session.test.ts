/**
 * How HTTP/2 connections end when the service stops: it announces the end first, so that no request is lost, and ends despite slow
 * clients.
 */
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { connect, createServer as createHttp2, type Http2Session } from "node:http2";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { writeBetweenFrames } from "../../../src/platform/http2/end-session.ts";
import { type Handler, openListener, respond } from "../../../src/platform/listener/listener.ts";
import { END_HEADERS, END_STREAM, FRAME, frame, requestBlock } from "../../attacks/frames.ts";
import { selfSigned } from "../../support/certificate.ts";
import { dialHttp2, type Frame, type Http2Peer, isGoaway, isPing, lastStreamOf } from "../../support/http2-peer.ts";
import { scratch, startService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

/** The greatest number of a stream, and the largest window of one. */
const GREATEST = 2 ** 31 - 1;

type Server = { readonly url: string; stop(): Promise<unknown> };
type Start = (handler: Handler) => Promise<Server>;

const startListener =
  (lingerMs: number): Start =>
  async (handler) => {
    const listener = await openListener("test", "127.0.0.1", 0);
    listener.serve(handler);
    onTestFinished(() => listener.close(0));
    return { url: listener.url, stop: () => listener.close(60_000, lingerMs) };
  };

const startApi =
  (api: "publicUrl" | "adminUrl"): Start =>
  async () => {
    const service = await startService({ DRAIN_DELAY: "0s" });
    return { url: service[api], stop: () => service.stop() };
  };

const LISTENERS: Readonly<Record<string, Start>> = {
  "a listener": startListener(60_000),
  "a listener that hurries": startListener(0),
};

const APIS: Readonly<Record<string, Start>> = {
  "the public API": startApi("publicUrl"),
  "the admin API": startApi("adminUrl"),
};

const serve: Handler = (_request, response) => respond(response, 200, {}, "served");
const request = (stream: number) =>
  frame(FRAME.headers, END_HEADERS | END_STREAM, stream, requestBlock("GET", "/healthz"));
const isHead =
  (stream: number) =>
  ({ type, stream: of }: Frame): boolean =>
    type === FRAME.headers && of === stream;

async function acknowledgePing(peer: Http2Peer): Promise<void> {
  peer.acknowledge(await peer.take(isPing));
}

describe.each(Object.entries({ ...LISTENERS, ...APIS }))("%s", (_, start) => {
  test("announces the end, and serves what the client sends before it knows", async () => {
    const { url, stop } = await start(serve);
    const peer = await dialHttp2(url);
    const stopped = stop();
    await acknowledgePing(peer);
    expect(lastStreamOf(await peer.take(isGoaway))).toBe(GREATEST);
    // The client sends the request before it acknowledges the PING. To the server this looks as if the request and the announcement of the
    // end had crossed on the way.
    const ping = await peer.take(isPing);
    peer.send(request(1));
    peer.acknowledge(ping);
    await peer.take(isHead(1));
    // The client sends another request just after it has acknowledged the PING.
    peer.send(request(3));
    await acknowledgePing(peer);
    expect(lastStreamOf(await peer.take(isGoaway))).toBe(3);
    await stopped;
    await peer.closed;
    expect(peer.frames.filter(isHead(3))).toHaveLength(1);
    expect(peer.frames.filter(({ type }) => type === FRAME.reset)).toEqual([]);
  });
});

/** Returns a service that serves TLS on both APIs. */
function withTls(): Record<string, string> {
  const { cert, key } = selfSigned();
  const directory = scratch();
  const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  writeFileSync(TLS_CERT_FILE, cert, { mode: 0o600 });
  writeFileSync(TLS_KEY_FILE, key, { mode: 0o600 });
  return { TLS_CERT_FILE, TLS_KEY_FILE };
}

describe.each(["without TLS", "with TLS"])("%s", (name) => {
  const env = () => ({ DRAIN_DELAY: "0s", ...(name === "with TLS" && withTls()) });

  test("a client that reads nothing does not end the process at a stop", async () => {
    const service = await startService({ ...env(), SHUTDOWN_TIMEOUT: "2s" });
    const peer = await dialHttp2(service.publicUrl, [4, GREATEST]);
    const window = Buffer.alloc(4);
    window.writeUInt32BE(2 ** 30);
    peer.send(frame(FRAME.window, 0, 0, window));
    const stopped = service.stop();
    const ping = await peer.take(isPing);
    // The client requests 100 large pages and reads none, so the responses exceed the buffers of the system.
    const page = requestBlock("GET", "/openapi.json");
    const streams = Array.from({ length: 100 }, (_, index) => 2 * index + 1);
    peer.send(...streams.map((stream) => frame(FRAME.headers, END_HEADERS | END_STREAM, stream, page)));
    peer.pause();
    peer.acknowledge(ping);
    expect(await stopped).toEqual({ code: 0, signal: null });
  });

  test("a client that sends many requests does not end the process at a stop", async () => {
    const service = await startService(env());
    const session = connect(service.publicUrl, { rejectUnauthorized: false }).on("error", () => {});
    let served = 0;
    const [underLoad, setUnderLoad] = [Promise.withResolvers<void>(), 100];
    const send = () => {
      if (session.closed || session.destroyed) return;
      const stream = session.request({ ":path": "/healthz" }).on("error", () => {});
      stream.resume().once("close", () => {
        if (++served === setUnderLoad) underLoad.resolve();
        send();
      });
    };
    for (let streams = 0; streams < 20; streams++) send();
    await underLoad.promise;
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    session.destroy();
  });
});

const NOTICE = frame(FRAME.goaway, 0, 0, Buffer.from("7fffffff00000000", "hex"));
/** The length of a body that is larger than the buffers of the system. */
const BODY_BYTES = 32 * 1024 * 1024;

async function serveByNode() {
  const accepted = Promise.withResolvers<[Http2Session, Socket]>();
  const http2 = createHttp2((_request, response) => response.end(Buffer.alloc(BODY_BYTES)));
  const server = createServer((socket) => {
    http2.once("session", (session: Http2Session) => accepted.resolve([session, socket]));
    http2.emit("connection", socket);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const peer = await dialHttp2(url, [4, GREATEST]);
  const [session, socket] = await accepted.promise;
  onTestFinished(() => void socket.destroy());
  return { peer, session, socket };
}

/**
 * Frames are written directly to the socket below Node's HTTP/2 session. If such a frame were written in the middle of another frame, Node
 * would abort the process.
 */
describe("below Node's session", () => {
  test("a frame reaches the client between those of Node", async () => {
    const { peer, session, socket } = await serveByNode();
    writeBetweenFrames(session, socket, NOTICE);
    await peer.take(isGoaway);
  });

  test("no frame is put between bytes that wait for the client", async () => {
    const { peer, session, socket } = await serveByNode();
    const window = Buffer.alloc(4);
    window.writeUInt32BE(2 ** 30);
    peer.send(frame(FRAME.window, 0, 0, window));
    peer.send(frame(FRAME.headers, END_HEADERS | END_STREAM, 1, requestBlock("GET", "/")));
    await peer.take(({ type }) => type === FRAME.headers);
    peer.pause();
    const { _handle: handle } = socket as Socket & { readonly _handle: { readonly writeQueueSize: number } };
    await until(async () => expect(handle.writeQueueSize).toBeGreaterThan(0));
    writeBetweenFrames(session, socket, NOTICE);
    peer.resume();
    await peer.take(({ type, flags }) => type === FRAME.data && (flags & END_STREAM) !== 0);
    expect(peer.frames.filter(isGoaway)).toEqual([]);
  });
});
