/**
 * The handler of unary calls serves gRPC and gRPC-Web exactly as connect-node does, trailers included, and passes all other requests on
 * to connect-node.
 */
import { once } from "node:events";
import { createServer as createHttp1Server, type IncomingMessage, request as requestHttp1 } from "node:http";
import { connect, createServer, type IncomingHttpHeaders } from "node:http2";
import type { AddressInfo, Server } from "node:net";
import type { Writable } from "node:stream";
import { gunzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, createClient, type Interceptor } from "@connectrpc/connect";
import {
  compressionGzip,
  connectNodeAdapter,
  createGrpcTransport,
  createGrpcWebTransport,
} from "@connectrpc/connect-node";
import { describe, expect, onTestFinished, test } from "vitest";
import { ListSessionsRequestSchema, SessionService } from "../../../gen/auth/v1/session_pb.ts";
import {
  createUnaryHandler,
  type NodeHandler,
  type UnaryHandlerOptions,
} from "../../../src/connect-http-routes/index.ts";
import { MisbehaveRequestSchema, RichService } from "../gen/rich/v1/rich_pb.ts";
import { richRoutes } from "../support/rich-service.ts";

/** Returns whether a time is an integer, because handlers convert it to a BigInt; undefined if there is no time. */
const isWhole = (timeMs: number | undefined) => timeMs && Number.isInteger(timeMs);

const routes = (router: ConnectRouter) => {
  richRoutes(router);
  router.service(SessionService, {
    async listSessions({ pageToken }, context) {
      const { signal } = context;
      if (pageToken === "wait" && !signal.aborted) await new Promise((end) => signal.addEventListener("abort", end));
      signal.throwIfAborted();
      const asked = `${context.requestMethod} ${context.protocolName} ${pageToken} ${isWhole(context.timeoutMs())}`;
      context.responseHeader.append("x-asked", asked);
      context.responseTrailer.append("x-trailer", "a");
      context.responseTrailer.append("x-trailer", "b");
      return { data: { nextPageToken: pageToken.repeat(50) } };
    },
  });
};
const marking: Interceptor = (next) => async (request) => {
  if (request.header.get("x-refuse") !== null) throw new ConnectError("no", Code.PermissionDenied, { "x-why": "rule" });
  const response = await next(request);
  response.header.append("x-mark", request.method.name);
  response.trailer.append("x-mark", "trailer");
  return response;
};
const options = {
  routes,
  interceptors: [marking],
  acceptCompression: [compressionGzip],
  compressMinBytes: 100,
  readMaxBytes: 1000,
  maxTimeoutMs: 60_000,
  requestGate({ requestHeader }) {
    if (requestHeader.get("x-gate") !== null) throw new ConnectError("closed ü", Code.Unauthenticated);
  },
} satisfies Partial<UnaryHandlerOptions>;

const passedOn: NodeHandler = (request, response) => {
  request.resume();
  response.statusCode = 299;
  response.end();
};

const RICH = `/${RichService.typeName}`;
const LIST = `/${SessionService.typeName}/ListSessions`;

type Call = {
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: readonly Uint8Array[];
};
type Reply = { readonly head: IncomingHttpHeaders; readonly trailer: IncomingHttpHeaders; readonly body: Buffer };

function envelope(message: Uint8Array | string, flags = 0, length = Buffer.byteLength(message)): Buffer {
  const prefix = Buffer.alloc(5);
  prefix[0] = flags;
  prefix.writeUInt32BE(length, 1);
  return Buffer.concat([prefix, Buffer.from(message as string)]);
}
const asking = (pageToken: string) =>
  envelope(toBinary(ListSessionsRequestSchema, create(ListSessionsRequestSchema, { pageToken })));
const list = (headers: Readonly<Record<string, string>>, ...body: Uint8Array[]): Call => ({
  path: LIST,
  headers,
  body,
});
const how = (text: string): Call => ({
  path: `${RICH}/Misbehave`,
  body: [envelope(toBinary(MisbehaveRequestSchema, create(MisbehaveRequestSchema, { how: text })))],
});

