/** The resources that all calls of a handler may use together: bodies that arrive slowly or never completely, and long calls. */
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import type { ConnectRouter } from "@connectrpc/connect";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { Bounds } from "../../src/connect-http-routes/bounds.ts";
import {
  type CommonOptions,
  createFetchHandler,
  createHttpHandler,
  protobufCodec,
} from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "./gen/relay/v1/relay_http.ts";
import { RelayService } from "./gen/relay/v1/relay_pb.ts";
import { openHttp1, openHttp2 } from "./support/servers.ts";

const ITEMS = "/v1/items";
const SUMS = "/v1/sums/a";
/** A request body of 9,000 bytes. */
const BODY = `{"name":"${"x".repeat(8_989)}"}`;
const WAITS = BODY.replace('{"name":"xxxxxxxxxxxxx', '{"how":"wait","name":"');
const MOST = 8_000;

/** The response that a client receives. */
interface Outcome {
  readonly status: number;
  readonly retryAfter: string | null;
}

/** A request that has been sent in part. Its methods send the rest. */
interface Sending {
  send(text: string | Uint8Array): void;
  end(text?: string | Uint8Array): void;
  readonly outcome: Promise<Outcome>;
}

type Headers1 = Readonly<Record<string, string>>;
type Send = (target: string, part: string | Uint8Array, headers?: Headers1) => Sending;

/** Releases the calls that wait because their request has `how: "wait"`. */
let release = () => {};
let released: Promise<void>;
/** Resolves when a call with `how: "wait"` has begun. */
let begun: PromiseWithResolvers<void>;
beforeEach(() => {
  ({ promise: released, resolve: release } = Promise.withResolvers<void>());
  begun = Promise.withResolvers<void>();
});

function routes(router: ConnectRouter): void {
  router.service(RelayService, {
    async get(item) {
      begun.resolve();
      if (item.how === "wait") await released;
      return { name: item.name.slice(0, 10) };
    },
    async *count() {
      begun.resolve();
      yield { number: 1n };
      await released;
    },
    async sum(items) {
      let sum = 0n;
      for await (const item of items) {
        begun.resolve();
        if (item.how === "wait") await released;
        sum += item.number;
      }
      return { sum };
    },
  });
}

type Bounded = Pick<CommonOptions<never>, "maxCalls" | "maxPendingBodyBytes" | "bodyTimeoutMs">;

async function overHttp1(bounds: Bounded): Promise<Send> {
  const { port } = await opened(openHttp1(createHttpHandler(optionsOf(bounds))));
  return (target, part, headers = {}) => {
    const socket = connect(port, "127.0.0.1");
    onTestFinished(() => void socket.destroy());
    const framing = "content-length" in headers ? {} : { "transfer-encoding": "chunked" };
    const fields = Object.entries({ host: "x", ...framing, ...headers });
    const head = fields.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const send = (text: string | Uint8Array) => {
      const bytes = Buffer.from(text);
      if ("content-length" in headers) return void socket.write(bytes);
      socket.write(Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from("\r\n")]));
    };
    socket.write(`POST ${target} HTTP/1.1\r\n${head}\r\n`);
    if (part.length > 0) send(part);
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    socket.on("error", reject).on("close", () => reject(new Error("no response")));
    socket.once("data", (data) => {
      const text = data.toString("latin1");
      resolve({ status: Number(text.slice(9, 12)), retryAfter: /retry-after: (\d+)/i.exec(text)?.[1] ?? null });
    });
    promise.catch(() => {});
    return {
      send,
      end(text) {
        if (text !== undefined) send(text);
        socket.write("0\r\n\r\n");
      },
      outcome: promise,
    };
  };
}

async function overHttp2(bounds: Bounded): Promise<Send> {
  const { origin } = await opened(openHttp2(createHttpHandler(optionsOf(bounds))));
  const session = connectHttp2(origin);
  onTestFinished(() => session.destroy());
  return (target, part, headers = {}) => {
    const stream = session.request({ ":method": "POST", ":path": target, ...headers });
    const { promise, resolve, reject } = Promise.withResolvers<Outcome>();
    stream.on("error", reject).on("close", () => reject(new Error("no response")));
    stream.once("response", (head) => {
      resolve({ status: Number(head[":status"]), retryAfter: (head["retry-after"] as string | undefined) ?? null });
      stream.resume();
    });
    promise.catch(() => {});
    if (part.length > 0) stream.write(part);
    return { send: (text) => void stream.write(text), end: (text) => void stream.end(text), outcome: promise };
  };
}

