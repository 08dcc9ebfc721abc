/** The gateway in front of a stock gRPC server. */
import { once } from "node:events";
import { get as http1Get, request as http1Request, type IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { createRegistry } from "@bufbuild/protobuf";
import { createGrpcTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createGrpcUpstream } from "../../src/connect-http-gateway/index.ts";
import { createHttpHandler, type ForwardOptions } from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "../connect-http-routes/gen/relay/v1/relay_http.ts";
import { ItemSchema } from "../connect-http-routes/gen/relay/v1/relay_pb.ts";
import { type GrpcServer, startGrpcServer } from "../connect-http-routes/support/grpc-server.ts";
import { type Listener, openHttp1, openHttp2 } from "../connect-http-routes/support/servers.ts";
import { startHoldingProxy } from "../support/holding-proxy.ts";
import { until } from "../support/until.ts";

describe.each([
  ["createGrpcTransport", createGrpcTransport],
  ["createGrpcUpstream", createGrpcUpstream],
])("over %s", (_name, createTransport) => {
  function gatewayTo(port: number, forward: ForwardOptions = {}, ping = {}) {
    return createHttpHandler({
      tables: [RelayServiceRoutes],
      transport: createTransport({ baseUrl: `http://127.0.0.1:${port}`, ...ping }),
      forward,
      trailersAsHeaders: true,
      jsonOptions: { registry: createRegistry(ItemSchema) },
    });
  }

  let server: GrpcServer;
  let gateway: Listener;
  let gateway2: Listener;
  beforeAll(async () => {
    server = await startGrpcServer();
    const handler = gatewayTo(server.port);
    gateway = await openHttp1(handler);
    gateway2 = await openHttp2(handler);
  });
  afterAll(async () => {
    await gateway[Symbol.asyncDispose]();
    await gateway2[Symbol.asyncDispose]();
    await server[Symbol.asyncDispose]();
  });

  const lines = { "content-type": "application/x-ndjson" };
  const get = (target: string, headers: Record<string, string> = {}) => gateway.fetchRaw({ target, headers });
  const linesOf = (text: string) =>
    text
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as unknown);

  describe("the gateway forwards", () => {
    test("unary calls", async () => {
      const response = await get("/v1/items/a/b?number=9007199254740993&tags=x&tags=y");
      expect([response.status, response.json()]).toEqual([
        200,
        { name: "a/b", number: "9007199254740993", tags: ["x", "y"] },
      ]);
    });

    test("server streams", async () => {
      const response = await get("/v1/counts/a?number=3");
      expect(linesOf(response.text)).toEqual([1, 2, 3].map((number) => ({ name: "a", number: `${number}` })));
    });

    test("client streams and uploads", async () => {
      const body = '{"number":1}\n{"number":2}\n';
      const sum = await gateway.fetchRaw({ method: "POST", target: "/v1/sums/a", headers: lines, body });
      expect(sum.json()).toEqual({ sum: "3", messages: 2, name: "a" });
      const upload = await gateway.fetchRaw({ method: "POST", target: "/v1/files/a", body: new Uint8Array(1_000_000) });
      expect(upload.json()).toMatchObject({ sum: "1000000" });
    });

    test("bidirectional streams, full duplex", async () => {
      const session = connect(gateway2.origin);
      const stream = session.request({ ":method": "POST", ":path": "/v1/chats/a", ...lines });
      for (const number of [1, 2, 3]) {
        stream.write(`{"number":${number}}\n`);
        const [data] = (await once(stream, "data")) as [Buffer];
        expect(JSON.parse(data.toString())).toEqual({ name: "a", number: String(number * 2) });
      }
      stream.end();
      await once(stream, "end");
      session.destroy();
    });

    test("errors with details and metadata, before and within a stream", async () => {
      const unary = await get("/v1/items/a?how=detail");
      expect([unary.status, unary.headers.get("x-trailer"), unary.headers.get("grpc-status")]).toEqual([
        429,
        ["late"],
        undefined,
      ]);
      const detail = { "@type": "type.googleapis.com/relay.v1.Item", name: "detail" };
      expect(unary.json()).toEqual({ code: 8, message: "m", details: [detail] });
      expect((await get("/v1/counts/a?how=fail")).status).toBe(400);
      const within = await get("/v1/counts/a?number=1&how=detail");
      expect([within.status, ...linesOf(within.text)]).toEqual([
        200,
        { name: "a", number: "1" },
        { error: { code: 8, message: "m", details: [detail] } },
      ]);
      const body = '{"number":1}\n{"how":"fail"}\n';
      const sum = await gateway.fetchRaw({ method: "POST", target: "/v1/sums/a", headers: lines, body });
      expect([sum.status, sum.json()]).toMatchObject([400, { code: 9, message: "as asked" }]);
    });

    test("an unreadable request stream as 400, whatever the transport makes of it", async () => {
      const body = '{"number":1}\n{"number":"x"}\n';
      const response = await gateway.fetchRaw({ method: "POST", target: "/v1/sums/a", headers: lines, body });
      expect([response.status, response.json()]).toMatchObject([400, { code: 3 }]);
    });
  });

  describe("metadata", () => {
    test("is made of end-to-end headers, and says where the request comes from", async () => {
      await get("/v1/items/a", {
        authorization: "Bearer t",
        cookie: "c=1",
        "x-custom": "yes",
        "x-data-bin": "AAEC",
        connection: "close, x-hop",
        "x-hop": "1",
        te: "gzip",
        "x-forwarded-for": "6.6.6.6",
        forwarded: "for=6.6.6.6",
        "x-forwarded-client-cert": "Subject=admin",
        "x-forwarded-user": "admin",
        "x-forwarded-port": "1",
        "x-real-ip": "6.6.6.6",
        "grpc-encoding": "snappy",
        "x-latin": "ü",
        host: "api.example",
      });
      const map = server.lastMetadata().getMap();
      expect(map).toMatchObject({
        authorization: "Bearer t",
        cookie: "c=1",
        "x-custom": "yes",
        "x-data-bin": Buffer.from([0, 1, 2]),
        "x-forwarded-for": "127.0.0.1",
        "x-forwarded-host": "api.example",
        "x-forwarded-proto": "http",
      });
      expect(
        Object.keys(map).filter((name) => /^(connection|x-hop|forwarded|x-latin|host|grpc-.*)$/.test(name)),
      ).toEqual([]);
      expect(Object.keys(map).filter((name) => /^x-(forwarded|real)-/.test(name))).toEqual([
        "x-forwarded-for",
        "x-forwarded-host",
        "x-forwarded-proto",
      ]);
      expect((await get("/v1/items/a", { "x-data-bin": "!" })).status).toBe(400);
    });

    test.each([
      ["believes a proxy in a trusted network", "127.0.0.1", "6.6.6.6, 127.0.0.1"],
      ["believes no other", "10.0.0.1", "127.0.0.1"],
    ])("%s", async (_, proxy, forwardedFor) => {
      const handler = gatewayTo(server.port, { trustForwarded: (address) => address === proxy });
      await using own = await openHttp1(handler);
      const headers = { "x-forwarded-for": "6.6.6.6", "x-real-ip": "6.6.6.6" };
      await own.fetchRaw({ target: "/v1/items/a?how=headers", headers });
      const metadata = server.lastMetadata();
      expect(metadata.get("x-forwarded-for")).toEqual([forwardedFor]);
      expect(metadata.get("x-real-ip")).toEqual(proxy === "127.0.0.1" ? ["6.6.6.6"] : []);
    });

    test("is mapped by matchers, and trusts a proxy that is named as trusted", async () => {
      const handler = gatewayTo(server.port, {
        requestHeaders: (name) => /^x-(a|forwarded-client-cert|real-ip)$/.test(name) || (name === "x-b" && "x-renamed"),
        responseHeaders: (name) => name === "x-reply" && "x-q",
        trustForwarded: true,
      });
      await using own = await openHttp1(handler);
      const headers = {
        "x-a": "1",
        "x-b": "2",
        "x-c": "3",
        "x-forwarded-for": "6.6.6.6",
        "x-forwarded-proto": "https",
        "x-forwarded-client-cert": "Subject=a",
        "x-real-ip": "6.6.6.6",
      };
      const response = await own.fetchRaw({ target: "/v1/items/a?how=headers", headers });
      expect(server.lastMetadata().getMap()).toMatchObject({
        "x-a": "1",
        "x-renamed": "2",
        "x-forwarded-for": "6.6.6.6, 127.0.0.1",
        "x-forwarded-proto": "https",
        "x-forwarded-client-cert": "Subject=a",
        "x-real-ip": "6.6.6.6",
      });
      expect(server.lastMetadata().get("x-c")).toEqual([]);
      expect([response.headers.get("x-q"), response.headers.get("set-cookie")]).toEqual([["early"], undefined]);
    });

    test("of the response becomes headers, trailers with a prefix", async () => {
      const { headers } = await get("/v1/items/a?how=headers");
      expect([headers.get("x-reply"), headers.get("set-cookie"), headers.get("trailer-x-trailer")]).toEqual([
        ["early"],
        ["a=1"],
        ["late"],
      ]);
      expect([headers.get("grpc-status"), headers.get("grpc-accept-encoding")]).toEqual([undefined, undefined]);
    });
  });

  describe("deadlines and cancellation", () => {
    test("deadlines that expire are 504, however many at once and whatever the upstream does then", async () => {
      const calls = Array.from({ length: 60 }, (_, i) =>
        get("/v1/items/a?how=hang", { "x-server-timeout": `0.${30 + (i % 20)}` }),
      );
      const seen = (await Promise.all(calls)).map(({ status }) => status);
      expect(seen.filter((status) => status !== 504)).toEqual([]);
    });

    test("a deadline is carried through, and ends a call that hangs", async () => {
      const response = await get("/v1/items/a?how=hang", { "x-server-timeout": "0.2" });
      expect(response.status).toBe(504);
      expect(server.deadlineMs()).toBeLessThanOrEqual(Date.now() + 200);
      expect((await get("/v1/items/a?how=hang", { "connect-timeout-ms": "0" })).status).toBe(504);
    });

    test("a default ends unary calls of clients that set none", async () => {
      await using own = await openHttp1(gatewayTo(server.port, { defaultTimeoutMs: 100 }));
      expect((await own.fetchRaw({ target: "/v1/items/a?how=hang" })).status).toBe(504);
    });

    test("a client that disconnects cancels the call", async () => {
      for (const target of ["/v1/items/a?how=hang", "/v1/counts/a?number=1&how=hang"]) {
        const cancelled = server.cancelled();
        const call = http1Get(gateway.origin + target, { agent: false });
        call.on("error", () => {});
        if (target.includes("counts")) {
          const [response] = (await once(call, "response")) as [IncomingMessage];
          await once(response, "data");
        } else {
          await until(async () => expect(server.lastMetadata().get("x-forwarded-host")).not.toEqual([]));
          await until(async () => expect(call.socket?.bytesWritten ?? 0).toBeGreaterThan(0));
          await get("/v1/items/b");
        }
        call.destroy();
        await cancelled;
      }
    });
  });

  describe("a backend", () => {
    test("that is away is 503, and served again when it is back", async () => {
      const own = await startGrpcServer();
      const errors: unknown[] = [];
      await using front = await openHttp1(gatewayTo(own.port, { onUpstreamError: (error) => errors.push(error) }));
      expect((await front.fetchRaw({ target: "/v1/items/a" })).status).toBe(200);
      own.die();
      const away = await front.fetchRaw({ target: "/v1/items/a" });
      expect([away.status, away.json()]).toEqual([
        503,
        { code: 14, message: "the upstream is unavailable", details: [] },
      ]);
      expect(errors.length).toBe(1);
      await using _again = await startGrpcServer(own.port);
      await until(async () => expect((await front.fetchRaw({ target: "/v1/items/a" })).status).toBe(200));
    });

    test("that dies within calls ends them: 503, or an error in band", async () => {
      const own = await startGrpcServer();
      await using front = await openHttp1(gatewayTo(own.port));
      const hanging = front.fetchRaw({ target: "/v1/items/a?how=hang" });
      const stream = http1Get(`${front.origin}/v1/counts/a?number=1&how=hang`, { agent: false });
      const [response] = (await once(stream, "response")) as [IncomingMessage];
      const [first] = (await once(response, "data")) as [Buffer];
      expect(JSON.parse(first.toString())).toEqual({ name: "a", number: "1" });
      await until(async () => expect(own.lastMetadata().get("x-forwarded-host")).not.toEqual([]));
      const sum = http1Request(`${front.origin}/v1/sums/a`, { method: "POST", headers: lines, agent: false });
      sum.write('{"number":1}\n');
      const next = once(response, "data");
      own.die();
      expect((await hanging).status).toBe(503);
      const [last] = (await next) as [Buffer];
      expect(JSON.parse(last.toString())).toMatchObject({ error: { code: 14 } });
      const [ofSum] = (await once(sum, "response")) as [IncomingMessage];
      expect(ofSum.statusCode).toBe(503);
      sum.destroy();
    });

    test("that stops responding is noticed by pings: calls end, and it is served again when it is back", async () => {
      const proxy = await startHoldingProxy(server.port);
      const ping = { pingIntervalMs: 300, pingTimeoutMs: 1_500 };
      await using front = await openHttp1(gatewayTo(proxy.port, {}, ping));
      const stream = http1Get(`${front.origin}/v1/counts/a?number=1&how=hang`, { agent: false });
      const [response] = (await once(stream, "response")) as [IncomingMessage];
      await once(response, "data");
      proxy.hold();
      const [last] = (await once(response, "data")) as [Buffer];
      expect(JSON.parse(last.toString())).toMatchObject({ error: { code: 14 } });
      proxy.release();
      await until(async () => expect((await front.fetchRaw({ target: "/v1/items/a" })).status).toBe(200));
      await proxy.stop();
    });

    test("that is away is asked again only if retries are asked for", async () => {
      const own = await startGrpcServer();
      own.die();
      const attempts = { without: 0, with: 0 };
      await using once_ = await openHttp1(gatewayTo(own.port, { onUpstreamError: () => attempts.without++ }));
      await using twice = await openHttp1(gatewayTo(own.port, { retries: 2, onUpstreamError: () => attempts.with++ }));
      expect((await once_.fetchRaw({ target: "/v1/items/a" })).status).toBe(503);
      expect((await twice.fetchRaw({ target: "/v1/items/a" })).status).toBe(503);
      expect(attempts).toEqual({ without: 1, with: 3 });
    });
  });

  test("the head of a stream is sent while the upstream is silent", async () => {
    const call = http1Get(`${gateway.origin}/v1/counts/a?how=hang%20first`, { agent: false });
    const [response] = (await once(call, "response")) as [IncomingMessage];
    expect(response.statusCode).toBe(200);
    call.destroy();
  });
});
