/** Content types other than JSON. */
import { gunzipSync } from "node:zlib";
import { create, fromBinary, type JsonValue, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { sizeDelimitedDecodeStream, sizeDelimitedEncode } from "@bufbuild/protobuf/wire";
import { anyUnpack, FileDescriptorProtoSchema } from "@bufbuild/protobuf/wkt";
import type { ConnectRouter } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import { StatusSchema } from "../../gen/google/rpc/status_pb.ts";
import { SizeDelimitedSplitter, sizeDelimited } from "../../src/connect-http-routes/codec/size-delimited.ts";
import {
  type ContentCodec,
  createFetchHandler,
  createHttpHandler,
  protobufCodec,
} from "../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "./gen/relay/v1/relay_http.ts";
import { ItemSchema, TotalSchema } from "./gen/relay/v1/relay_pb.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { EverythingSchema, NestedSchema } from "./gen/rich/v1/rich_pb.ts";
import { relayRoutes } from "./support/relay-service.ts";
import { richRoutes } from "./support/rich-service.ts";
import { type Listener, openFetch, openHttp1, openHttp2, type TestResponse } from "./support/servers.ts";

const YAML: ContentCodec = {
  kind: "value",
  mediaTypes: ["application/yaml", "text/yaml"],
  encode: (value) => stringify(value),
  decode: (bytes) => parse(new TextDecoder().decode(bytes)) as JsonValue,
};
const PROTOBUF = "application/x-protobuf";
const serving = {
  routes(router: ConnectRouter) {
    richRoutes(router);
    relayRoutes()(router);
  },
  tables: [RichServiceRoutes, RelayServiceRoutes],
};
const everything = (init: MessageInitShape<typeof EverythingSchema>) =>
  toBinary(EverythingSchema, create(EverythingSchema, init));
const item = (init: MessageInitShape<typeof ItemSchema>) => create(ItemSchema, init);
const typeOf = ({ headers }: TestResponse) => headers.get("content-type")?.[0];

describe.each([
  ["http", (handler: Parameters<typeof openHttp1>[0]) => openHttp1(handler)],
  ["http2", (handler: Parameters<typeof openHttp1>[0]) => openHttp2(handler)],
])("codecs over %s", (_, open) => {
  let listener: Listener;
  beforeAll(async () => {
    listener = await open(createHttpHandler({ ...serving, codecs: [protobufCodec, YAML] }));
  });
  afterAll(() => listener[Symbol.asyncDispose]());

  const send = (target: string, contentType: string, body: string | Uint8Array, accept?: string, method = "POST") =>
    listener.fetchRaw({ method, target, headers: { "content-type": contentType, ...(accept && { accept }) }, body });

  test("decode the request, and encode the response in the same type unless Accept says otherwise", async () => {
    const body = everything({ int64Value: 2n ** 63n - 1n, stringValue: "ä", any: { typeUrl: "x/unknown.Type" } });
    const binary = await send("/v1/echo", PROTOBUF, body);
    expect([binary.status, typeOf(binary), binary.headers.get("vary")]).toEqual([200, PROTOBUF, ["Accept"]]);
    expect(fromBinary(EverythingSchema, binary.body)).toMatchObject({ int64Value: 2n ** 63n - 1n, stringValue: "ä" });
    const json = await send(
      "/v1/echo",
      "application/protobuf; charset=x",
      everything({ int64Value: 7n }),
      "text/html, application/json",
    );
    expect([typeOf(json), json.json()]).toEqual(["application/json", { int64Value: "7" }]);
    const yaml = await send("/v1/echo", "text/yaml", "int64_value: 7\nenums: [COLOR_RED]\n", "*/*");
    expect([typeOf(yaml), yaml.text]).toEqual(["text/yaml", 'int64Value: "7"\nenums:\n  - COLOR_RED\n']);
  });

  test.each([
    ["application/yaml", "application/yaml"],
    ["application/json;q=0.5, application/yaml", "application/yaml"],
    ["application/yaml;q=0.5, application/json", "application/json"],
    ["application/x-protobuf;q=0, */*", "application/json"],
    ["application/vnd.google.protobuf", "application/vnd.google.protobuf"],
    ["text/html", "application/json"],
  ])("are chosen by Accept: %s", async (accept, expected) => {
    const response = await listener.fetchRaw({ target: "/v1/echo?int32Value=1", headers: { accept } });
    expect([response.status, typeOf(response)]).toEqual([200, expected]);
  });

  test("decode a body that is a field, under path variables, and encode a response that is one", async () => {
    const nested = toBinary(NestedSchema, create(NestedSchema, { name: "body", color: 1 }));
    const response = await send("/v1/echo/nested/5/path", PROTOBUF, nested, "application/json", "PUT");
    expect(response.json()).toEqual({ int64Value: "5", nested: { name: "path", color: "COLOR_RED" } });
    const whole = await send(
      "/v1/echo/all/path",
      PROTOBUF,
      everything({ stringValue: "body" }),
      "application/json",
      "PUT",
    );
    expect(whole.json()).toEqual({ stringValue: "path" });
    const picked = await send("/v1/pick/nested", PROTOBUF, everything({ nested: { name: "n" } }));
    expect(fromBinary(NestedSchema, picked.body).name).toBe("n");
    const list = await send("/v1/echo/list", "application/yaml", "[a, b]", undefined, "PUT");
    expect(list.text).toBe("strings:\n  - a\n  - b\n");
    const mask = await send("/v1/items/n", "application/yaml", "color: 1", "application/json", "PATCH");
    expect(mask.json()).toMatchObject({ updateMask: "color" });
  });

  test("of messages do not carry what is no message: 415 for a body, JSON for a response", async () => {
    const body = await send("/v1/echo/list", PROTOBUF, new Uint8Array(), undefined, "PUT");
    expect([body.status, typeOf(body)]).toEqual([415, PROTOBUF]);
    expect(fromBinary(StatusSchema, body.body).message).toContain("not a message");
    const scalar = await send("/v1/pick/int64", PROTOBUF, everything({ int64Value: 7n }));
    expect([typeOf(scalar), scalar.json()]).toEqual(["application/json", "7"]);
  });

  test("encode failures: google.rpc.Status", async () => {
    const detail = await send("/v1/misbehave", PROTOBUF, Uint8Array.of(0x0a, 6, ...Buffer.from("detail")));
    expect([detail.status, typeOf(detail)]).toEqual([400, PROTOBUF]);
    const status = fromBinary(StatusSchema, detail.body);
    expect([status.code, status.message]).toEqual([9, "look inside"]);
    expect(status.details.map((any) => anyUnpack(any, NestedSchema)?.name)).toEqual(["why"]);
    const opaque = await send("/v1/misbehave", "application/yaml", "how: unknown detail", PROTOBUF);
    expect(fromBinary(StatusSchema, opaque.body).details).toMatchObject([
      { typeUrl: "type.googleapis.com/unknown.Detail", value: Buffer.from([1, 2, 3]) },
    ]);
    const yaml = await listener.fetchRaw({ target: "/nowhere", headers: { accept: "application/yaml" } });
    expect([yaml.status, typeOf(yaml), parse(yaml.text)]).toMatchObject([404, "application/yaml", { code: 5 }]);
  });

  test.each([
    [PROTOBUF, Uint8Array.of(0xff, 0xff), "body: not application/x-protobuf"],
    ["application/yaml", "a: [", "body: not application/yaml"],
    ["application/yaml", "int32Value: much", "int32_value"],
  ])("refuse what they cannot decode: %s", async (contentType, body, message) => {
    const response = await send("/v1/echo", contentType, body, "application/json");
    expect([response.status, response.json()]).toMatchObject([
      400,
      { code: 3, message: expect.stringContaining(message) },
    ]);
  });

  test("are compressed as JSON is", async () => {
    const stringValue = "x".repeat(5_000);
    const headers = { accept: PROTOBUF, "accept-encoding": "gzip" };
    const response = await listener.fetchRaw({ target: `/v1/echo?stringValue=${stringValue}`, headers });
    expect([response.headers.get("content-encoding"), response.headers.get("vary")]).toEqual([
      ["gzip"],
      ["Accept, Accept-Encoding"],
    ]);
    expect(fromBinary(EverythingSchema, gunzipSync(response.body)).stringValue).toBe(stringValue);
  });

  test("of messages have size-delimited streams, in and out", async () => {
    const out = await listener.fetchRaw({ target: "/v1/counts/a?number=3", headers: { accept: PROTOBUF } });
    expect([typeOf(out), out.headers.get("vary")]).toEqual([`${PROTOBUF}; delimited=true`, ["Accept"]]);
    const numbers: bigint[] = [];
    for await (const { number } of sizeDelimitedDecodeStream(ItemSchema, new Blob([new Uint8Array(out.body)]).stream()))
      numbers.push(number);
    expect(numbers).toEqual([1n, 2n, 3n]);
    const items = [item({ number: 1n }), item({}), item({ number: 2n, how: "x".repeat(300) })];
    const body = Buffer.concat(items.map((message) => sizeDelimitedEncode(ItemSchema, message)));
    const total = await send("/v1/sums/a", PROTOBUF, body);
    expect(fromBinary(TotalSchema, total.body)).toMatchObject({ sum: 3n, messages: 3, name: "a" });
    const cut = await send("/v1/sums/a", PROTOBUF, body.subarray(0, -1), "application/json");
    expect([cut.status, cut.json()]).toMatchObject([400, { message: "body: incomplete" }]);
    const huge = await send("/v1/sums/a", PROTOBUF, Uint8Array.of(0x80, 0x80, 0x80, 0x80, 1), "application/json");
    expect(huge.status).toBe(413);
  });

  test.each([
    [undefined, `${PROTOBUF}; delimited=true`],
    ["*/*", `${PROTOBUF}; delimited=true`],
    ["text/event-stream;q=0.5, application/*;q=0.1", "text/event-stream"],
    ["text/html", "application/x-ndjson"],
  ])(
    "of messages are those of a response stream as of its request, where Accept (%s) lets them",
    async (accept, expected) => {
      const headers = { "content-type": PROTOBUF, ...(accept && { accept }) };
      const out = await listener.fetchRaw({ target: "/v1/counts/a?number=3", headers });
      expect([typeOf(out), out.headers.get("vary")]).toEqual([expected, ["Accept"]]);
    },
  );

  test("of values have no streams: 415 in, newline-delimited JSON out", async () => {
    expect((await send("/v1/sums/a", "application/yaml", "number: 1")).status).toBe(415);
    const out = await listener.fetchRaw({ target: "/v1/counts/a?number=1", headers: { accept: "application/yaml" } });
    expect(typeOf(out)).toBe("application/x-ndjson");
  });
});

test("a failure in mid-stream of messages aborts the response", async () => {
  await using listener = await openHttp1(createHttpHandler({ ...serving, codecs: [protobufCodec] }));
  const response = listener.fetchRaw({ target: "/v1/count/2?failAfter=1", headers: { accept: PROTOBUF } });
  await expect(response).rejects.toMatchObject({ code: "ECONNRESET" });
});

test("codecs are off by default", async () => {
  const listener = openFetch(createFetchHandler(serving));
  const headers = { "content-type": PROTOBUF, accept: PROTOBUF };
  const post = await listener.fetchRaw({ method: "POST", target: "/v1/echo", headers, body: new Uint8Array() });
  expect([post.status, typeOf(post), post.headers.get("vary")]).toEqual([415, "application/json", undefined]);
});

test.each([
  ["a media type twice", [protobufCodec, protobufCodec], "two codecs have the media type application/x-protobuf"],
  ["the media type of JSON", [{ ...YAML, mediaTypes: ["application/json"] }], "cannot have the media type"],
  ["no media type", [{ ...YAML, mediaTypes: ["YAML"] }], "not a media type"],
] satisfies [string, ContentCodec[], string][])("codecs with %s are refused", (_, codecs, message) => {
  expect(() => createFetchHandler({ ...serving, codecs })).toThrow(message);
});

test("size-delimited messages may arrive in any pieces", () => {
  const messages = [ItemSchema.file.proto, create(FileDescriptorProtoSchema), RichServiceRoutes.service.file.proto];
  const bytes = Buffer.concat(messages.map((message) => sizeDelimitedEncode(FileDescriptorProtoSchema, message)));
  for (const length of [1, 2, 100, bytes.byteLength]) {
    const splitter = new SizeDelimitedSplitter(100_000);
    const found: Uint8Array[] = [];
    for (let at = 0; at < bytes.byteLength; at += length) found.push(...splitter.push(bytes.subarray(at, at + length)));
    found.push(...splitter.end());
    expect(Buffer.concat(found.map(sizeDelimited))).toEqual(bytes);
    expect(found.length).toBe(messages.length);
  }
  expect(() => new SizeDelimitedSplitter(100).push(new Uint8Array(6).fill(0x80))).toThrow("not size-delimited");
});