async function overFetch(bounds: Bounded): Promise<Send> {
  const handler = createFetchHandler(optionsOf(bounds));
  return (target, part, headers = {}) => {
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>(undefined, { highWaterMark: 100 });
    const writer = writable.getWriter();
    const send = (text: string | Uint8Array) => void writer.write(Buffer.from(text)).catch(() => {});
    if (part.length > 0) send(part);
    const init = { method: "POST", headers, body: readable, duplex: "half" } as const;
    const response = handler(new Request(`http://x${target}`, init));
    return {
      send,
      end(text) {
        if (text !== undefined) send(text);
        writer.close().catch(() => {});
      },
      outcome: response.then(({ status, headers: fields }) => ({ status, retryAfter: fields.get("retry-after") })),
    };
  };
}

const optionsOf = (bounds: Bounded) => ({
  routes,
  tables: [RelayServiceRoutes],
  codecs: [protobufCodec],
  ...bounds,
});

async function opened<L extends AsyncDisposable>(opening: Promise<L>): Promise<L> {
  const listener = await opening;
  onTestFinished(() => listener[Symbol.asyncDispose]());
  return listener;
}

const OK = { status: 200, retryAfter: null };
const OVERLOADED = { status: 503, retryAfter: "1" };
const LATE = { status: 408, retryAfter: null };
const wait = () => begun.promise;

