import { gzipSync } from "node:zlib";
import { create, createRegistry } from "@bufbuild/protobuf";
import { DurationSchema, StringValueSchema } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { rolldown } from "rolldown";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  createRestClient,
  RestError,
  type RestTransportOptions,
} from "../../../src/connect-http-routes/client/index.ts";
import {
  createFetchHandler,
  createHttpHandler,
  createRoutes,
  parseTemplate,
} from "../../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "../gen/relay/v1/relay_http.ts";
import { ItemSchema, RelayService } from "../gen/relay/v1/relay_pb.ts";
import { RichServiceRoutes } from "../gen/rich/v1/rich_http.ts";
import { relayRoutes } from "../support/relay-service.ts";
import { richRoutes } from "../support/rich-service.ts";
import { type Listener, openHttp1 } from "../support/servers.ts";

let onEnded: () => void = () => {};
const serving = {
  routes: relayRoutes({ ended: () => onEnded() }),
  tables: [RelayServiceRoutes],
  jsonOptions: { registry: createRegistry(ItemSchema) },
  trailersAsHeaders: true,
};
let listener: Listener;
beforeAll(async () => {
  listener = await openHttp1(createHttpHandler(serving));
});
afterAll(() => listener[Symbol.asyncDispose]());

const relay = (options: Partial<RestTransportOptions> = {}) =>
  createRestClient(RelayServiceRoutes, { baseUrl: listener.origin, registry: createRegistry(ItemSchema), ...options });
const errorOf = (promise: Promise<unknown>): Promise<ConnectError> =>
  promise.then(
    () => Promise.reject(new Error("no error")),
    (error: unknown) => ConnectError.from(error),
  );
async function all<T>(messages: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const message of messages) list.push(message);
  return list;
}
async function* items(...numbers: number[]) {
  for (const number of numbers) yield { name: "a", number: BigInt(number) };
}

