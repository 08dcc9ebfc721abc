import { connect } from "node:net";
import { gzipSync } from "node:zlib";
import fc, { type Arbitrary } from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createHttpHandler, type NodeRequest, type Route } from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { EverythingSchema } from "./gen/rich/v1/rich_pb.ts";
import { richRoutes } from "./support/rich-service.ts";
import { type Listener, openHttp1, openHttp2 } from "./support/servers.ts";

/** The routes and statuses that the run reached. The test checks them, because requests that all fail in the parser would prove nothing. */
const reached = new Set<string | number>();
const responded: { path: string; rpc: string | undefined; status: number }[] = [];
const onResponse = (
  _: Headers,
  response: { request: NodeRequest; rpc: { localName: string } | undefined; status: number },
) => {
  responded.push({ path: response.request.url ?? "", rpc: response.rpc?.localName, status: response.status });
};

let http1: Listener;
let http2: Listener;
beforeAll(async () => {
  const handler = createHttpHandler({
    routes: richRoutes,
    tables: [RichServiceRoutes],
    readMaxBytes: 10_000,
    onResponse,
  });
  http1 = await openHttp1(handler);
  http2 = await openHttp2(handler);
});
afterAll(async () => {
  await http1[Symbol.asyncDispose]();
  await http2[Symbol.asyncDispose]();
});

const piece = fc.constantFrom(
  "/",
  "//",
  "v1",
  "echo",
  "count",
  "3",
  "files",
  "shelves",
  "books",
  "pages",
  "tree",
  "leaf",
  "verbs",
  "numbers",
  "nested",
  "any",
  "raw",
  "items",
  ":seal",
  ":check",
  ":",
  "%3A",
  "%2F",
  "%2f",
  "%2e%2e",
  "..",
  ".",
  "%",
  "%0",
  "%zz",
  "%FF",
  "%C3%A9",
  "%00",
  "\\",
  ";",
  "+",
  "@",
  "*",
  "**",
  "{x}",
  "?",
  "&",
  "=",
  "#",
  "__proto__",
  "constructor",
  "int32Value=1",
  "nested.name=x",
  "stringValue=%",
  "any.typeUrl=1",
  "timestamp.nanos=-5",
  "duration.seconds=999999999999999",
  "fieldMask=a__b",
  "fieldMask=foo_3",
  "value.numberValue=NaN",
  "value=1e400",
  "struct={%22a%22:1e999}",
  "~",
  "http://host/",
  "\x01",
  "é",
  "\xff",
);
const target = fc.oneof(
  fc.array(piece, { maxLength: 8 }).map((pieces) => `/${pieces.join("")}`),
  fc.array(piece, { maxLength: 8 }).map((pieces) => pieces.join("/")),
  fc.string({ unit: "binary-ascii" }),
  fc.constantFrom(
    "*",
    "http://127.0.0.1/v1/echo",
    "https://evil@x:99/v1/echo?int32Value=1",
    "//evil/v1/echo",
    `/${"a/".repeat(3_000)}`,
    `/v1/files/${"a/".repeat(2_000)}b`,
  ),
);
const method = fc.constantFrom("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "REPORT", "TRACE", "get");
const header = fc.oneof(
  fc.constantFrom(
    "content-type: application/json",
    "content-type: text/plain",
    "Content-Type: ;;",
    "content-encoding: gzip",
    "content-encoding: gzip, gzip",
    "content-encoding: br",
    "accept: text/event-stream",
    "accept: ;q=,,",
    "accept-encoding: gzip;q=abc, *",
    "connect-timeout-ms: 1",
    "connect-timeout-ms: -1",
    "grpc-timeout: 99999999H",
    "x-server-timeout: 1e9",
    "cookie: a=1",
    "cookie: b",
    "x-http-method-override: DELETE",
    "expect: 100-continue",
    "connection: close, x",
    "te: trailers",
    "authorization: \xff",
    "__proto__: x",
    "constructor: y",
  ),
  fc
    .tuple(fc.stringMatching(/^[a-z_-]{1,12}$/), fc.string({ unit: "grapheme-ascii" }))
    .map(([name, value]) => `${name}: ${value}`),
);
const body: Arbitrary<Buffer> = fc.oneof(
  fc
    .constantFrom(
      "",
      "{}",
      "{",
      "[]",
      "null",
      '{"int32Value":"x"}',
      '{"__proto__":{"x":1}}',
      '{"stringMap":{"__proto__":"x"}}',
      '{"value":1e400}',
      '{"struct":{"a":[1,-1e999]}}',
      '{"fieldMask":"a_b,foo3"}',
      '{"any":{"@type":"x/rich.v1.Nested","value":1e999}}',
      "\xff\xfe",
      "[".repeat(5_000),
      `{"nested":${'{"inner":'.repeat(500)}`,
    )
    .map((text) => Buffer.from(text, "latin1")),
  fc.constantFrom(gzipSync("{}"), gzipSync("{}").subarray(0, 12), gzipSync("x".repeat(1_000_000))),
  fc.json().map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 64 }).map((bytes) => Buffer.from(bytes)),
);

