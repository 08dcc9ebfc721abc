/** Bodies that arrive in unusual ways: already read by middleware, compressed, or aborted. */
import { buffer } from "node:stream/consumers";
import { gzipSync } from "node:zlib";
import { createRegistry } from "@bufbuild/protobuf";
import { Int64ValueSchema } from "@bufbuild/protobuf/wkt";
import Express from "express";
import Fastify from "fastify";
import { describe, expect, onTestFinished, test } from "vitest";
import {
  createFetchHandler,
  createHttpHandler,
  type Failure,
  type NodeHandler,
  type NodeRequest,
  statusEncoder,
} from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { EverythingSchema } from "./gen/rich/v1/rich_pb.ts";
import { richRoutes } from "./support/rich-service.ts";
import { openFetch, openHttp1, openHttp2, type TestRequest } from "./support/servers.ts";

const options = { routes: richRoutes, tables: [RichServiceRoutes] };
const json = { "content-type": "application/json" };

/**
 * Returns a handler behind middleware that reads the body, as body parsers do. `keep` decides what the middleware stores as `request.body`.
 */
const readBefore =
  (keep: (body: Buffer) => unknown): NodeHandler =>
  (request, response) => {
    const handler = createHttpHandler(options);
    void buffer(request).then((body) => {
      Object.assign(request, { body: keep(body) });
      handler(request, response);
    });
  };

describe("under Fastify, whose default parser reads the body,", () => {
  const post = async (mount: (raw: NodeRequest, body: unknown) => NodeRequest) => {
    const app = Fastify();
    const handler = createHttpHandler(options);
    app.post("/v1/echo", (request, reply) => {
      reply.hijack();
      handler(mount(request.raw, request.body), reply.raw);
    });
    try {
      const url = await app.listen();
      const response = await fetch(`${url}/v1/echo`, { method: "POST", headers: json, body: '{"int32Value":1}' });
      return [response.status, await response.json()];
    } finally {
      await app.close();
    }
  };

  test("a handler responds with 500, and the log says why, once", async () => {
    const warnings: string[] = [];
    const note = ({ name, message }: Error) => name === "HttpHandlerWarning" && warnings.push(message);
    process.on("warning", note);
    onTestFinished(() => void process.off("warning", note));
    const failure = [500, { code: 13, message: "internal error", details: [] }];
    expect(await post((raw) => raw)).toEqual(failure);
    expect(await post((raw) => raw)).toEqual(failure);
    expect(warnings).toEqual([expect.stringContaining("Object.assign(request.raw, { body: request.body })")]);
  });

  test("what the log recommends works", async () => {
    expect(await post((raw, body) => Object.assign(raw, { body }))).toEqual([200, { int32Value: 1 }]);
  });
});

describe.each([
  ["HTTP/1.1", openHttp1],
  ["HTTP/2", openHttp2],
] as const)("a body that middleware has read, over %s,", (_, open) => {
  const post = async (keep: (body: Buffer) => unknown, request: Partial<TestRequest>) => {
    await using listener = await open(readBefore(keep));
    return await listener.fetchRaw({ method: "POST", target: "/v1/echo", headers: json, ...request });
  };

  test.each([
    ["parsed, as by express.json()", (body: Buffer) => JSON.parse(body.toString()) as unknown],
    ["as text", String],
    ["as bytes", (body: Buffer) => body],
  ])("is taken from request.body: %s", async (_name, keep) => {
    const response = await post(keep, { body: '{"stringValue":"é","int32s":[1,2]}' });
    expect([response.status, response.json()]).toEqual([200, { stringValue: "é", int32s: [1, 2] }]);
  });

  test("may be empty", async () => {
    expect((await post(() => ({}), {})).status).toBe(200);
    expect((await post(() => undefined, { body: "" })).status).toBe(200);
  });

  test("and decompressed is not decompressed again", async () => {
    const headers = { ...json, "content-encoding": "gzip" };
    const response = await post(() => ({ int32Value: 7 }), { headers, body: gzipSync("{}") });
    expect([response.status, response.json()]).toEqual([200, { int32Value: 7 }]);
  });

  test("is limited by readMaxBytes", async () => {
    const response = await post(() => ({ stringValue: "x".repeat(5_000_000) }), { body: "{}" });
    expect(response.status).toBe(413);
  });

  test("and lost is an internal error, not an empty message", async () => {
    expect((await post(() => undefined, { body: '{"int32Value":1}' })).status).toBe(500);
    const raw = { target: "/v1/raw", headers: { "content-type": "text/plain" }, body: "bytes" };
    expect((await post(() => ({ parsed: true }), raw)).status).toBe(500);
    expect((await post((body) => body, raw)).text).toBe("bytes");
  });

  test("as text is lost if it was none", async () => {
    const raw = { target: "/v1/raw", headers: { "content-type": "image/png" }, body: Buffer.from([0xff, 0x00]) };
    expect((await post(String, raw)).status).toBe(500);
    expect((await post(String, { ...raw, body: "é" })).text).toBe("é");
  });
});

