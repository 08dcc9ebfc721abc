/** Clients that cancel calls do not harm those of others, whatever the upstream allows a connection. */
import { once } from "node:events";
import { createServer, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createListener, type Socket } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { expect, onTestFinished, test } from "vitest";
import { envelope } from "../../src/connect-http-gateway/grpc-call.ts";
import { createGrpcUpstream } from "../../src/connect-http-gateway/index.ts";
import { MAX_RESETS } from "../../src/platform/http2/client-connection.ts";
import { SessionPool } from "../../src/platform/http2/session-pool.ts";
import { ItemSchema, RelayService } from "../connect-http-routes/gen/relay/v1/relay_pb.ts";
import { until } from "../support/until.ts";

const REPLY = envelope(toBinary(ItemSchema, create(ItemSchema, { name: "served" })));

function respond(stream: ServerHttp2Stream): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(REPLY);
}

/**
 * Starts a server with the defaults of Node. Calls with the header `hold` get no response yet.
 *
 * @param refuse what is done with each connection beyond the first two. Default: they are served
 */
async function start(refuse?: (socket: Socket) => void) {
  const sessions = new Set<ServerHttp2Session>();
  const held = new Set<ServerHttp2Stream>();
  const resets = new Map<ServerHttp2Stream["session"], number>();
  let opened = 0;
  const server = createServer();
  server.on("session", (session) => {
    opened++;
    sessions.add(session);
    session.on("error", () => {}).once("close", () => sessions.delete(session));
  });
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    const { session } = stream;
    stream.on("error", () => {});
    if (headers.hold === undefined) return respond(stream);
    held.add(stream);
    stream.once("close", () => {
      held.delete(stream);
      if (stream.rstCode !== 0) resets.set(session, (resets.get(session) ?? 0) + 1);
    });
  });
  const sockets = new Set<Socket>();
  const listener = createListener((socket) => {
    sockets.add(socket);
    if (refuse !== undefined && sockets.size > 2) refuse(socket);
    else server.emit("connection", socket);
  });
  listener.listen(0, "127.0.0.1");
  await once(listener, "listening");
  const baseUrl = `http://127.0.0.1:${(listener.address() as AddressInfo).port}`;
  const sessionManager = new SessionPool([baseUrl], { connections: 2, onFailure: () => {} });
  onTestFinished(() => {
    sessionManager.close();
    listener.close();
    for (const socket of sockets) socket.destroy();
  });
  const transport = createGrpcUpstream({ baseUrl, sessionManager });
  const call = async (header: [string, string][] = [], signal?: AbortSignal) => {
    const { message } = await transport.unary(RelayService.method.get, signal, undefined, header, {});
    return message.name;
  };
  return { call, held, resets, opened: () => opened, isOver: () => sessions.size === 0 };
}

const HOLD: [string, string][] = [["hold", "1"]];
/** How many calls of others are under way. */
const HELD = 20;

test.each([
  ["a hundred after another", 30, 100],
  ["all at once", 1, 3000],
])(
  "3,000 cancelled calls, %s, harm no other call, and no connection resets more than servers allow",
  async (_, waves, size) => {
    const server = await start();
    const others: Promise<string>[] = Array.from({ length: HELD }, () => server.call(HOLD));
    await until(async () => expect(server.held.size).toBe(HELD));
    for (let wave = 0; wave < waves; wave++) {
      const leaving = new AbortController();
      const cancelled = Array.from({ length: size }, () => server.call(HOLD, leaving.signal));
      const outcomes = Promise.allSettled(cancelled);
      await until(async () => expect(server.held.size).toBe(HELD + size));
      leaving.abort();
      others.push(server.call());
      expect((await outcomes).filter(({ status }) => status === "fulfilled")).toHaveLength(0);
      await until(async () => expect(server.held.size).toBe(HELD));
    }
    for (const stream of server.held) respond(stream);
    expect(new Set(await Promise.all(others))).toEqual(new Set(["served"]));
    expect([...server.resets.values()].reduce((sum, count) => sum + count)).toBe(waves * size);
    expect(Math.max(...server.resets.values())).toBeLessThanOrEqual(MAX_RESETS);
  },
);

test.each([
  ["closes", (socket: Socket) => void socket.end()],
  ["resets", (socket: Socket) => void socket.resetAndDestroy()],
  ["ignores", () => {}],
])("an upstream that %s further connections gets all calls on those that it has", async (_, refuse) => {
  const server = await start(refuse);
  const calls = Array.from({ length: 1500 }, () => server.call(HOLD));
  const served = Promise.all(calls);
  await until(async () => expect(server.held.size).toBe(1500));
  for (const stream of server.held) respond(stream);
  expect(new Set(await served)).toEqual(new Set(["served"]));
  expect(await server.call()).toBe("served");
});
