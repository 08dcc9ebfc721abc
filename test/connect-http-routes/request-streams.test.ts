/** Streams of requests: the service receives each message before the client sends the next one. */
import { once } from "node:events";
import { request as http1Request, type IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { gzipSync } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFetchHandler, createHttpHandler } from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "./gen/relay/v1/relay_http.ts";
import type { Item } from "./gen/relay/v1/relay_pb.ts";
import { relayRoutes } from "./support/relay-service.ts";
import { type Listener, openFetch, openHttp1, openHttp2 } from "./support/servers.ts";

let onReceived: (item: Item) => void = () => {};
let onEnded: (signal: AbortSignal) => void = () => {};
const options = {
  routes: relayRoutes({ received: (item) => onReceived(item), ended: (signal) => onEnded(signal) }),
  tables: [RelayServiceRoutes],
  readMaxBytes: 100_000,
};
const listeners: Record<string, Listener> = {};
beforeAll(async () => {
  const handler = createHttpHandler(options);
  listeners["HTTP/1.1"] = await openHttp1(handler);
  listeners["HTTP/2"] = await openHttp2(handler);
  listeners.fetch = openFetch(createFetchHandler(options));
});
afterAll(async () => {
  for (const listener of Object.values(listeners)) await listener[Symbol.asyncDispose]();
});

const json = { "content-type": "application/json" };
const lines = { "content-type": "application/x-ndjson" };
const ways = ["HTTP/1.1", "HTTP/2", "fetch"] as const;
const send = (way: string, target: string, headers: Record<string, string>, body: string | Uint8Array) => {
  const listener = listeners[way];
  if (listener === undefined) throw new Error(way);
  return listener.fetchRaw({ method: "POST", target, headers, body });
};

