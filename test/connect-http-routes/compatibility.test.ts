/** The switches for clients of grpc-gateway, Envoy and ASP.NET: each is off by default, and an option of a table or of the handler. */
import { expect, test } from "vitest";
import {
  createHttpHandler,
  createRoutes,
  parseServiceConfig,
  type TableOptions,
} from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "./gen/relay/v1/relay_http.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { RichService } from "./gen/rich/v1/rich_pb.ts";
import { relayRoutes } from "./support/relay-service.ts";
import { richRoutes } from "./support/rich-service.ts";
import { openHttp1, type TestRequest } from "./support/servers.ts";

const RELAY = { routes: relayRoutes(), table: RelayServiceRoutes };
const RICH = { routes: richRoutes, table: RichServiceRoutes };

async function send({ routes, table }: typeof RELAY | typeof RICH, options: TableOptions, request: TestRequest) {
  await using listener = await openHttp1(createHttpHandler({ routes, tables: [{ ...table, ...options }] }));
  return await listener.fetchRaw(request);
}

const post = (target: string, body: unknown): TestRequest => ({ method: "POST", target, body: JSON.stringify(body) });

/** The largest integer that JavaScript reads exactly, and its successor. */
const [SAFE, UNSAFE] = ["9007199254740991", "9007199254740992"];
const INTEGERS = {
  int64Value: `-${SAFE}`,
  uint64Value: UNSAFE,
  fixed64Value: "7",
  int64s: ["1", `-${UNSAFE}`],
  nested: { inner: { id: "8" } },
  nestedMap: { 1: { inner: { id: SAFE } } },
  boolMap: { true: "2" },
  enumMap: { [UNSAFE]: "COLOR_RED" },
  int64Wrapper: "3",
  stringValue: "4",
  value: "5",
  struct: { a: "6" },
  timestamp: "1970-01-01T00:00:09Z",
};

test("64-bit integers are numbers where JavaScript reads them exactly, wherever they are", async () => {
  const response = await send(RICH, { int64AsNumber: true }, post("/v1/echo", INTEGERS));
  expect(response.json()).toEqual({
    ...INTEGERS,
    int64Value: -Number(SAFE),
    fixed64Value: 7,
    int64s: [1, `-${UNSAFE}`],
    nested: { inner: { id: 8 } },
    nestedMap: { 1: { inner: { id: Number(SAFE) } } },
    boolMap: { true: 2 },
    int64Wrapper: 3,
  });
  expect((await send(RICH, {}, post("/v1/echo", INTEGERS))).json()).toEqual(INTEGERS);
  for (const [value, json] of [
    ["7", 7],
    [UNSAFE, UNSAFE],
  ] as const) {
    const alone = await send(RICH, { int64AsNumber: true }, post("/v1/pick/int64", { int64Value: value }));
    expect(alone.json()).toEqual(json);
  }
});

test("unset fields, names of .proto files and numbers of enums are options of a table", async () => {
  const jsonOptions = { alwaysEmitImplicit: true, useProtoFieldName: true, enumAsInteger: true };
  const response = await send(RELAY, { jsonOptions }, post("/v1/items", { name: "a", size: "SIZE_LARGE" }));
  expect(response.json()).toEqual({ name: "a", number: "0", how: "", tags: [], size: 1 });
  const total = await send(RELAY, { jsonOptions }, post("/v1/sums/a", {}));
  expect(total.json()).toMatchObject({ content_type: "" });
  const both = { jsonOptions, int64AsNumber: true };
  expect((await send(RICH, both, post("/v1/pick/int64", { int64Value: "7" }))).json()).toBe(7);
  const unknown = await send(RELAY, { jsonOptions: { ignoreUnknownFields: false } }, post("/v1/items", { no: 1 }));
  expect(unknown.status).toBe(400);
});

test.each([
  [
    "application/x-ndjson",
    '{"result":{"name":"a","number":"1"}}\n{"error":{"code":9,"message":"as asked","details":[]}}\n',
  ],
  [
    "text/event-stream",
    'data: {"result":{"name":"a","number":"1"}}\n\nevent: error\ndata: {"error":{"code":9,"message":"as asked","details":[]}}\n\n',
  ],
  ["application/json", '[{"result":{"name":"a","number":"1"}},{"error":{"code":9,"message":"as asked","details":[]}}]'],
])("messages of streams are results, failures stay errors: %s", async (accept, text) => {
  const request = { target: "/v1/counts/a?number=1&how=fail", headers: { accept } };
  expect((await send(RELAY, { streamResults: true }, request)).text).toBe(text);
  expect((await send(RELAY, {}, request)).text).toBe(
    text.replace('{"result":{"name":"a","number":"1"}}', '{"name":"a","number":"1"}'),
  );
});

