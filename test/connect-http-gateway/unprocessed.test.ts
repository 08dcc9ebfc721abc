/** Calls that a server has certainly not processed are sent again, and other calls never. */
import { once } from "node:events";
import { constants, createServer, type ServerHttp2Session, type ServerHttp2Stream } from "node:http2";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code } from "@connectrpc/connect";
import { createAsyncIterable } from "@connectrpc/connect/protocol";
import { expect, onTestFinished, test } from "vitest";
import { envelope } from "../../src/connect-http-gateway/grpc-call.ts";
import { createGrpcUpstream } from "../../src/connect-http-gateway/grpc-transport.ts";
import { parseArguments } from "../../src/connect-http-gateway/index.ts";
import { createUpstream } from "../../src/connect-http-gateway/upstream.ts";
import { SessionPool } from "../../src/platform/http2/session-pool.ts";
import { ItemSchema, RelayService } from "../connect-http-routes/gen/relay/v1/relay_pb.ts";
import { until } from "../support/until.ts";

const { NGHTTP2_CANCEL, NGHTTP2_ENHANCE_YOUR_CALM, NGHTTP2_REFUSED_STREAM } = constants;
const REPLY = envelope(toBinary(ItemSchema, create(ItemSchema, { name: "served" })));

function respond(stream: ServerHttp2Stream): void {
  stream.respond({ ":status": 200, "content-type": "application/grpc+proto" }, { waitForTrailers: true });
  stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": "0" }));
  stream.end(REPLY);
}

