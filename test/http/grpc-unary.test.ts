/** The handler of unary calls responds to gRPC as connect-node does, trailers included, and leaves what it does not serve to it. */
import { once } from "node:events";
import { connect, createServer, type IncomingHttpHeaders } from "node:http2";
import type { AddressInfo } from "node:net";
import { gunzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, createClient, type Interceptor } from "@connectrpc/connect";
import { compressionGzip, connectNodeAdapter, createGrpcTransport } from "@connectrpc/connect-node";
import { expect, onTestFinished, test } from "vitest";
import { ListSessionsRequestSchema, SessionService } from "../../gen/auth/v1/session_pb.ts";
import { createUnaryHandler, type NodeHandler, type UnaryHandlerOptions } from "../../src/http/index.ts";
import { MisbehaveRequestSchema, RichService } from "./gen/rich/v1/rich_pb.ts";
import { richRoutes } from "./support/rich-service.ts";

const routes = (router: ConnectRouter) => {
  richRoutes(router);
  router.service(SessionService, {
    async listSessions({ pageToken }, context) {
      const { signal } = context;
      if (pageToken === "wait" && !signal.aborted) await new Promise((end) => signal.addEventListener("abort", end));
      signal.throwIfAborted();
      const asked = `${context.requestMethod} ${context.protocolName} ${pageToken} ${context.timeoutMs() !== undefined}`;
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

const SERVED: Record<string, Call> = {
  "headers and trailers": list({}, asking("t")),
  JSON: list({ "content-type": "application/grpc+json" }, envelope('{"pageToken":"t"}')),
  "JSON that is none": list({ "content-type": "application/grpc+json" }, envelope("{")),
  "the content type with its codec": list({ "content-type": "application/grpc+proto" }, asking("t")),
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
};

const PASSED_ON: Record<string, Call> = {
  "a compressed request": list({ "grpc-encoding": "gzip" }, asking("t")),
  "an unknown compression": list({ "grpc-encoding": "zz" }, asking("t")),
  "gRPC-Web": list({ "content-type": "application/grpc-web" }, asking("t")),
  "another codec": list({ "content-type": "application/grpc+thrift" }, asking("t")),
  "another method": list({ ":method": "PUT" }, asking("t")),
};

async function open(handler: NodeHandler): Promise<string> {
  const server = createServer(handler).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function ask(handler: NodeHandler, { path, headers, body }: Call): Promise<Reply> {
  const session = connect(await open(handler));
  onTestFinished(() => session.destroy());
  const stream = session.request({
    ":method": "POST",
    ":path": path,
    "content-type": "application/grpc",
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
  for (const piece of body) {
    stream.write(piece);
    // Each piece is a frame.
    await new Promise(setImmediate);
  }
  stream.end();
  await once(stream, "close");
  const { date: _, ...others } = head ?? {};
  return { head: others, trailer: trailer ?? {}, body: Buffer.concat(chunks) };
}

test.each(Object.entries(SERVED))("responds as connect-node does: %s", async (_, call) => {
  const reply = await ask(createUnaryHandler({ ...options, fallback: passedOn }), call);
  expect(reply.head[":status"]).toBe(200);
  expect(reply).toEqual(await ask(connectNodeAdapter({ ...options }) as NodeHandler, call));
});

test.each(Object.entries(PASSED_ON))("leaves to the fallback: %s", async (_, call) => {
  const reply = await ask(createUnaryHandler({ ...options, fallback: passedOn }), call);
  expect(reply.head[":status"]).toBe(299);
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

test("a client of connect-node calls it", async () => {
  const baseUrl = await open(createUnaryHandler({ ...options, fallback: passedOn }));
  const client = createClient(SessionService, createGrpcTransport({ baseUrl }));
  expect((await client.listSessions({ pageToken: "t" })).data?.nextPageToken).toBe("t".repeat(50));
  await expect(client.listSessions({ pageToken: "wait" }, { timeoutMs: 20 })).rejects.toMatchObject({
    code: Code.DeadlineExceeded,
  });
});