test("a single response is no result, and neither are the pieces of an HttpBody", async () => {
  const unary = await send(RELAY, { streamResults: true }, { target: "/v1/items/a" });
  expect(unary.json()).toEqual({ name: "a" });
  const raw = { target: "/v1/download/2" };
  const texts = [await send(RICH, { streamResults: true }, raw), await send(RICH, {}, raw)].map(({ text }) => text);
  expect(texts[0]).toBe(texts[1]);
});

test.each([
  ["a response", "/v1/items/a?how=headers", {}],
  ["a stream", "/v1/counts/a?number=0&how=headers", {}],
  ["a failure", "/v1/items/a?how=fail", { "x-meta": "m" }],
])("metadata has the prefix of grpc-gateway: %s", async (_, target, ofError) => {
  const headers = { "grpc-metadata-x-sent": "s" };
  const own = "x-meta" in ofError ? "x-meta" : "x-saw";
  const value = own === "x-meta" ? "m" : "s";
  const on = (await send(RELAY, { grpcMetadata: true }, { target, headers })).headers;
  const names = [...on.keys()].filter((name) => name.startsWith("grpc-metadata-"));
  expect([on.get(`grpc-metadata-${own}`), on.get(own), names.length]).toEqual([[value], undefined, 1]);
  const off = (await send(RELAY, {}, { target, headers })).headers;
  expect([off.get(own), off.get(`grpc-metadata-${own}`)]).toEqual([[own === "x-meta" ? "m" : "nothing"], undefined]);
});

test.each([
  "x-forwarded-for",
  "x-real-ip",
  "forwarded",
  "host",
  "grpc-timeout",
  "origin",
  "sec-fetch-site",
  "content-type",
])("metadata cannot replace what a connection, a proxy or a browser says: %s", async (name) => {
  const seen: (string | null)[] = [];
  const received = (_: unknown, { requestHeader }: { requestHeader: Headers }) =>
    void seen.push(requestHeader.get(name));
  const table = { ...RelayServiceRoutes, grpcMetadata: true };
  await using listener = await openHttp1(createHttpHandler({ routes: relayRoutes({ received }), tables: [table] }));
  const plain = { target: "/v1/items/a" };
  for (const headers of [{}, { [`grpc-metadata-${name}`]: "1m" }, { "grpc-metadata-": "x" }])
    expect((await listener.fetchRaw({ ...plain, headers })).status).toBe(200);
  expect(seen).toEqual([seen[0], seen[0], seen[0]]);
});

test.each([
  [
    "a header that a proxy has set stays alone",
    { "x-auth-subject": "alice", "grpc-metadata-x-auth-subject": "admin" },
    "alice",
  ],
  ["a header without a value counts", { "x-auth-subject": "", "grpc-metadata-x-auth-subject": "admin" }, ""],
  ["the prefix alone is enough", { "grpc-metadata-x-auth-subject": "a" }, "a"],
  [
    "a header of the connection ends here",
    { connection: "keep-alive, Grpc-Metadata-X-Auth-Subject", "grpc-metadata-x-auth-subject": "a" },
    null,
  ],
])("metadata is added to no header of the request: %s", async (_, headers, expected) => {
  const seen: (string | null)[] = [];
  const received = (_: unknown, { requestHeader }: { requestHeader: Headers }) =>
    void seen.push(requestHeader.get("x-auth-subject"));
  const table = { ...RelayServiceRoutes, grpcMetadata: true };
  await using listener = await openHttp1(createHttpHandler({ routes: relayRoutes({ received }), tables: [table] }));
  expect((await listener.fetchRaw({ target: "/v1/items/a", headers })).status).toBe(200);
  expect(seen).toEqual([expected]);
});

test("the only mask of a PATCH is derived whatever its name, by option", async () => {
  const http = { rules: [{ selector: "rich.v1.RichService.Echo", patch: "/v1/masked", body: "nested" }] };
  const table = createRoutes(RichService, { serviceConfig: parseServiceConfig({ type: "google.api.Service", http }) });
  const request = { method: "PATCH", target: "/v1/masked", body: '{"name":"n","inner":{"id":1}}' };
  const maskBy = async (inferUpdateMask: TableOptions["inferUpdateMask"]) => {
    await using listener = await openHttp1(
      createHttpHandler({ routes: richRoutes, tables: [{ ...table, inferUpdateMask }] }),
    );
    return (await listener.fetchRaw(request)).json();
  };
  expect(await maskBy("any-name")).toMatchObject({ fieldMask: "name,inner.id" });
  for (const off of [undefined, true, false]) expect(await maskBy(off)).not.toHaveProperty("fieldMask");
  const ofTable = await send(
    RICH,
    { inferUpdateMask: false },
    { method: "PATCH", target: "/v1/items/n", body: '{"color":1}' },
  );
  expect(ofTable.json()).not.toHaveProperty("updateMask");
});