/** Starts a server whose streams are handled by the test, by their number from 1. */
async function start(
  serve: (stream: ServerHttp2Stream, count: number, contentType: string) => void,
  maxConcurrentStreams = 100,
) {
  const sessions: ServerHttp2Session[] = [];
  let count = 0;
  const server = createServer({ settings: { maxConcurrentStreams } });
  server.on("session", (session) => sessions.push(session));
  server.on("stream", (stream: ServerHttp2Stream, headers) => {
    stream.on("error", () => {});
    serve(stream, ++count, headers["content-type"] ?? "");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const pool = new SessionPool([baseUrl], { connections: 1, onFailure: () => {} });
  onTestFinished(() => {
    pool.close();
    server.close();
    for (const session of sessions) session.destroy();
  });
  const transport = createGrpcUpstream({ baseUrl, sessionManager: pool });
  const call = async () => {
    const { message } = await transport.unary(RelayService.method.get, undefined, undefined, undefined, {});
    return message.name;
  };
  return { baseUrl, call, sessions, count: () => count };
}

test("a call that waits for a free stream when the server leaves is sent on another connection", async () => {
  const streams: ServerHttp2Stream[] = [];
  const server = await start((stream, count) => {
    streams.push(stream);
    if (count > 1) respond(stream);
  }, 1);
  const first = server.call();
  await until(async () => expect(streams).toHaveLength(1));
  const waiting = server.call();
  // After one turn of the event loop, the second call waits in the queue of the connection.
  await new Promise(setImmediate);
  const [stream] = streams as [ServerHttp2Stream];
  stream.session?.close();
  respond(stream);
  expect(await Promise.all([first, waiting])).toEqual(["served", "served"]);
  expect(server.sessions).toHaveLength(2);
});

test.each([0, NGHTTP2_ENHANCE_YOUR_CALM])(
  "a call behind the last one that a GOAWAY names is sent on another connection, whatever its code: %i",
  async (code) => {
    const server = await start((stream, count) => {
      if (count === 2) stream.session?.goaway(code, 1);
      else respond(stream);
    });
    expect(await server.call()).toBe("served");
    expect(await server.call()).toBe("served");
    expect(server.sessions).toHaveLength(2);
  },
);

test("a stream that the server closes without a response and without an error fails", async () => {
  const { baseUrl } = await start((stream) => stream.close());
  const sessionManager = new SessionPool([baseUrl], { connections: 1, onFailure: () => {} });
  onTestFinished(() => sessionManager.close());
  const { stream } = createGrpcUpstream({ baseUrl, sessionManager });
  const call = stream(RelayService.method.count, undefined, undefined, undefined, createAsyncIterable([{}]));
  await expect(call).rejects.toThrow("closed without a response");
});

test("a call that the server refuses is sent three times at most", async () => {
  const served = await start((stream, count) => (count < 3 ? stream.close(NGHTTP2_REFUSED_STREAM) : respond(stream)));
  expect(await served.call()).toBe("served");
  const refused = await start((stream) => stream.close(NGHTTP2_REFUSED_STREAM));
  await expect(refused.call()).rejects.toMatchObject({ code: Code.Unavailable, rawMessage: "the connection was lost" });
  expect(refused.count()).toBe(3);
});

test("a call that waits for a free stream ends at its deadline", async () => {
  const { baseUrl, count } = await start(() => {}, 1);
  const sessionManager = new SessionPool([baseUrl], { connections: 1, onFailure: () => {} });
  onTestFinished(() => sessionManager.close());
  const { unary } = createGrpcUpstream({ baseUrl, sessionManager });
  const first = unary(RelayService.method.get, undefined, undefined, undefined, {});
  await until(async () => expect(count()).toBe(1));
  const late = unary(RelayService.method.get, undefined, 10, undefined, {});
  await expect(late).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  sessionManager.close();
  await expect(first).rejects.toMatchObject({ code: Code.Unavailable });
});

test("a call that waits for a connection ends when its client leaves, and at its deadline", async () => {
  const silent = createTcpServer(() => {}).listen(0, "127.0.0.1");
  await once(silent, "listening");
  // The handshake of TLS does not begin.
  const baseUrl = `https://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const sessionManager = new SessionPool([baseUrl], { connections: 1, onFailure: () => {} });
  onTestFinished(() => {
    sessionManager.close();
    silent.close();
  });
  const { unary } = createGrpcUpstream({ baseUrl, sessionManager });
  const leaving = new AbortController();
  const left = unary(RelayService.method.get, leaving.signal, undefined, undefined, {});
  const late = unary(RelayService.method.get, undefined, 10, undefined, {});
  await expect(late).rejects.toMatchObject({ code: Code.DeadlineExceeded });
  leaving.abort();
  await expect(left).rejects.toMatchObject({ code: Code.Canceled });
});

const MESSAGE = toBinary(ItemSchema, create(ItemSchema, { name: "served" }));

/** Responds as gRPC-Web or as Connect. */
function respondBy(type: string, stream: ServerHttp2Stream, isStream: boolean): void {
  stream.respond({ ":status": 200, "content-type": type });
  const trailer = type.includes("grpc-web") ? [0x80, "grpc-status: 0\r\n"] : [2, "{}"];
  const end = envelope(Buffer.from(trailer[1] as string));
  end[0] = trailer[0] as number;
  stream.end(type === "application/proto" && !isStream ? MESSAGE : Buffer.concat([envelope(MESSAGE), end]));
}

test.each(["grpc", "grpc-web", "connect"])(
  "a call and a stream of responses that are refused twice are served by every protocol: %s",
  async (protocol) => {
    for (const isStream of [false, true]) {
      const server = await start((stream, count, type) => {
        if (count < 3) stream.close(NGHTTP2_REFUSED_STREAM);
        else if (protocol === "grpc") respond(stream);
        else respondBy(type, stream, isStream);
      });
      const args = parseArguments(["--upstream", server.baseUrl, "--descriptors", "none", "--protocol", protocol]);
      const { transport, close } = createUpstream(args, () => {});
      onTestFinished(close);
      const { get, count } = RelayService.method;
      const names: string[] = [];
      if (isStream) {
        const { message } = await transport.stream(count, undefined, 5000, undefined, createAsyncIterable([{}]));
        for await (const { name } of message) names.push(name);
      } else names.push((await transport.unary(get, undefined, 5000, undefined, {})).message.name);
      expect(names).toEqual(["served"]);
      expect(server.count()).toBe(3);
    }
  },
);

test.each<[name: string, end: (stream: ServerHttp2Stream) => void]>([
  ["is reset by another code", (stream) => stream.close(NGHTTP2_CANCEL)],
  ["loses its connection", (stream) => stream.session?.destroy()],
  [
    "is refused after its head",
    (stream) => {
      stream.respond({ ":status": 200 });
      stream.write(REPLY, () => stream.close(NGHTTP2_REFUSED_STREAM));
    },
  ],
])("a call that %s may have been processed, and is not sent again", async (_, end) => {
  const server = await start(end);
  await expect(server.call()).rejects.toMatchObject({ code: Code.Unavailable });
  expect(server.count()).toBe(1);
});