const served = (type: string): Record<string, Call> => ({
  "headers and trailers": list({}, asking("t")),
  JSON: list({ "content-type": `${type}+json` }, envelope('{"pageToken":"t"}')),
  "JSON that is none": list({ "content-type": `${type}+json` }, envelope("{")),
  "the content type with its codec": list({ "content-type": `${type}+proto` }, asking("t")),
  "no compression, by name": list({ "grpc-encoding": "identity" }, asking("t")),
  "a client that accepts gzip": list({ "grpc-accept-encoding": "identity,deflate,gzip" }, asking("t")),
  "a response that is compressed": list({ "grpc-accept-encoding": "gzip" }, asking("token")),
  "a message in pieces": list({}, asking("t").subarray(0, 3), asking("t").subarray(3)),
  "no message": list({}),
  "an empty message": list({}, envelope("")),
  "two messages": list({}, asking("t"), asking("t")),
  "a message and a half": list({}, asking("t"), asking("t").subarray(0, 6)),
  "an incomplete prefix": list({}, Buffer.from([0, 0])),
  "an incomplete message": list({}, envelope("ab", 0, 10)),
  "a message that says it is too long": list({}, envelope("ab", 0, 2 ** 32 - 1)),
  "a compressed message without a name": list({}, envelope("ab", 1)),
  "a message that is none": list({}, envelope(Buffer.from([255]))),
  "a timeout": list({ "grpc-timeout": "5S" }, asking("t")),
  "a timeout that is not whole milliseconds": list({ "grpc-timeout": "5000001u" }, asking("t")),
  "a timeout that has passed": list({ "grpc-timeout": "0m" }, asking("t")),
  "a timeout that passes": list({ "grpc-timeout": "5m" }, asking("wait")),
  "no timeout": list({ "grpc-timeout": "soon" }, asking("t")),
  "a timeout that is too long": list({ "grpc-timeout": "2M" }, asking("t")),
  "a call that the gate refuses": list({ "x-gate": "1" }, asking("t")),
  "a call that an interceptor refuses": list({ "x-refuse": "1" }, asking("t")),
  "a bug": how("bug"),
  "an error with a detail": how("detail"),
  "an error with an unknown detail": how("unknown detail"),
  "an RPC that is not implemented": { path: `/${SessionService.typeName}/Logout`, body: [envelope("")] },
});

/** Calls with trailers in the request, which a client of gRPC-Web may send. */
const WITH_TRAILERS: Record<string, Call> = {
  "trailers in a request": list({}, asking("t"), envelope("a: b", 128)),
  "trailers before the message": list({}, envelope("", 128), asking("t")),
  "nothing but trailers": list({}, envelope("a: b", 128)),
  "compressed trailers": list({}, asking("t"), envelope("a: b", 129)),
};

const PASSED_ON: Record<string, Call> = {
  "a compressed request": list({ "grpc-encoding": "gzip" }, asking("t")),
  "an unknown compression": list({ "grpc-encoding": "zz" }, asking("t")),
  "gRPC-Web in base64": list({ "content-type": "application/grpc-web-text" }, asking("t")),
  "a compressed request of gRPC-Web": list(
    { "content-type": "application/grpc-web", "grpc-encoding": "gzip" },
    asking("t"),
  ),
  "another codec": list({ "content-type": "application/grpc+thrift" }, asking("t")),
  "another method": list({ ":method": "PUT" }, asking("t")),
};

async function open(handler: NodeHandler, create: (handler: NodeHandler) => Server = createServer): Promise<string> {
  const server = create(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function ask(handler: NodeHandler, { path, headers, body }: Call, type = "application/grpc"): Promise<Reply> {
  const session = connect(await open(handler));
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": type,
    te: "trailers",
    ...headers,
  });
  const chunks: Buffer[] = [];
  let [head, trailer]: IncomingHttpHeaders[] = [{}, {}];
  stream.on("response", (fields) => {
    head = fields;
  });
  stream.on("trailers", (fields) => {
    trailer = fields;
  });
  stream.on("data", (chunk: Buffer) => chunks.push(chunk));
  await send(stream, body);
  await once(stream, "close");
  const { date: _, ...others } = head ?? {};
  return { head: others, trailer: trailer ?? {}, body: Buffer.concat(chunks) };
}

async function askHttp1(handler: NodeHandler, { path, headers, body }: Call, type: string): Promise<Reply> {
  const origin = await open(handler, createHttp1Server);
  const call = requestHttp1(`${origin}${path}`, {
    method: "POST",
    agent: false,
    headers: { "content-type": type, ...headers },
  });
  const [[response]] = (await Promise.all([once(call, "response"), send(call, body)])) as unknown as [
    [IncomingMessage],
  ];
  const { date: _, ...others } = response.headers;
  const chunks = await response.toArray();
  return { head: { ":status": String(response.statusCode), ...others }, trailer: {}, body: Buffer.concat(chunks) };
}