describe.each(ways)("a request stream over %s", (way) => {
  test.each([
    ["lines", lines, '{"number":"1"}\n{"number":2}\r\n\n{"number":3}', 3],
    ["an array", json, ' [ {"number":1} ,\n{"number":2},{"number":3,"tags":["]",",","\\"}"]}]\n', 3],
    ["an array without elements", json, "[ ]", 0],
    ["texts one after another", json, '{"number":1}{"number":2}\n{"number":3}', 3],
    ["one object", json, '{"number":6}', 1],
    ["gzip", { ...lines, "content-encoding": "gzip" }, gzipSync('{"number":1}\n{"number":2}\n{"number":3}\n'), 3],
    ["nothing", lines, "", 0],
  ])("is read from %s", async (_, headers, body, messages) => {
    const response = await send(way, "/v1/sums/path", headers, body);
    const expected = messages === 0 ? {} : { sum: "6", messages, name: "path" };
    expect([response.status, response.json()]).toEqual([200, expected]);
  });

  test("carries the field that the rule names as its body", async () => {
    const response = await send(way, "/v1/sums/path:bare?how=", json, '["1", 2,3 ]');
    expect(response.json()).toEqual({ sum: "6", messages: 3, name: "path" });
    const ofLines = await send(way, "/v1/sums/path:bare", lines, '1\n"5"\n');
    expect(ofLines.json()).toEqual({ sum: "6", messages: 2, name: "path" });
  });

  test.each([
    ["an array that does not end", json, '[{"number":1}', 400],
    ["a text that does not end", json, '[{"number":1', 400],
    ["a missing comma", json, '[{"number":1}{"number":1}]', 400],
    ["a comma too many", json, '[{"number":1},]', 400],
    ["text after the array", json, '[{"number":1}]x', 400],
    ["a line that is not JSON", lines, '{"number":1}\n{\n', 400],
    ["two texts on a line", lines, '{"number":1}{"number":1}\n', 400],
    ["a value of the wrong type", lines, '{"number":1}\n{"number":"x"}\n', 400],
    ["bytes that are not UTF-8", lines, new Uint8Array([0x22, 0xff, 0x22]), 400],
    ["a message over the limit", lines, `{"name":"${"x".repeat(100_000)}"}`, 413],
    ["an array element over the limit", json, `[{"name":"${"x".repeat(100_000)}"}]`, 413],
    ["another content type", { "content-type": "text/csv" }, "1,2", 415],
    ["an unknown encoding", { ...lines, "content-encoding": "br" }, "x", 415],
    ["an encoding that is not what it says", { ...lines, "content-encoding": "gzip" }, "xxxxxxxxxxxxxxxxxxx", 400],
    [
      "gzip that does not end",
      { ...lines, "content-encoding": "gzip" },
      gzipSync('{"number":1}\n').subarray(0, 20),
      400,
    ],
  ])("is refused for %s", async (_, headers, body, status) => {
    expect((await send(way, "/v1/sums/a", headers, body)).status).toBe(status);
  });

  test("may be longer than the limit of one message", async () => {
    const body = `{"name":"${"x".repeat(50_000)}","number":1}\n`.repeat(40);
    const response = await send(way, "/v1/sums/a", lines, body);
    expect(response.json()).toMatchObject({ sum: "40" });
  });

  test("has a response when the implementation has read enough", async () => {
    const body = `{"number":1,"how":"enough"}\n${'{"number":1}\n'.repeat(50_000)}`;
    const response = await send(way, "/v1/sums/a", lines, body);
    expect([response.status, response.json()]).toEqual([200, { sum: "1", messages: 1, name: "a" }]);
  });

  test("fails as the implementation fails in the middle of it", async () => {
    const response = await send(way, "/v1/sums/a", lines, '{"number":1}\n{"how":"fail"}\n{"number":1}\n');
    expect([response.status, response.headers.get("x-meta")]).toEqual([400, ["m"]]);
    expect(response.json()).toMatchObject({ code: 9, message: "as asked" });
  });

  test("uploads google.api.HttpBody in pieces, with path and content type", async () => {
    const body = new Uint8Array(1_000_000).fill(7);
    const response = await send(way, "/v1/files/a.bin", { "content-type": "application/x-thing" }, body);
    expect(response.json()).toMatchObject({ sum: "1000000", name: "a.bin", contentType: "application/x-thing" });
    const empty = await send(way, "/v1/files/empty", {}, "");
    expect(empty.json()).toEqual({ messages: 1, name: "empty" });
  });

  test("ends at the deadline while the client is idle", async () => {
    const response = await send(way, "/v1/sums/a", { ...lines, "connect-timeout-ms": "20" }, '{"how":"hang"}\n');
    expect(response.status).toBe(504);
  });
});

test("a request stream that middleware has read is taken from request.body", async () => {
  const handler = createHttpHandler(options);
  await using listener = await openHttp1(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    handler(Object.assign(request, { body: JSON.parse(Buffer.concat(chunks).toString()) as unknown }), response);
  });
  const body = '[{"number":1},{"number":2}]';
  const response = await listener.fetchRaw({ method: "POST", target: "/v1/sums/a", headers: json, body });
  expect(response.json()).toEqual({ sum: "3", messages: 2, name: "a" });
});