describe.each([
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
  ["fetch", overFetch],
] as const)("over %s", (_, over) => {
  test("bodies that arrive may have so many bytes together: the oldest is refused, the others are served", async () => {
    const send = await over({ maxPendingBodyBytes: 20_000 });
    const all = [1, 2, 3].map(() => send(ITEMS, BODY.slice(0, MOST)));
    const refused = await Promise.race(all.map(async (one) => ({ one, outcome: await one.outcome })));
    expect(refused.outcome).toEqual(OVERLOADED);
    const rest = all.filter((one) => one !== refused.one);
    for (const one of rest) one.end(BODY.slice(MOST));
    expect(await Promise.all(rest.map(({ outcome }) => outcome))).toEqual([OK, OK]);
    for (let i = 0; i < 5; i++) {
      const one = send(ITEMS, BODY);
      one.end();
      expect(await one.outcome).toEqual(OK);
    }
  });

  test("where the server in front limits the time of bodies, large ones count by their bytes", async () => {
    const send = await over({ maxPendingBodyBytes: 15_000, bodyTimeoutMs: Number.POSITIVE_INFINITY });
    const all = [1, 2].map(() => send(ITEMS, BODY.slice(0, MOST), { "content-length": `${BODY.length}` }));
    expect(await Promise.race(all.map(({ outcome }) => outcome))).toEqual(OVERLOADED);
  });

  test("bodies of calls in flight count, and are not given up: what arrives is", async () => {
    const send = await over({ maxPendingBodyBytes: 15_000 });
    const held = send(ITEMS, WAITS);
    held.end();
    await wait();
    expect(await send(ITEMS, BODY.slice(0, MOST)).outcome).toEqual(OVERLOADED);
    const small = send(ITEMS, '{"name":"a"}');
    small.end();
    expect(await small.outcome).toEqual(OK);
    release();
    expect(await held.outcome).toEqual(OK);
    const next = send(ITEMS, BODY);
    next.end();
    expect(await next.outcome).toEqual(OK);
  });

  test("a body counts as it is when it is decompressed", async () => {
    const send = await over({ maxPendingBodyBytes: 15_000 });
    const one = send(ITEMS, gzipSync(`{"name":"${"x".repeat(20_000)}"}`), { "content-encoding": "gzip" });
    one.end();
    expect(await one.outcome).toEqual(OVERLOADED);
  });

  test("a body that takes too long is refused, and so is a message of a stream; the time between messages is free", async () => {
    const send = await over({ bodyTimeoutMs: 50 });
    const idle = send(SUMS, '{"number":1}\n', { "content-type": "application/x-ndjson" });
    await wait();
    expect(await send(ITEMS, BODY.slice(0, MOST)).outcome).toEqual(LATE);
    expect(await send(ITEMS, "").outcome).toEqual(LATE);
    expect(await send(ITEMS, "{", { "content-length": "2" }).outcome).toEqual(LATE);
    expect(await send(SUMS, '{"number":', { "content-type": "application/x-ndjson" }).outcome).toEqual(LATE);
    const delimited = { "content-type": "application/x-protobuf; delimited=true" };
    expect(await send(SUMS, Uint8Array.of(50, 10), delimited).outcome).toEqual(LATE);
    idle.send('{"number":2}\n{"num');
    idle.end('ber":3}\n');
    expect(await idle.outcome).toEqual(OK);
  });

  test("the bytes of an incomplete message of a stream count", async () => {
    const send = await over({ maxPendingBodyBytes: 15_000 });
    const lines = { "content-type": "application/x-ndjson" };
    const one = send(SUMS, `{"number":1}\n${BODY.slice(0, MOST)}`, lines);
    await wait();
    const other = send(ITEMS, BODY.slice(0, MOST));
    const refused = await Promise.race([one, other].map(async ({ outcome }) => outcome));
    expect(refused).toEqual(OVERLOADED);
  });

  test("a stream may take any time, and so may its messages once they have arrived", async () => {
    const send = await over({ bodyTimeoutMs: 50 });
    const lines = { "content-type": "application/x-ndjson" };
    const long = send(SUMS, '{"num', lines);
    const slow = send(SUMS, '{"how":"wa', lines);
    slow.send('it","number":1}\n{"num');
    await wait();
    let isLater = false;
    const later = (async () => {
      for (let i = 0; i < 3; i++) expect(await send(ITEMS, BODY.slice(0, MOST)).outcome).toEqual(LATE);
    })().finally(() => {
      isLater = true;
    });
    while (!isLater) {
      long.send('ber":1}\n{"num');
      await new Promise(setImmediate);
    }
    await later;
    for (const one of [long, slow]) one.end('ber":2}\n');
    release();
    expect(await Promise.all([long, slow].map(({ outcome }) => outcome))).toEqual([OK, OK]);
  });

  test("while the process does not run, no body is late", async () => {
    const send = await over({ bodyTimeoutMs: 40 });
    const one = send(SUMS, '{"number":1}\n{"num', { "content-type": "application/x-ndjson" });
    await wait();
    // The call has received its first message, and waits for its second one, of which only a part has arrived.
    await new Promise(setImmediate);
    one.end('ber":2}\n');
    const until = performance.now() + 400;
    while (performance.now() < until);
    expect(await one.outcome).toEqual(OK);
  });

  test("so many calls may be in flight, those of streams too", async () => {
    const send = await over({ maxCalls: 2 });
    const held = send(ITEMS, WAITS);
    held.end();
    await wait();
    begun = Promise.withResolvers<void>();
    const summing = send(SUMS, '{"number":1}\n', { "content-type": "application/x-ndjson" });
    await wait();
    expect(await send(ITEMS, "{}").outcome).toEqual(OVERLOADED);
    summing.end();
    expect(await summing.outcome).toEqual(OK);
    release();
    expect(await held.outcome).toEqual(OK);
    const next = send(ITEMS, BODY);
    next.end();
    expect(await next.outcome).toEqual(OK);
  });
});

describe("what one call takes", () => {
  test("is nothing once the call has ended, whatever of its body still arrives", () => {
    const bounds = new Bounds({ maxPendingBodyBytes: 100 });
    const [live, over] = [bounds.begin(), bounds.begin()];
    live.arriving(60);
    over.end();
    over.arriving(60);
    // `hold` throws if the limit still counts the bytes of the call `over`, which has ended.
    live.hold(60);
    live.end();
  });

  test("has a timer while a body arrives, which keeps no process running", () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    onTestFinished(() => void vi.useRealTimers());
    const bounds = new Bounds({ bodyTimeoutMs: 40 });
    const call = bounds.begin();
    expect(vi.getTimerCount()).toBe(0);
    call.arriving(1);
    expect(vi.getTimerCount()).toBe(1);
    call.hold(1);
    vi.advanceTimersByTime(10);
    expect(vi.getTimerCount()).toBe(0);
    call.end();
    vi.useRealTimers();
    const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;
    const before = timers();
    const other = bounds.begin();
    other.arriving(1);
    expect(timers()).toBe(before);
    other.end();
  });
});