/** Generates texts of field values, both valid and nearly valid ones. */
const text = fc.oneof(
  fc.constantFrom("", "-0", "-5", "1e400", "NaN", "Infinity", "999999999999999", "a__b", "foo_3", "*", "a,b.c", "true"),
  fc.constantFrom("0001-01-01T00:00:00%2B01:00", "9999-12-31T23:59:59-01:00", "-315576000001s", "0.1234567890s", "1sx"),
  fc.constantFrom("[1e999]", '{"a":1e999}', "[[[]]]", "null", '"\\ud800"', "2020-01-01T00:00:00.1Z"),
  fc.json(),
);
const path = fc.constantFrom(
  ...EverythingSchema.fields.flatMap((field) => [
    field.jsonName,
    ...(field.message?.fields ?? []).map((inner) => `${field.name}.${inner.jsonName}`),
  ]),
);
const parameter = fc
  .tuple(path, text)
  .map(([name, value]) => `${name}=${value.replace(/[^!-~]|[&#]/gu, encodeURIComponent)}`);
const member = fc.tuple(path, text, fc.boolean()).map(([name, value, quoted]) => {
  const [outer = "", inner] = name.split(".");
  const json = quoted || value === "" ? JSON.stringify(value) : value;
  return `"${outer}":${inner === undefined ? json : `{"${inner}":${json}}`}`;
});

describe("arbitrary input", () => {
  test("never causes a 5xx and reaches no route that the raw path does not match", async () => {
    await fc.assert(
      fc.asyncProperty(
        method,
        target,
        fc.array(header, { maxLength: 4 }),
        body,
        fc.integer({ min: -3, max: 3 }),
        async (verb, path, headers, content, lie) => {
          const length = Math.max(0, content.byteLength + lie);
          const head = `${verb} ${path} HTTP/1.1\r\nhost: x\r\n${headers.map((line) => `${line}\r\n`).join("")}content-length: ${length}\r\n\r\n`;
          await checked(verb, head, content);
        },
      ),
      {
        numRuns: 1_500,
        endOnFailure: true,
        // Each outcome below has an example here, because no random request is certain to have it.
        examples: [
          ["POST", "/v1/echo", ["content-type: application/json"], Buffer.from("{}"), 0],
          ["POST", "/v1/echo", ["content-type: application/json"], Buffer.from("{"), 0],
          ["POST", "/v1/echo", ["content-type: text/plain"], Buffer.from("{}"), 0],
          ["PATCH", "/v1/echo", [], Buffer.from(""), 0],
          ["GET", "/v1/nested/1/x/end", [], Buffer.from(""), 0],
          ["GET", "/nothing", [], Buffer.from(""), 0],
        ],
      },
    );
    expect([...reached]).toEqual(expect.arrayContaining(["echo", "echoPath", "nothing", 200, 400, 404, 405, 415]));
    expect((await http1.fetchRaw({ target: "/v1/echo" })).status).toBe(200);
  });

  test("in any query field never causes a 5xx", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(parameter, { minLength: 1, maxLength: 4 }), async (parameters) => {
        const target = `/v1/echo?${parameters.join("&")}`;
        expect((await http1.fetchRaw({ target })).status, target).toBeLessThan(500);
      }),
      { numRuns: 1_500, endOnFailure: true },
    );
  });

  test("in any body field never causes a 5xx", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(member, { minLength: 1, maxLength: 4 }), async (members) => {
        const content = `{${members.join(",")}}`;
        expect(
          (await http1.fetchRaw({ method: "POST", target: "/v1/echo", body: content })).status,
          content,
        ).toBeLessThan(500);
      }),
      { numRuns: 1_500, endOnFailure: true },
    );
  });

  test("in chunked bodies never causes a 5xx", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(header, { maxLength: 3 }),
        fc.array(body, { maxLength: 3 }),
        fc.boolean(),
        async (headers, chunks, whole) => {
          const head = `POST /v1/echo HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n`;
          const parts = chunks
            .filter((chunk) => chunk.byteLength > 0)
            .map((chunk) =>
              Buffer.concat([Buffer.from(`${chunk.byteLength.toString(16)}\r\n`), chunk, Buffer.from("\r\n")]),
            );
          await checked("POST", head, Buffer.concat([...parts, Buffer.from(whole ? "0\r\n\r\n" : "")]));
        },
      ),
      { numRuns: 300, endOnFailure: true },
    );
    expect((await http1.fetchRaw({ target: "/v1/echo" })).status).toBe(200);
  });

  test("over HTTP/2 never causes a 5xx", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom("GET", "POST", "DELETE", "HEAD", "OPTIONS"),
        target,
        body,
        async (verb, path, content) => {
          const response = await http2
            .fetchRaw({ method: verb, target: path, body: verb === "POST" ? content : undefined })
            .catch(() => undefined);
          expect(response?.status ?? 0, `${verb} ${path}`).toBeLessThan(500);
        },
      ),
      { numRuns: 400, endOnFailure: true },
    );
    expect((await http2.fetchRaw({ target: "/v1/echo" })).status).toBe(200);
  });
});