describe("a form that Express has parsed", () => {
  const post = async (extended: boolean, body: string) => {
    const app = Express().use(Express.urlencoded({ extended }), createHttpHandler({ ...options, formPosts: true }));
    await using listener = await openHttp1(app as unknown as NodeHandler);
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const response = await listener.fetchRaw({ method: "POST", target: "/v1/echo", headers, body });
    return [response.status, response.json()];
  };

  test.each([false, true])("is the message, extended: %s", async (extended) => {
    const form = "stringValue=a+b%26%C3%A9&int64Value=9007199254740993&strings=x&strings=&nested.name=n";
    const message = { stringValue: "a b&é", int64Value: "9007199254740993", strings: ["x", ""], nested: { name: "n" } };
    expect(await post(extended, form)).toEqual([200, message]);
    expect(await post(extended, "stringMap[a]=1&stringMap[b]=2")).toEqual([200, { stringMap: { a: "1", b: "2" } }]);
    expect(await post(extended, "int32Value=x")).toEqual([400, expect.objectContaining({ code: 3 })]);
    expect(await post(extended, "")).toEqual([200, {}]);
  });
});

test("a 64-bit integer in an Any is exact, also as a number", async () => {
  const jsonOptions = { registry: createRegistry(EverythingSchema, Int64ValueSchema) };
  const listener = openFetch(createFetchHandler({ ...options, jsonOptions }));
  const everything = "type.googleapis.com/rich.v1.Everything";
  const wrapper = "type.googleapis.com/google.protobuf.Int64Value";
  const body = `{"any":{"@type":"${everything}","int64s":[9007199254740993],
    "any":{"@type":"${wrapper}","value":9007199254740995}}}`;
  const response = await listener.fetchRaw({ method: "POST", target: "/v1/echo", headers: json, body });
  const inner = { "@type": wrapper, value: "9007199254740995" };
  expect(response.json()).toEqual({ any: { "@type": everything, int64s: ["9007199254740993"], any: inner } });
});

describe("by default", () => {
  test("a body is limited to 4 MiB, compressed or not", async () => {
    await using listener = await openHttp1(createHttpHandler(options));
    const post = (body: string | Buffer, encoding?: string) =>
      listener.fetchRaw({
        method: "POST",
        target: "/v1/echo",
        headers: encoding === undefined ? json : { ...json, "content-encoding": encoding },
        body,
      });
    const text = (length: number) => `{"stringValue":"${"x".repeat(length)}"}`;
    expect((await post(text(4_000_000))).status).toBe(200);
    const varied = Array.from({ length: 500_000 }, (_, i) => i * 7_919)
      .join()
      .slice(0, 4_000_000);
    expect((await post(gzipSync(`{"stringValue":"${varied}"}`), "gzip")).status).toBe(200);
    expect((await post(text(4_194_304))).status).toBe(413);
    expect((await post(gzipSync(text(60_000_000)), "gzip")).status).toBe(413);
  });
});

describe("a broken body is a client error:", () => {
  const seen: Failure[] = [];
  const failureEncoder: typeof statusEncoder = (failure, context) => {
    seen.push(failure);
    return statusEncoder(failure, context);
  };

  test.each([
    ["not gzip", Buffer.from("{}")],
    ["truncated gzip", gzipSync('{"int32Value":1}').subarray(0, 20)],
    ["gzip with a wrong checksum", Buffer.concat([gzipSync("{}").subarray(0, -8), Buffer.alloc(8)])],
    ["gzip of no JSON", gzipSync("{")],
  ])("%s", async (_, body) => {
    seen.length = 0;
    await using listener = await openHttp1(createHttpHandler({ ...options, failureEncoder }));
    const headers = { ...json, "content-encoding": "gzip" };
    expect((await listener.fetchRaw({ method: "POST", target: "/v1/echo", headers, body })).status).toBe(400);
    expect(seen.map(({ kind }) => kind)).toEqual(["bad_request"]);
  });

  test("a fetch body that fails", async () => {
    seen.length = 0;
    const handler = createFetchHandler({ ...options, failureEncoder });
    const body = new ReadableStream({ pull: (controller) => controller.error(new TypeError("terminated")) });
    const init = { method: "POST", headers: json, body, duplex: "half" as const };
    const response = await handler(new Request("http://localhost/v1/echo", init));
    expect([response.status, seen.map(({ kind }) => kind)]).toEqual([400, ["bad_request"]]);
  });
});
