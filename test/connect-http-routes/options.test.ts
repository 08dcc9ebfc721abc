import { once } from "node:events";
import { connect } from "node:net";
import { Code, ConnectError, type ConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  createFetchHandler,
  createHttpHandler,
  type Failure,
  type HttpHandlerOptions,
  SYSTEM_PARAMETERS,
} from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { RichService } from "./gen/rich/v1/rich_pb.ts";
import { richRoutes } from "./support/rich-service.ts";
import { openHttp1, openHttp2, type TestRequest, type TestResponse } from "./support/servers.ts";

async function fetchRaw(
  options: Partial<Omit<HttpHandlerOptions, "routes" | "transport" | "forward">>,
  ...questions: TestRequest[]
): Promise<TestResponse[]> {
  await using listener = await openHttp1(
    createHttpHandler({ routes: richRoutes, tables: [RichServiceRoutes], ...options }),
  );
  return await Promise.all(questions.map((request) => listener.fetchRaw(request)));
}

describe("options", () => {
  test("refuse unknown query parameters", async () => {
    const [unknown, bound, known] = await fetchRaw(
      { refuseUnknownQuery: true },
      { target: "/v1/echo?nope=1" },
      { target: "/v1/nested/1/n/end?nested.name=x" },
      { target: "/v1/echo?int32Value=1" },
    );
    expect([unknown?.status, unknown?.json()]).toMatchObject([400, { message: "query: nope: unknown parameter" }]);
    expect([bound?.status, known?.status]).toEqual([400, 200]);
  });

  test("refuse the query of a route whose body has every field", async () => {
    const post = { method: "POST", body: "{}" };
    const allow = ["utm_*"];
    const [known, unknown, allowed] = await fetchRaw(
      { refuseUnknownQuery: { allow } },
      { ...post, target: "/v1/echo?int32Value=1" },
      { ...post, target: "/v1/echo?nope=1" },
      { ...post, target: "/v1/echo?utm_source=x" },
    );
    expect([known?.status, unknown?.status, allowed?.status]).toEqual([400, 400, 200]);
    const [ignored] = await fetchRaw({}, { ...post, target: "/v1/echo?int32Value=1" });
    expect([ignored?.status, ignored?.json()]).toEqual([200, {}]);
  });

  test("allow listed unknown query parameters, and Google's system parameters", async () => {
    const allow = [...SYSTEM_PARAMETERS, "utm_*"];
    const responses = await fetchRaw(
      { refuseUnknownQuery: { allow } },
      { target: "/v1/echo?$alt=json&key=k&fields=a,b&utm_source=x&%24.xgafv=1" },
      { target: "/v1/echo?utm=1" },
      { target: "/v1/echo?ke=1" },
      { target: "/v1/nested/1/n/end?nested.name=x" },
    );
    expect(responses.map((response) => response.status)).toEqual([200, 400, 400, 400]);
  });

  test("switch off the inference of update masks", async () => {
    const [response] = await fetchRaw(
      { inferUpdateMask: false },
      { method: "PATCH", target: "/v1/items/n", body: '{"color":1}' },
    );
    expect(response?.json()).toEqual({ item: { name: "n", color: "COLOR_RED" } });
  });

  test("switch off compression", async () => {
    const [response] = await fetchRaw(
      { compress: false },
      { target: `/v1/echo?stringValue=${"x".repeat(2_000)}`, headers: { "accept-encoding": "gzip" } },
    );
    expect([response?.headers.get("content-encoding"), response?.headers.get("vary")]).toEqual([undefined, undefined]);
  });

  test("that raise readMaxBytes do not lift the nesting limit", async () => {
    const deep = `{"value":${"[".repeat(20_000)}9007199254740993${"]".repeat(20_000)}}`;
    const [response] = await fetchRaw({ readMaxBytes: 100_000 }, { method: "POST", target: "/v1/echo", body: deep });
    expect([response?.status, response?.json()]).toMatchObject([400, { message: "body: nested too deeply" }]);
  });

  test("keep escapes of reserved characters in multi-segment variables", async () => {
    const [response] = await fetchRaw(
      { multiSegmentDecoding: "except-reserved" },
      { target: "/v1/files/a%2Fb/%3F%20" },
    );
    expect(response?.json()).toEqual({ stringValue: "a%2Fb/%3F " });
  });

  test("send trailers as headers", async () => {
    const [response] = await fetchRaw(
      { trailersAsHeaders: true },
      { method: "POST", target: "/v1/misbehave", body: '{"how":"trailer"}' },
    );
    expect(response?.headers.get("trailer-x-late")).toEqual(["t"]);
  });

  test("limit the size of responses (writeMaxBytes)", async () => {
    const [fits, not, stream] = await fetchRaw(
      { writeMaxBytes: 60 },
      { target: "/v1/echo?stringValue=x" },
      { target: `/v1/echo?stringValue=${"x".repeat(60)}` },
      { target: "/v1/count/2" },
    );
    expect([fits?.status, not?.status, stream?.status]).toEqual([200, 429, 200]);
    expect(not?.json()).toMatchObject({
      code: 8,
      message: "message size 78 is larger than configured writeMaxBytes 60",
    });
  });

  test("send only requests that match no route to the fallback", async () => {
    const [elsewhere, method] = await fetchRaw(
      {
        fallback: (_, response) => {
          response.statusCode = 418;
          response.end();
        },
      },
      { target: "/elsewhere" },
      { method: "PUT", target: "/v1/echo" },
    );
    expect([elsewhere?.status, method?.status]).toEqual([418, 405]);
  });

  test("encode each kind of failure with the failureEncoder", async () => {
    const failures: Failure[] = [];
    const failureEncoder: HttpHandlerOptions["failureEncoder"] = (failure, { rpc, inBand }) => {
      failures.push(failure);
      return {
        status: failure.status + 1,
        headers: { "x-kind": failure.kind },
        body: { error: { kind: failure.kind, rpc: rpc?.name ?? null, inBand } },
      };
    };
    const post = (body: string, headers: Record<string, string> = {}): TestRequest => ({
      method: "POST",
      target: "/v1/echo",
      body,
      headers,
    });
    const responses = await fetchRaw(
      { failureEncoder, readMaxBytes: 100 },
      { target: "/nowhere" },
      { method: "PUT", target: "/v1/echo" },
      post("{}", { "content-type": "text/plain" }),
      post(" ".repeat(200)),
      post("{"),
      { target: "/v1/echo?int32Value=x" },
      { method: "POST", target: "/v1/misbehave", body: '{"how":"x"}' },
      { target: "/v1/count/2?failAfter=1" },
    );
    expect(responses.map(({ status, headers, text }) => [status, headers.get("x-kind")?.[0], text])).toEqual([
      [405, "no_route", '{"error":{"kind":"no_route","rpc":null,"inBand":false}}'],
      [406, "method_not_allowed", '{"error":{"kind":"method_not_allowed","rpc":null,"inBand":false}}'],
      [416, "unsupported_media_type", '{"error":{"kind":"unsupported_media_type","rpc":"Echo","inBand":false}}'],
      [414, "too_large", '{"error":{"kind":"too_large","rpc":"Echo","inBand":false}}'],
      [401, "bad_request", '{"error":{"kind":"bad_request","rpc":"Echo","inBand":false}}'],
      [401, "bad_request", '{"error":{"kind":"bad_request","rpc":"Echo","inBand":false}}'],
      [410, "rpc", '{"error":{"kind":"rpc","rpc":"Misbehave","inBand":false}}'],
      [200, undefined, '{"number":1}\n{"error":{"kind":"rpc","rpc":"Count","inBand":true}}\n'],
    ]);
    expect(responses[1]?.headers.get("allow")).toEqual(["GET, HEAD, OPTIONS, POST, REPORT"]);
    const places = failures.flatMap((failure) =>
      failure.kind === "bad_request" ? [[failure.place, failure.field]] : [],
    );
    expect(places).toEqual(
      expect.arrayContaining([
        ["body", undefined],
        ["query", "int32Value"],
      ]),
    );
  });

  test("call onResponse once for each response, and send the headers that it adds", async () => {
    const seen: unknown[] = [];
    const onResponse: HttpHandlerOptions["onResponse"] = (headers, { method, status, rpc, failure }) => {
      headers.set("cache-control", "no-store");
      seen.push([method, status, rpc?.name, failure?.kind]);
    };
    const responses = await fetchRaw(
      { onResponse },
      { target: "/v1/echo" },
      { target: "/nowhere" },
      { method: "OPTIONS", target: "/v1/echo" },
      { method: "PUT", target: "/v1/echo" },
      { target: "/v1/count/1" },
      { target: "/v1/echo?int32Value=x" },
    );
    expect(responses.map(({ headers }) => headers.get("cache-control"))).toEqual(Array(6).fill(["no-store"]));
    expect(seen).toHaveLength(6);
    expect(seen).toEqual(
      expect.arrayContaining([
        ["GET", 200, "Echo", undefined],
        ["GET", 404, undefined, "no_route"],
        ["OPTIONS", 204, undefined, undefined],
        ["PUT", 405, undefined, "method_not_allowed"],
        ["GET", 200, "Count", undefined],
        ["GET", 400, "Echo", "bad_request"],
      ]),
    );
  });
});

