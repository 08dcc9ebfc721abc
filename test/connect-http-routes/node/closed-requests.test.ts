/** The result of reading the body of a request whose client disconnects. */
import { once } from "node:events";
import { createServer } from "node:http";
import { constants, createServer as createHttp2Server } from "node:http2";
import { type AddressInfo, connect, type Server, type Socket } from "node:net";
import { Code } from "@connectrpc/connect";
import { expect, onTestFinished, test } from "vitest";
import { NodeExchange, type NodeRequest } from "../../../src/connect-http-routes/node/node-exchange.ts";
import type { NodeHandler } from "../../../src/connect-http-routes/node/node-handler.ts";
import { END_HEADERS, FRAME, frame, requestBlock } from "../../attacks/frames.ts";
import { dialHttp2 } from "../../support/http2-peer.ts";

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR } = constants;

async function listen(server: Server): Promise<number> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const sockets: Socket[] = [];
  server.on("connection", (socket: Socket) => sockets.push(socket));
  onTestFinished(() => {
    server.close();
    for (const socket of sockets) socket.destroy();
  });
  return (server.address() as AddressInfo).port;
}

async function overHttp1(handler: NodeHandler): Promise<() => void> {
  const port = await listen(createServer(handler));
  const socket = connect(port, "127.0.0.1");
  socket.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nab");
  return () => void socket.destroy();
}

/**
 * Returns a function that starts a client. The client resets its stream with this code. It writes HTTP/2 frames itself, because Node's
 * client would end the body before the reset.
 */
const resetBy = (code: number) => async (handler: NodeHandler) => {
  const peer = await dialHttp2(`http://127.0.0.1:${await listen(createHttp2Server(handler))}`);
  peer.send(
    frame(FRAME.headers, END_HEADERS, 1, requestBlock("POST", "/")),
    frame(FRAME.data, 0, 1, Buffer.from("ab")),
  );
  const reset = Buffer.alloc(4);
  reset.writeUInt32BE(code);
  return () => peer.send(frame(FRAME.reset, 0, 1, reset));
};

const CLIENTS: readonly [name: string, start: (handler: NodeHandler) => Promise<() => void>][] = [
  ["a connection that is closed", overHttp1],
  ["a stream that is reset with CANCEL", resetBy(NGHTTP2_CANCEL)],
  ["a stream that is reset with NO_ERROR", resetBy(NGHTTP2_NO_ERROR)],
];

/** Serves one request, and resolves with the result of `read`, or with the error that it threw. */
async function outcomeOf(
  start: (handler: NodeHandler) => Promise<() => void>,
  read: (exchange: NodeExchange, request: NodeRequest, giveUp: () => void) => Promise<unknown>,
): Promise<unknown> {
  const { promise, resolve } = Promise.withResolvers<[NodeExchange, NodeRequest]>();
  const giveUp = await start((request, response) =>
    resolve([new NodeExchange(request, response, "/", "POST"), request]),
  );
  const [exchange, request] = await promise;
  return read(exchange, request, giveUp).catch((error: unknown) => error);
}

test.each(CLIENTS)("the body of %s before it is read is refused", async (_, start) => {
  const outcome = await outcomeOf(start, async (exchange, request, giveUp) => {
    // An HTTP/1.1 request emits an error when its client disconnects. Without a listener the error would end the process.
    request.on("error", () => {});
    const closed = new Promise((resolve) => request.once("close", resolve));
    giveUp();
    await closed;
    return exchange.read(100, true);
  });
  expect(outcome).toMatchObject({ code: Code.Canceled });
});

test.each(CLIENTS)("the body of %s while it is read is refused", async (_, start) => {
  const outcome = await outcomeOf(start, (exchange, request, giveUp) => {
    const reading = exchange.read(100, true) as Promise<Uint8Array>;
    if (request.readableLength > 0) giveUp();
    else request.once("data", giveUp);
    return reading;
  });
  expect(outcome).toMatchObject({ code: Code.Canceled });
});