describe("bidirectional streaming", () => {
  test("is refused over HTTP/1.1", async () => {
    const response = await send("HTTP/1.1", "/v1/chats/a", lines, '{"number":1}\n');
    expect(response.status).toBe(501);
    expect(response.json()).toMatchObject({ code: 12, message: "bidirectional streaming needs HTTP/2" });
  });

  test("is full duplex over HTTP/2: each response arrives before the next request is sent", async () => {
    const session = connect(listeners["HTTP/2"]?.origin ?? "");
    const stream = session.request({ ":method": "POST", ":path": "/v1/chats/a", ...lines });
    const [head] = (await once(stream, "response")) as [Record<string, unknown>];
    expect([head[":status"], head["content-type"]]).toEqual([200, "application/x-ndjson"]);
    for (const number of [1, 2, 3]) {
      stream.write(`{"number":${number}}\n`);
      const [data] = (await once(stream, "data")) as [Buffer];
      expect(JSON.parse(data.toString())).toEqual({ name: "a", number: String(number * 2) });
    }
    stream.end();
    await once(stream, "end");
    session.destroy();
  });

  test("reports an unreadable request in band", async () => {
    const response = await send("HTTP/2", "/v1/chats/a", lines, '{"number":1}\n{"number":"x"}\n');
    const [first, last] = response.text.trim().split("\n");
    expect(JSON.parse(first ?? "")).toEqual({ name: "a", number: "2" });
    expect(JSON.parse(last ?? "")).toMatchObject({ error: { code: 3 } });
  });

  test("carries raw bytes both ways", async () => {
    const response = await send("HTTP/2", "/v1/mirror", { "content-type": "text/plain" }, "bytes");
    expect([response.text, response.headers.get("content-type")]).toEqual(["bytes", ["text/plain"]]);
  });
});

describe("a client that disconnects within its request stream", () => {
  test.each(["HTTP/1.1", "HTTP/2"])("aborts the implementation over %s", async (way) => {
    const ended = new Promise<AbortSignal>((resolve) => {
      onEnded = resolve;
    });
    const received = new Promise<void>((resolve) => {
      onReceived = () => resolve();
    });
    const origin = listeners[way]?.origin ?? "";
    if (way === "HTTP/2") {
      const session = connect(origin);
      const stream = session.request({ ":method": "POST", ":path": "/v1/sums/a", ...lines });
      stream.on("error", () => {});
      stream.write('{"number":1}\n');
      await received;
      session.destroy();
    } else {
      const call = http1Request(`${origin}/v1/sums/a`, { method: "POST", headers: lines, agent: false });
      call.on("error", () => {});
      call.write('{"number":1}\n');
      await received;
      call.destroy();
    }
    expect(ConnectError.from((await ended).reason).code).toBe(Code.Canceled);
  });
});

test("a deadline ends a call whose client stops sending, and the client gets the response", async () => {
  const call = http1Request(`${listeners["HTTP/1.1"]?.origin}/v1/sums/a`, {
    method: "POST",
    headers: { ...lines, "connect-timeout-ms": "50" },
    agent: false,
  });
  call.on("error", () => {});
  call.write('{"number":1}\n');
  const [response] = (await once(call, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(504);
  call.destroy();
});

test("a sender that is not read is held back", async () => {
  let release = () => {};
  const gate = new Promise<void>((resolve) => {
    release = resolve;
  });
  let first = () => {};
  const started = new Promise<void>((resolve) => {
    first = resolve;
  });
  const handler = createHttpHandler({
    tables: [RelayServiceRoutes],
    routes: (router) =>
      void router.rpc(RelayServiceRoutes.service.method.sum, async (items) => {
        let sum = 0n;
        for await (const item of items) {
          first();
          await gate;
          sum += item.number;
        }
        return { sum };
      }),
  });
  await using listener = await openHttp1(handler);
  const call = http1Request(`${listener.origin}/v1/sums/a`, { method: "POST", headers: lines, agent: false });
  const line = `{"number":1,"name":"${"x".repeat(1000)}"}\n`;
  const piece = line.repeat(1000);
  call.write(piece);
  await started;
  let written = 1;
  // Once the buffers of the socket are full, the server must not read more of the body until the implementation asks for the next message.
  while (call.writableLength < 8_000_000 && written < 200) {
    call.write(piece);
    written++;
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect(call.writableLength).toBeGreaterThanOrEqual(8_000_000);
  release();
  call.end();
  const [response] = (await once(call, "response")) as [AsyncIterable<Buffer>];
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk);
  expect(JSON.parse(Buffer.concat(chunks).toString())).toEqual({ sum: String(written * 1000) });
});