/** Sends a body. Each piece is a frame. */
async function send(stream: Writable, body: readonly Uint8Array[]): Promise<void> {
  for (const piece of body) {
    stream.write(piece);
    await new Promise(setImmediate);
  }
  stream.end();
}

describe.each([
  ["gRPC", "application/grpc", ask, {}],
  ["gRPC-Web over HTTP/2", "application/grpc-web", ask, WITH_TRAILERS],
  ["gRPC-Web over HTTP/1.1", "application/grpc-web", askHttp1, WITH_TRAILERS],
] as const)("%s", (_, type, askBy, others) => {
  test.each(Object.entries({ ...served(type), ...others }))(
    "responds as connect-node does: %s",
    async (_name, call) => {
      const reply = await askBy(createUnaryHandler({ ...options, fallback: passedOn }), call, type);
      expect(String(reply.head[":status"])).toBe("200");
      expect(reply).toEqual(await askBy(connectNodeAdapter({ ...options }) as NodeHandler, call, type));
    },
  );
});

test.each(Object.entries(PASSED_ON))("leaves to the fallback: %s", async (_, call) => {
  const reply = await ask(createUnaryHandler({ ...options, fallback: passedOn }), call);
  expect(reply.head[":status"]).toBe(299);
});

test("leaves gRPC over HTTP/1.1 to the fallback", async () => {
  const reply = await askHttp1(
    createUnaryHandler({ ...options, fallback: passedOn }),
    list({}, asking("t")),
    "application/grpc",
  );
  expect(reply.head[":status"]).toBe("299");
});

test("half of a character in the text of an error is no fault of the service", async () => {
  const call = list({ "content-type": "application/grpc+json" }, envelope(String.raw`"\ud800"`));
  const { head, trailer } = await ask(createUnaryHandler({ ...options, fallback: passedOn }), call);
  expect([head[":status"], trailer["grpc-status"]]).toEqual([200, String(Code.InvalidArgument)]);
});

test("a message that is too long is refused as soon as its bytes are too many", async () => {
  const handler = createUnaryHandler({ ...options, fallback: passedOn });
  const { trailer } = await ask(handler, list({}, envelope("x".repeat(1001))));
  expect(trailer["grpc-status"]).toBe(String(Code.ResourceExhausted));
});

test("a long response is compressed as the client accepts it", async () => {
  const call = list({ "grpc-accept-encoding": "gzip" }, asking("token"));
  const { head, body } = await ask(createUnaryHandler({ ...options, fallback: passedOn }), call);
  expect([head["grpc-encoding"], body[0]]).toEqual(["gzip", 1]);
  expect(gunzipSync(body.subarray(5)).toString()).toContain("token".repeat(50));
});

test("errors are translated, and every response has the headers of the hook", async () => {
  const own: Partial<UnaryHandlerOptions> = {
    translateError: ({ code }) =>
      code === Code.Unauthenticated ? new ConnectError("ours", Code.NotFound, { "x-ours": "yes" }) : undefined,
    onResponse: (headers, { url }) => headers.set("x-url", url ?? ""),
  };
  const handler = createUnaryHandler({ ...options, ...own, fallback: passedOn });
  const refused = await ask(handler, list({ "x-gate": "1" }, asking("t")));
  expect(refused.head["x-url"]).toBe(LIST);
  expect(refused.trailer).toMatchObject({ "grpc-status": "5", "grpc-message": "ours", "x-ours": "yes" });
  expect((await ask(handler, list({}, asking("t")))).trailer).toMatchObject({ "grpc-status": "0" });
});

test.each([
  ["gRPC", createServer, createGrpcTransport],
  ["gRPC-Web", createHttp1Server, (o: { baseUrl: string }) => createGrpcWebTransport({ ...o, httpVersion: "1.1" })],
] as const)("a client of connect-node calls it by %s", async (_, create, createTransport) => {
  const baseUrl = await open(createUnaryHandler({ ...options, fallback: passedOn }), create);
  const client = createClient(SessionService, createTransport({ baseUrl }));
  expect((await client.listSessions({ pageToken: "t" })).data?.nextPageToken).toBe("t".repeat(50));
  await expect(client.listSessions({ pageToken: "wait" }, { timeoutMs: 20 })).rejects.toMatchObject({
    code: Code.DeadlineExceeded,
  });
});
