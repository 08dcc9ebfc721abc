/** Streams of responses: the client receives each message before the service sends the next one. */
import { constants, createGunzip } from "node:zlib";
import type { ConnectRouter } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import {
  type CommonOptions,
  createFetchHandler,
  createHttpHandler,
  statusEncoder,
} from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { RichService } from "./gen/rich/v1/rich_pb.ts";
import { openHttp1 } from "./support/servers.ts";

/** Returns a service whose stream sends a message each time `send` is called, until `end`. */
function controlledStream() {
  const numbers: number[] = [];
  let wake = Promise.withResolvers<void>();
  let ended = false;
  const notify = (change: () => void) => {
    change();
    wake.resolve();
    wake = Promise.withResolvers();
  };
  let released = false;
  async function* count() {
    try {
      for (;;) {
        for (let number = numbers.shift(); number !== undefined; number = numbers.shift()) yield { number };
        if (ended) return;
        await wake.promise;
      }
    } finally {
      released = true;
    }
  }
  return {
    routes: (router: ConnectRouter) => void router.rpc(RichService.method.count, count),
    send: (number: number) => notify(() => numbers.push(number)),
    end: () =>
      notify(() => {
        ended = true;
      }),
    isReleased: () => released,
  };
}

type Options = Partial<CommonOptions<unknown>>;

/** The ways to call a handler: over a real socket with Node's fetch as the client, and directly with a Request and a Response. */
const ways = [
  [
    "HTTP/1.1",
    async (routes: (router: ConnectRouter) => void, options: Options) => {
      const listener = await openHttp1(createHttpHandler({ routes, tables: [RichServiceRoutes], ...options }));
      const get = (target: string, init: RequestInit) => fetch(listener.origin + target, init);
      return { get, close: () => listener[Symbol.asyncDispose]() };
    },
  ],
  [
    "fetch",
    async (routes: (router: ConnectRouter) => void, options: Options) => {
      const handler = createFetchHandler({ routes, tables: [RichServiceRoutes], ...options });
      const get = (target: string, init: RequestInit) => handler(new Request(`http://localhost${target}`, init));
      return { get, close: async () => undefined };
    },
  ],
] as const;

const accept = (type: string, more = {}) => ({ headers: { accept: type, ...more } });

describe.each(ways)("a stream over %s", (way, open) => {
  async function withStream(
    options: Options,
    test: (
      stream: ReturnType<typeof controlledStream>,
      get: (target: string, init: RequestInit) => Promise<Response>,
    ) => Promise<void>,
  ) {
    const stream = controlledStream();
    const { get, close } = await open(stream.routes, options);
    try {
      await test(stream, get);
    } finally {
      stream.end();
      await close();
    }
  }

  test("has its headers sent before its first message", () =>
    withStream({}, async (stream, get) => {
      const response = await get("/v1/count/9", accept("text/event-stream"));
      expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"]);
      expect(response.headers.get("x-accel-buffering")).toBe("no");
      stream.send(1);
      const reader = readerOf(response);
      expect(await reader.read()).toBe('data: {"number":1}\n\n');
      stream.end();
      expect(await reader.read()).toBe("");
    }));

  test("responds to HEAD without a message", () =>
    withStream({}, async (_, get) => {
      expect((await get("/v1/count/9", { method: "HEAD" })).status).toBe(200);
    }));

  test("sends comments while server-sent events are idle, and nothing in other formats", () =>
    withStream({ heartbeatIntervalMs: 5 }, async (stream, get) => {
      const events = readerOf(await get("/v1/count/9", accept("text/event-stream")));
      const lines = readerOf(await get("/v1/count/9", accept("application/x-ndjson")));
      expect(await events.read()).toMatch(/^(:\n\n)+$/);
      expect(await events.read()).toMatch(/^(:\n\n)+$/);
      stream.end();
      expect(await lines.read()).toBe("");
    }));

  test("sends empty lines while NDJSON is idle if that is wanted, and nothing in an array", () =>
    withStream({ heartbeatIntervalMs: 5, ndjsonHeartbeats: true }, async (stream, get) => {
      const lines = readerOf(await get("/v1/count/9", accept("application/x-ndjson")));
      const array = readerOf(await get("/v1/count/9", accept("application/json")));
      expect(await lines.read()).toMatch(/^\n+$/);
      expect(await lines.read()).toMatch(/^\n+$/);
      expect(await array.read()).toBe("[");
      stream.end();
      expect(await array.read()).toBe("]");
    }));

  test("has no heartbeats of NDJSON without an interval, which is an error at the start", () => {
    expect(() => createHttpHandler({ routes() {}, tables: [], ndjsonHeartbeats: true })).toThrow(
      new TypeError("ndjsonHeartbeats needs heartbeatIntervalMs"),
    );
  });

  test("is compressed on demand, with each message flushed", () =>
    withStream({ compressStreams: true }, async (stream, get) => {
      stream.send(1);
      const response = await get("/v1/count/9", accept("application/x-ndjson", { "accept-encoding": "gzip" }));
      expect(response.headers.get("vary")).toContain("Accept-Encoding");
      // Node's fetch decompresses data as it arrives. The Response of the fetch handler is still compressed.
      expect(response.headers.get("content-encoding")).toBe("gzip");
      const body = way === "fetch" ? gunzipped(response) : response;
      const reader = readerOf(body);
      expect(await reader.read()).toBe('{"number":1}\n');
      stream.send(2);
      expect(await reader.read()).toBe('{"number":2}\n');
      stream.end();
      expect(await reader.read()).toBe("");
    }));

  test("is not compressed by default, nor for clients that do not accept it", async () => {
    await withStream({}, async (stream, get) => {
      stream.end();
      const response = await get("/v1/count/9", { headers: { "accept-encoding": "gzip" } });
      expect(response.headers.get("content-encoding")).toBeNull();
    });
    await withStream({ compressStreams: true }, async (stream, get) => {
      stream.end();
      const response = await get("/v1/count/9", { headers: { "accept-encoding": "identity" } });
      expect(response.headers.get("content-encoding")).toBeNull();
    });
  });

  test("ends, and releases the implementation, if the failure encoder throws in mid-stream", async () => {
    let inBand = false;
    const options: Options = {
      writeMaxBytes: 15,
      failureEncoder: (failure, context) => {
        inBand = context.inBand;
        if (inBand) throw new Error("broken");
        return statusEncoder(failure, context);
      },
    };
    await withStream(options, async (stream, get) => {
      stream.send(1);
      const response = await get("/v1/count/9", accept("application/x-ndjson"));
      const reader = readerOf(response);
      expect(await reader.read()).toBe('{"number":1}\n');
      stream.send(1_000_000);
      await expect(reader.read()).rejects.toThrow();
      expect([inBand, stream.isReleased()]).toEqual([true, true]);
    });
  });
});

function readerOf(response: Pick<Response, "body">) {
  const reader = response.body?.getReader();
  return { read: async () => Buffer.from((await reader?.read())?.value ?? []).toString() };
}

function gunzipped(response: Response): Pick<Response, "body"> {
  const gunzip = createGunzip({ flush: constants.Z_SYNC_FLUSH });
  const output = new TransformStream<Uint8Array, Uint8Array>();
  const writer = output.writable.getWriter();
  gunzip.on("data", (bytes: Buffer) => void writer.write(bytes));
  gunzip.on("end", () => void writer.close());
  void (async () => {
    for await (const bytes of response.body ?? []) gunzip.write(bytes);
    gunzip.end();
  })();
  return { body: output.readable };
}
