/** The handler of unary calls responds as connect-node does, and passes all other requests on to connect-node. */
import { once } from "node:events";
import { connect } from "node:http2";
import { connect as connectTcp } from "node:net";
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { create, toBinary } from "@bufbuild/protobuf";
import { Code, ConnectError, type ConnectRouter, type Interceptor } from "@connectrpc/connect";
import { compressionGzip, connectNodeAdapter } from "@connectrpc/connect-node";
import { describe, expect, test } from "vitest";
import { ListSessionsRequestSchema, SessionService } from "../../../gen/auth/v1/session_pb.ts";
import {
  createUnaryHandler,
  type NodeHandler,
  type UnaryHandlerOptions,
} from "../../../src/connect-http-routes/index.ts";
import { MisbehaveRequestSchema, RichService } from "../gen/rich/v1/rich_pb.ts";
import { richRoutes } from "../support/rich-service.ts";
import { type Listener, openHttp1, openHttp2, type TestRequest, type TestResponse } from "../support/servers.ts";

const routes = (router: ConnectRouter) => {
  richRoutes(router);
  router.service(SessionService, {
    listSessions({ pageToken }, context) {
      context.responseHeader.append("x-asked", `${context.requestMethod} ${context.protocolName} ${pageToken}`);
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
    if (requestHeader.get("x-gate") !== null) throw new ConnectError("closed", Code.Unauthenticated);
  },
} satisfies Partial<UnaryHandlerOptions>;

/** The fallback for requests that the handler does not serve. It responds with status 299, by which tests recognize these requests. */
const passedOn: NodeHandler = (request, response) => {
  request.resume();
  response.statusCode = 299;
  response.end();
};

const RICH = `/${RichService.typeName}`;
const LIST = `/${SessionService.typeName}/ListSessions`;
const json = { "content-type": "application/json" };
const proto = { "content-type": "application/proto" };
const post = (target: string, headers: Record<string, string>, body: string | Uint8Array = "{}"): TestRequest => ({
  method: "POST",
  target,
  headers,
  body,
});
const get = (query: string, headers: Record<string, string> = {}) => ({ target: `${LIST}?${query}`, headers });
const how = (text: string) => post(`${RICH}/Misbehave`, json, JSON.stringify({ how: text }));
const asked = toBinary(ListSessionsRequestSchema, create(ListSessionsRequestSchema, { pageToken: "t" }));

const SERVED: Record<string, TestRequest> = {
  JSON: post(`${RICH}/Echo`, json, '{"int32Value":7,"doubleValue":-0}'),
  "JSON in UTF-8, by name": post(`${RICH}/Echo`, { "content-type": "Application/JSON; charset=utf-8" }, "{}"),
  "a query beside a body": post(`${LIST}?a=b`, json, "{}"),
  binary: post(
    `${RICH}/Misbehave`,
    proto,
    toBinary(MisbehaveRequestSchema, create(MisbehaveRequestSchema, { how: "x" })),
  ),
  "headers and trailers": post(LIST, json, '{"pageToken":"t"}'),
  "a compressed request": post(LIST, { ...json, "content-encoding": "gzip" }, gzipSync('{"pageToken":"t"}')),
  "a response that is long enough to be compressed": post(
    LIST,
    { ...json, "accept-encoding": "br, gzip" },
    '{"pageToken":"token"}',
  ),
  "a response as compressed as its request": post(
    LIST,
    { ...json, "content-encoding": "gzip" },
    gzipSync('{"pageToken":"token"}'),
  ),
  "an unknown compression": post(LIST, { ...json, "content-encoding": "zz" }),
  "no gzip": post(LIST, { ...json, "content-encoding": "gzip" }),
  "no JSON": post(LIST, json, "{"),
  "no body": post(LIST, json, ""),
  "a field of another type": post(LIST, json, '{"pageToken":1}'),
  "no message": post(LIST, proto, new Uint8Array([255])),
  "a timeout": post(LIST, { ...json, "connect-timeout-ms": "5000" }),
  "no timeout": post(LIST, { ...json, "connect-timeout-ms": "soon" }),
  "a timeout that is too long": post(LIST, { ...json, "connect-timeout-ms": "60001" }),
  "another version of the protocol": post(LIST, { ...json, "connect-protocol-version": "2" }),
  "a call that the gate refuses": post(LIST, { ...json, "x-gate": "1" }, "{"),
  "a call that an interceptor refuses": post(LIST, { ...json, "x-refuse": "1" }),
  "a bug": how("bug"),
  "an error with a detail": how("detail"),
  "an error with an unknown detail": how("unknown detail"),
  "a status of HTTP, which RPCs ignore": how("created"),
  "an RPC that is not implemented": post(`/${SessionService.typeName}/Logout`, json),
  "a GET with JSON": get(`connect=v1&encoding=json&message=${encodeURIComponent('{"pageToken":"ä"}')}`),
  "a GET with base64": get(`encoding=json&base64=1&message=${Buffer.from('{"pageToken":"t"}').toString("base64url")}`),
  "a GET in binary form": get(`encoding=proto&base64=1&message=${Buffer.from(asked).toString("base64url")}`),
  "a compressed GET": get(`encoding=json&base64=1&compression=gzip&message=${gzipSync("{}").toString("base64url")}`),
  "a GET of an unknown compression": get("encoding=json&compression=zz&message={}"),
  "a GET without a message": get("encoding=json"),
};

const PASSED_ON: Record<string, TestRequest> = {
  "another path": post(`${RICH}/Nothing/`, json),
  "a stream": post(`${RICH}/Count`, { "content-type": "application/connect+json" }),
  "a stream's content type": post(LIST, { "content-type": "application/connect+json" }),
  "gRPC-Web in base64": post(LIST, { "content-type": "application/grpc-web-text" }, "AAAAAAA="),
  "another content type": post(LIST, { "content-type": "text/plain" }),
  "no content type": post(LIST, {}),
  "another method": { method: "PUT", target: LIST, headers: json, body: "{}" },
  HEAD: { method: "HEAD", target: `${LIST}?encoding=json&message={}` },
  "a GET of an RPC that may have effects": { target: `${RICH}/Echo?encoding=json&message={}` },
  "a GET of an unknown encoding": get("encoding=xml&message={}"),
  "a GET with a content type": get("encoding=json&message={}", { "content-type": "text/plain" }),
};

/** Returns the response that a client sees, without the parts that depend on the time. */
function seen({ status, headers, text }: TestResponse) {
  const { date: _, ...others } = Object.fromEntries(headers);
  return { status, headers: others, text };
}

describe.each([
  ["HTTP/1.1", openHttp1],
  ["HTTP/2", openHttp2],
])("over %s", (_, open: (handler: NodeHandler) => Promise<Listener>) => {
  const theirs = () => open(connectNodeAdapter({ ...options }) as NodeHandler);

  test.each(Object.entries(SERVED))("%s", async (_name, request) => {
    await using expected = await theirs();
    await using actual = await open(createUnaryHandler({ ...options, fallback: passedOn }));
    const response = seen(await actual.fetchRaw(request));
    expect(response.status).not.toBe(299);
    expect(response).toEqual(seen(await expected.fetchRaw(request)));
  });

  test.each(Object.entries(PASSED_ON))("leaves to the fallback: %s", async (_name, request) => {
    await using actual = await open(createUnaryHandler({ ...options, fallback: passedOn }));
    expect((await actual.fetchRaw(request)).status).toBe(299);
  });

  test("takes the body that middleware has read and decompressed", async () => {
    const handler = createUnaryHandler({ ...options, fallback: passedOn });
    await using listener = await open((request, response) => {
      void buffer(request).then(() => {
        Object.assign(request, { body: { pageToken: "t" } });
        handler(request, response);
      });
    });
    const request = post(LIST, { ...json, "content-encoding": "gzip" }, gzipSync("{}"));
    expect((await listener.fetchRaw(request)).headers.get("x-asked")).toEqual(["POST connect t"]);
  });

  // Over HTTP/2 the body has no announced length, so the handler has to count its bytes.
  test("reads no more than readMaxBytes", async () => {
    await using listener = await open(createUnaryHandler({ ...options, fallback: passedOn }));
    const response = await listener.fetchRaw(post(LIST, json, `{"pageToken":"${"x".repeat(1000)}"}`));
    expect([response.status, response.json()]).toMatchObject([429, { code: "resource_exhausted" }]);
  });
});

test("a connection stays open although a body of unknown length was too long", async () => {
  await using listener = await openHttp1(createUnaryHandler({ ...options, fallback: passedOn }));
  const socket = connectTcp(listener.port, "127.0.0.1");
  socket.write(
    `POST ${LIST} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`,
  );
  socket.write(`7d0\r\n${" ".repeat(2000)}\r\n0\r\n\r\n`);
  const [head] = (await once(socket, "data")) as [Buffer];
  expect(head.toString()).toMatch(/^HTTP\/1\.1 429 /);
  expect(head.toString().toLowerCase()).not.toContain("connection: close");
  socket.destroy();
});

async function askHttp1(own: Partial<UnaryHandlerOptions>, request: TestRequest): Promise<TestResponse> {
  await using listener = await openHttp1(createUnaryHandler({ ...options, fallback: passedOn, ...own }));
  return await listener.fetchRaw(request);
}

describe("options", () => {
  test("require the version of the protocol", async () => {
    const own = { requireConnectProtocolHeader: true };
    const requests = [
      post(LIST, json),
      post(LIST, { ...json, "connect-protocol-version": "1" }),
      get("encoding=json&message={}"),
      get("connect=v1&encoding=json&message={}"),
    ];
    const responses = await Promise.all(requests.map((request) => askHttp1(own, request)));
    expect(responses.map(({ status }) => status)).toEqual([400, 200, 400, 200]);
  });

  test("translate errors, and set headers on every response", async () => {
    const own: Partial<UnaryHandlerOptions> = {
      translateError: ({ code }) =>
        code === Code.Unauthenticated ? new ConnectError("ours", Code.NotFound, { "x-ours": "yes" }) : undefined,
      onResponse: (headers, { url }) => headers.set("x-url", url ?? ""),
    };
    const translated = await askHttp1(own, post(LIST, { ...json, "x-gate": "1" }));
    expect([translated.status, translated.json()]).toEqual([404, { code: "not_found", message: "ours" }]);
    expect([translated.headers.get("x-ours"), translated.headers.get("x-url")]).toEqual([["yes"], [LIST]]);
    expect((await askHttp1(own, post(LIST, json, "{"))).json()).toMatchObject({ code: "invalid_argument" });
  });

  test("a hook that throws is a 500 without content", async () => {
    const own = {
      onResponse() {
        throw new Error("secret");
      },
    };
    expect(await askHttp1(own, post(LIST, json))).toMatchObject({ status: 500, text: "" });
  });
});

test.each([`${RICH}/Echo`, `/api${RICH}/Echo`, `/apis${RICH}/Echo`, "/api"])(
  "below a prefix, %s is served if connect-node serves it",
  async (target) => {
    const below = { routes, requestPathPrefix: "/api" };
    await using node = await openHttp1(connectNodeAdapter(below));
    await using own = await openHttp1(createUnaryHandler({ ...below, fallback: passedOn }));
    const request = post(target, json);
    const isServed = (await node.fetchRaw(request)).status === 200;
    expect((await own.fetchRaw(request)).status).toBe(isServed ? 200 : 299);
    expect(isServed).toBe(target === `/api${RICH}/Echo`);
  },
);

test("a prefix that no path can have is refused", () => {
  const broken = { routes, requestPathPrefix: "api/", fallback: passedOn };
  expect(() => createUnaryHandler(broken)).toThrow("requestPathPrefix must start with /");
});

test("a body that comes with its head is taken without listening to the stream", async () => {
  const listening: number[] = [];
  const onResponse: UnaryHandlerOptions["onResponse"] = (_, request) => listening.push(request.listenerCount("data"));
  const response = await askHttp1({ onResponse }, post(LIST, json, '{"pageToken":"t"}'));
  expect([response.status, listening]).toEqual([200, [0]]);
});

test("a message in a query that is not base64 is the caller's fault", async () => {
  const response = await askHttp1({}, get("encoding=json&base64=1&message=%25"));
  expect([response.status, response.json()]).toMatchObject([400, { code: "invalid_argument" }]);
});

test("a call whose client leaves is aborted", async () => {
  const { promise: aborted, resolve } = Promise.withResolvers<unknown>();
  const started = Promise.withResolvers<void>();
  const handler = createUnaryHandler({
    fallback: passedOn,
    routes: ({ service }) =>
      void service(RichService, {
        async echo(_request, { signal }) {
          signal.addEventListener("abort", () => resolve(signal.reason));
          started.resolve();
          await aborted;
          return {};
        },
      }),
  });
  await using listener = await openHttp2(handler);
  const session = connect(listener.origin);
  const stream = session.request({ ":method": "POST", ":path": `${RICH}/Echo`, ...json });
  stream.on("error", () => {});
  stream.end("{}");
  await started.promise;
  session.destroy();
  expect(await aborted).toMatchObject({ code: Code.Canceled });
});