async function checked(verb: string, head: string, content: Buffer): Promise<void> {
  responded.length = 0;
  const statuses = await exchange(Buffer.concat([Buffer.from(head, "latin1"), content]));
  for (const status of statuses) expect(status, head).toBeLessThan(500);
  for (const { path, rpc, status } of responded) {
    reached.add(rpc ?? "nothing").add(status);
    expect(status, head).toBeLessThan(500);
    if (rpc !== undefined) expect(named(rpc, path), `${verb} ${path} reached ${rpc}`).toBe(true);
  }
}

/** Sends bytes, half-closes, and returns the statuses of the responses. */
function exchange(bytes: Buffer): Promise<number[]> {
  return new Promise((resolve) => {
    const socket = connect(http1.port, "127.0.0.1");
    let text = "";
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1");
    });
    socket.on("error", () => {});
    socket.on("close", () => resolve([...text.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))));
    socket.end(bytes);
  });
}

/** Returns whether the raw path matches a route of the RPC. It compares decoded segments, and ignores which route has precedence. */
function named(rpc: string, rawTarget: string): boolean {
  const origin = rawTarget.replace(/^https?:\/\/[^/?#]*\/?/i, "/");
  const path = Buffer.from(origin.split("?", 1)[0] ?? "", "latin1").toString("latin1");
  const segments = path === "/" ? [] : path.slice(1).split("/");
  return RichServiceRoutes.routes
    .filter((route) => route.rpc === rpc)
    .some((route: Route) => fits(route, route.segments, segments));
}

function fits(route: Route, template: readonly string[], path: readonly string[]): boolean {
  const [first, ...rest] = template;
  const [segment, ...others] = path;
  if (first === undefined) return segment === undefined;
  if (first === "**")
    return fits(route, rest, path) || (segment !== undefined && segment !== "" && fits(route, template, others));
  if (segment === undefined || segment === "") return false;
  const bare =
    rest.length === 0 && route.verb !== "" && segment.endsWith(`:${route.verb}`)
      ? segment.slice(0, -route.verb.length - 1)
      : segment;
  return (first === "*" || [segment, bare].some((text) => safeDecode(text) === first)) && fits(route, rest, others);
}

function safeDecode(text: string): string | undefined {
  try {
    return decodeURIComponent(text);
  } catch {
    return undefined;
  }
}