describe("a REST client", () => {
  test("calls unary RPCs, with headers and trailers", async () => {
    const headers: (string | null)[] = [];
    const item = { name: "shelves/ä b/x:y", number: 2n ** 63n - 1n, tags: ["&", "+ %"] };
    const response = await relay().get(item, { onHeader: (header) => headers.push(header.get("content-type")) });
    expect(response).toEqual(create(ItemSchema, item));
    expect(headers).toEqual(["application/json"]);
    const seen: (string | null)[] = [];
    await relay().get(
      { name: "a", how: "headers" },
      {
        headers: { "x-sent": "yes" },
        onHeader: (header) => seen.push(header.get("x-saw")),
        onTrailer: (trailer) => seen.push(trailer.get("x-late")),
      },
    );
    expect(seen).toEqual(["yes", "t"]);
  });

  test.each<[object | undefined, string]>([
    [undefined, "baseUrl must be a text, and is undefined"],
    [{}, "baseUrl must be a text, and is undefined"],
    [{ baseUrl: undefined }, "baseUrl must be a text, and is undefined"],
    [{ baseURL: "https://api.example.com" }, "baseUrl must be a text, and is undefined: baseURL is not an option"],
    [{ url: "https://api.example.com" }, "baseUrl must be a text, and is undefined: url is not an option"],
    [
      { baseUrl: null, origin: "https://api.example.com" },
      "baseUrl must be a text, and is null: origin is not an option",
    ],
  ])("is not created with the options %j", (options, text) => {
    expect(() => createRestClient(RelayServiceRoutes, options as never)).toThrow(new TypeError(text));
  });

  test("sends its credentials to no target of a redirect", async () => {
    const redirects: unknown[] = [];
    const redirecting: typeof fetch = async (_, init) => {
      redirects.push(init?.redirect);
      return new Response(null, { status: 307, headers: { location: "https://other.example/" } });
    };
    const { code } = await errorOf(relay({ fetch: redirecting }).get({ name: "a" }));
    expect([code, redirects]).toEqual([Code.Unknown, ["manual"]]);
  });

  test("is the same from descriptors at run time", async () => {
    const client = createRestClient(createRoutes(RelayService), { baseUrl: `${listener.origin}/` });
    expect((await client.get({ name: "a" })).name).toBe("a");
  });

  test("escapes all but the unreserved characters of RFC 3986", async () => {
    const urls: string[] = [];
    const recording: typeof fetch = (input, init) => {
      urls.push(String(input));
      return fetch(input, init);
    };
    const name = "a!'()*;,~-._b";
    expect((await relay({ fetch: recording }).get({ name })).name).toBe(name);
    expect(urls).toEqual([expect.stringMatching(/\/a%21%27%28%29%2A%3B%2C~-\._b$/)]);
  });

  test("chooses the binding that can carry the message", async () => {
    // No path variable can carry these names, so the client chooses the route that has the whole message in the body.
    for (const name of ["", ".", "a/../b", "a//b"]) {
      expect((await relay().get({ name, number: 5n })).number).toBe(5n);
      expect((await relay().get({ name })).name).toBe(name);
    }
  });

  test("refuses a message that no binding can carry", async () => {
    const error = await errorOf(all(relay().count({ name: "" })));
    expect([error.code, error.rawMessage]).toEqual([
      Code.InvalidArgument,
      expect.stringContaining('GET /v1/counts/{name}: "" does not match the path variable name'),
    ]);
  });

  test("reads server streams, and ends them when the consumer stops", async () => {
    const numbers = (await all(relay().count({ name: "a", number: 3n }))).map(({ number }) => number);
    expect(numbers).toEqual([1n, 2n, 3n]);
    const ended = new Promise<void>((resolve) => {
      onEnded = resolve;
    });
    for await (const { number } of relay().count({ name: "a", number: 1n, how: "hang" })) {
      expect(number).toBe(1n);
      break;
    }
    await ended;
  });

  test("ends a stream that has a signal, by the signal and when the consumer stops", async () => {
    const openHanging = async (signal: AbortSignal) => {
      const { promise: ended, resolve } = Promise.withResolvers<void>();
      onEnded = resolve;
      const stream = relay().count({ name: "a", number: 1n, how: "hang" }, { signal })[Symbol.asyncIterator]();
      await stream.next();
      return { stream, ended };
    };
    const aborter = new AbortController();
    const aborted = await openHanging(aborter.signal);
    aborter.abort();
    expect((await errorOf(aborted.stream.next())).code).toBe(Code.Canceled);
    await aborted.ended;
    const left = await openHanging(new AbortController().signal);
    await left.stream.return?.();
    await left.ended;
  });

  test("sends client streams and uploads", async () => {
    expect(await relay().sum(items(1, 2, 3))).toMatchObject({ sum: 6n, messages: 3, name: "a" });
    async function* pieces() {
      for (const text of ["ab", "cde"]) {
        yield { name: "f", file: { contentType: "text/x-thing", data: new TextEncoder().encode(text) } };
      }
    }
    expect(await relay().upload(pieces())).toMatchObject({ sum: 5n, name: "f", contentType: "text/x-thing" });
    async function* differing() {
      yield { name: "a" };
      yield { name: "b" };
    }
    expect((await errorOf(relay().sum(differing()))).message).toContain("share their path");
    expect((await errorOf(relay().sum(items()))).code).toBe(Code.InvalidArgument);
  });

  test("streams both ways where fetch and the server do", async () => {
    const handler = createFetchHandler(serving);
    const client = relay({ fetch: (url, init) => handler(new Request(url as string, init)) });
    expect((await all(client.chat(items(1, 2)))).map(({ number }) => number)).toEqual([2n, 4n]);
    expect((await errorOf(all(relay().chat(items(1))))).rawMessage).toBe("bidirectional streaming needs HTTP/2");
  });

  test("throws ConnectError with code, details and metadata", async () => {
    const error = await errorOf(relay().get({ name: "a", how: "detail" }));
    expect([error.code, error.rawMessage]).toEqual([Code.ResourceExhausted, "as asked"]);
    expect(error.findDetails(ItemSchema)).toEqual([create(ItemSchema, { name: "detail", number: 7n })]);
    const failed = await errorOf(relay().get({ name: "a", how: "fail" }));
    expect([failed.code, failed.metadata.get("x-meta")]).toEqual([Code.FailedPrecondition, "m"]);
  });

  test("finds details without a registry, and says which it could not decode", async () => {
    const details = [
      { "@type": "type.googleapis.com/relay.v1.Item", name: "detail", number: "7" },
      { "@type": "type.googleapis.com/google.protobuf.Duration", value: "1.5s" },
      { "@type": "type.googleapis.com/google.protobuf.StringValue", value: "abcd" },
      { "@type": "type.googleapis.com/acme.Bytes", value: "AQI=" },
      { "@type": "type.googleapis.com/relay.v1.Item", name: 7 },
    ];
    const body = JSON.stringify({ code: Code.NotFound, message: "gone", details });
    const fetch = async () => new Response(body, { status: 404 });
    const client = createRestClient(RelayServiceRoutes, { baseUrl: listener.origin, fetch });
    const error = await errorOf(client.get({ name: "a" }));
    expect(error.findDetails(ItemSchema)).toEqual([create(ItemSchema, { name: "detail", number: 7n })]);
    expect(error.findDetails(DurationSchema)).toEqual([create(DurationSchema, { seconds: 1n, nanos: 500_000_000 })]);
    expect(error.findDetails(StringValueSchema)[0]?.value).toBe("abcd");
    expect(error.findDetails(createRegistry(ItemSchema, DurationSchema))).toHaveLength(2);
    expect(error.details).toContainEqual(
      expect.objectContaining({ type: "acme.Bytes", value: new Uint8Array([1, 2]) }),
    );
    if (!(error instanceof RestError)) throw new Error("no RestError");
    expect(error.undecoded).toEqual([details[0], details[1], details[4]]);
  });

  test("throws the failure of a stream after its messages", async () => {
    const numbers: bigint[] = [];
    const read = async () => {
      for await (const { number } of relay().count({ name: "a", number: 2n, how: "detail" })) numbers.push(number);
    };
    const error = await errorOf(read());
    expect([numbers, error.code]).toEqual([[1n, 2n], Code.ResourceExhausted]);
    expect(error.findDetails(ItemSchema)[0]?.name).toBe("detail");
  });

  test("ends at its deadline and when it is cancelled", async () => {
    expect((await errorOf(relay().get({ name: "a", how: "hang" }, { timeoutMs: 30 }))).code).toBe(
      Code.DeadlineExceeded,
    );
    const ended = new Promise<void>((resolve) => {
      onEnded = resolve;
    });
    const caller = new AbortController();
    const call = errorOf(relay().get({ name: "a", how: "hang" }, { signal: caller.signal }));
    await relay().get({ name: "b" });
    caller.abort();
    expect((await call).code).toBe(Code.Canceled);
    await ended;
  });

  test("runs interceptors", async () => {
    const seen: string[] = [];
    const interceptor: Interceptor = (next) => async (request) => {
      seen.push(request.method.name);
      request.header.set("x-sent", "by the interceptor");
      const response = await next(request);
      seen.push(response.header.get("x-saw") ?? "");
      return response;
    };
    await relay({ interceptors: [interceptor] }).get({ name: "a", how: "headers" });
    expect(seen).toEqual(["Get", "by the interceptor"]);
  });

  test.each([
    ["a proxy's page", () => new Response("<html>", { status: 502 }), Code.Unavailable],
    ["an unknown status", () => new Response("", { status: 418 }), Code.Unknown],
    ["a success that is not JSON", () => new Response("<html>"), Code.Internal],
    ["JSON of another type", () => new Response('{"number":"x"}'), Code.Internal],
    ["no connection", () => Promise.reject(new TypeError("fetch failed")), Code.Unavailable],
  ])("reports %s", async (_, respond, code) => {
    const client = relay({ fetch: async () => respond() });
    expect((await errorOf(client.get({ name: "a" }))).code).toBe(code);
  });

  test("reports a stream that is cut", async () => {
    const client = relay({ fetch: async () => new Response('data: {"name":"a"}\n\ndata: {"na') });
    expect((await errorOf(all(client.count({ name: "a" })))).code).toBe(Code.DataLoss);
  });

  test("decodes errors of another form", async () => {
    const client = relay({
      fetch: async () => new Response('{"error":{"code":"gone"}}', { status: 410 }),
      errorDecoder: (body) => new ConnectError(JSON.stringify(body), Code.NotFound),
    });
    expect((await errorOf(client.get({ name: "a" }))).rawMessage).toBe('{"error":{"code":"gone"}}');
  });

  test("sends no body with a DELETE that has nothing to carry in one, and accepts raw responses of any type", async () => {
    const sent: unknown[][] = [];
    const fetch: typeof globalThis.fetch = async (_, init) => {
      sent.push([init?.method, init?.body, new Headers(init?.headers).get("accept")]);
      return new Response("{}");
    };
    const template = "/v1/items/{name}";
    const route = { rpc: "get", method: "DELETE", template, ...parseTemplate(template), body: "*", responseBody: "" };
    const client = createRestClient({ service: RelayService, routes: [route] }, { baseUrl: "http://x", fetch });
    await client.get({ name: "a" });
    await client.get({ name: "a", number: 1n });
    await createRestClient(RichServiceRoutes, { baseUrl: "http://x", fetch }).upload({ contentType: "text/csv" });
    expect(sent).toEqual([
      ["DELETE", undefined, "application/json"],
      ["DELETE", '{"number":"1"}', "application/json"],
      ["POST", new Uint8Array(), "*/*"],
    ]);
  });

  test("carries raw bodies down and up", async () => {
    const handler = createFetchHandler({ routes: richRoutes, tables: [RichServiceRoutes] });
    const client = createRestClient(RichServiceRoutes, {
      baseUrl: "http://x",
      fetch: (url, init) => handler(new Request(url as string, init)),
    });
    const pieces = await all(client.download({ to: 2 }));
    expect(pieces.map(({ data, contentType }) => [Buffer.from(data).toString(), contentType])).toEqual([
      ["1\n", "text/csv"],
      ["2\n", "text/csv"],
    ]);
  });
});

test("a bundle with the REST client is at most 6.35 kB larger, compressed, beyond @bufbuild/protobuf", async () => {
  const bundle = await rolldown({
    input: "src/connect-http-routes/client/index.ts",
    external: [/^@bufbuild\/protobuf/],
    platform: "browser",
  });
  const { output } = await bundle.generate({ minify: true, format: "esm" });
  await bundle.close();
  const [{ code }] = output;
  expect(code).not.toMatch(/from\s*"node:|\bprocess\.|\bBuffer\b/);
  expect(gzipSync(code, { level: 9 }).byteLength).toBeLessThanOrEqual(6.35 * 1024);
});