describe("a client that disconnects", () => {
  test.each([["HTTP/1.1"], ["HTTP/2"], ["fetch"]])("in the middle of a stream ends it, over %s", async (protocol) => {
    let finished: (reason: unknown) => void = () => {};
    const ended = new Promise((resolve) => {
      finished = resolve;
    });
    const routes = (router: ConnectRouter) => {
      router.service(RichService, {
        async *count(_, { signal }) {
          try {
            yield { number: 1 };
            await once(signal, "abort");
            yield { number: 2 };
          } finally {
            finished(signal.reason);
          }
        },
      });
    };
    const handler = createHttpHandler({ routes, tables: [RichServiceRoutes] });
    if (protocol === "fetch") {
      const fetched = createFetchHandler({ routes, tables: [RichServiceRoutes] });
      const reader = (await fetched(new Request("http://x/v1/count/2"))).body?.getReader();
      expect((await reader?.read())?.done).toBe(false);
      await reader?.cancel("enough");
      expect(ConnectError.from(await ended).code).toBe(Code.Canceled);
    } else if (protocol === "HTTP/1.1") {
      await using listener = await openHttp1(handler);
      const socket = connect(listener.port, "127.0.0.1");
      socket.write("GET /v1/count/2 HTTP/1.1\r\nhost: x\r\n\r\n");
      await once(socket, "data");
      socket.destroy();
      expect(ConnectError.from(await ended).code).toBe(Code.Canceled);
    } else {
      await using listener = await openHttp2(handler);
      const { connect: connectHttp2 } = await import("node:http2");
      const session = connectHttp2(listener.origin);
      const stream = session.request({ ":path": "/v1/count/2" });
      await once(stream, "data");
      stream.close(8);
      expect(ConnectError.from(await ended).code).toBe(Code.Canceled);
      session.destroy();
    }
  });

  test("before its body is complete does not affect others", async () => {
    await using listener = await openHttp1(createHttpHandler({ routes: richRoutes, tables: [RichServiceRoutes] }));
    const socket = connect(listener.port, "127.0.0.1");
    socket.write('POST /v1/echo HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{"int');
    socket.end();
    await once(socket.resume(), "close");
    expect((await listener.fetchRaw({ target: "/v1/echo" })).status).toBe(200);
  });

  test.each([
    ["without end", "transfer-encoding: chunked"],
    ["of a length that is too much", "content-length: 99999999999"],
  ])("sends a body %s is responded once, and no more is read", async (_, framing) => {
    const handler = createHttpHandler({ routes: richRoutes, tables: [RichServiceRoutes], readMaxBytes: 1_000 });
    await using listener = await openHttp1(handler);
    const socket = connect(listener.port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString();
    });
    // The service may reset the connection. Without a listener, that error would fail the test.
    socket.on("error", () => {});
    const closed = new Promise((resolve) => socket.once("close", resolve));
    socket.write(`POST /v1/echo HTTP/1.1\r\nhost: x\r\n${framing}\r\n\r\n`);
    const chunk = `8000\r\n${"x".repeat(0x8000)}\r\n`;
    const more = () => {
      while (socket.writable && socket.write(chunk));
    };
    socket.on("drain", more);
    more();
    await closed;
    expect(text).toMatch(/^HTTP\/1\.1 413 /);
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
  });

  test("and sends an endless body over HTTP/2 has only that stream closed", async () => {
    const handler = createHttpHandler({ routes: richRoutes, tables: [RichServiceRoutes], readMaxBytes: 1_000 });
    await using listener = await openHttp2(handler);
    const { connect: connectHttp2 } = await import("node:http2");
    const session = connectHttp2(listener.origin);
    const stream = session.request({ ":method": "POST", ":path": "/v1/echo" });
    stream.write("x".repeat(100_000));
    const [head] = await once(stream, "response");
    expect(head[":status"]).toBe(413);
    await once(stream.resume(), "close");
    expect(stream.rstCode).toBe(0);
    const next = session.request({ ":path": "/v1/echo" });
    const [nextHead] = await once(next, "response");
    expect(nextHead[":status"]).toBe(200);
    session.destroy();
  });

  test("or reads slowly bounds the buffered part of a stream", async () => {
    let sent = 0;
    const routes = (router: ConnectRouter) => {
      router.service(RichService, {
        async *download() {
          for (; sent < 4_000; sent++) yield { data: new Uint8Array(65_536) };
        },
      });
    };
    await using listener = await openHttp1(createHttpHandler({ routes, tables: [RichServiceRoutes] }));
    const socket = connect(listener.port, "127.0.0.1");
    socket.write("GET /v1/download/1 HTTP/1.1\r\nhost: x\r\n\r\n");
    await once(socket, "data");
    socket.pause();
    // The service gets 2,000 turns of the event loop in which it could send, while the client does not read.
    for (let turn = 0; turn < 2_000; turn++) await new Promise(setImmediate);
    expect(sent).toBeLessThan(1_000);
    socket.destroy();
  });
});
