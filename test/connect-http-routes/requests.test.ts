import { gunzipSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createFetchHandler, createHttpHandler } from "../../src/connect-http-routes/index.ts";
import { RichServiceRoutes } from "./gen/rich/v1/rich_http.ts";
import { richRoutes } from "./support/rich-service.ts";
import {
  type Listener,
  openFetch,
  openHttp1,
  openHttp2,
  type TestRequest,
  type TestResponse,
} from "./support/servers.ts";

const options = { routes: richRoutes, tables: [RichServiceRoutes], readMaxBytes: 2_000, maxTimeoutMs: 60_000 };
const json = { "content-type": "application/json" };

describe.each([
  ["HTTP/1.1", () => openHttp1(createHttpHandler(options))],
  ["HTTP/2", () => openHttp2(createHttpHandler(options))],
  ["fetch", async () => openFetch(createFetchHandler(options))],
] as const)("over %s", (protocol, open) => {
  let listener: Listener;
  beforeAll(async () => {
    listener = await open();
  });
  afterAll(() => listener[Symbol.asyncDispose]());

  const fetchRaw = (request: TestRequest): Promise<TestResponse> => listener.fetchRaw(request);
  const echoed = async (target: string, body?: unknown, method = body === undefined ? "GET" : "POST") => {
    const response = await fetchRaw({
      method,
      target,
      headers: json,
      body: body === undefined ? undefined : JSON.stringify(body),
    });
    expect(response.status, response.text).toBe(200);
    return response.json();
  };
  const refused = async (request: TestRequest) => {
    const { status, text, json: body } = await fetchRaw(request);
    expect(text).toMatch(/^\{/);
    return { status, ...(body() as { code: number; message: string }) };
  };

  describe("a query", () => {
    test.each([
      [
        "names fields in JSON and in proto spelling",
        "int32Value=1&string_value=a",
        { int32Value: 1, stringValue: "a" },
      ],
      [
        "keeps repeated values in order of appearance",
        "int32s=3&strings=x&int32s=1&int32s=2",
        { int32s: [3, 1, 2], strings: ["x"] },
      ],
      [
        "sets fields of nested messages",
        "nested.name=n&nested.inner.id=5&nested.inner.tags=a&nested.inner.tags=b",
        { nested: { name: "n", inner: { id: "5", tags: ["a", "b"] } } },
      ],
      ["decodes + and escapes once", "stringValue=a+b%2Bc%2520%C3%A9", { stringValue: "a b+c%20é" }],
      ["accepts a name with escapes", "%73tringValue=x", { stringValue: "x" }],
      ["accepts empty values", "stringValue=&optionalString&strings=", { optionalString: "", strings: [""] }],
      [
        "accepts 64-bit integers whole",
        "int64Value=-9223372036854775808&uint64Value=18446744073709551615",
        { int64Value: "-9223372036854775808", uint64Value: "18446744073709551615" },
      ],
      [
        "accepts floats as proto JSON writes them",
        "doubleValue=-1.5e-3&floatValue=NaN&doubles=Infinity&doubles=-Infinity",
        { doubleValue: -0.0015, floatValue: "NaN", doubles: ["Infinity", "-Infinity"] },
      ],
      [
        "accepts enums by name and by any number",
        "enumValue=COLOR_RED&enums=-2&enums=77",
        { enumValue: "COLOR_RED", enums: ["COLOR_NEGATIVE", 77] },
      ],
      [
        "accepts closed enums by the numbers they have",
        "closed.value=1&closed.values=CLOSED_ONE",
        { closed: { value: "CLOSED_ONE", values: ["CLOSED_ONE"] } },
      ],
      [
        "accepts bytes in both alphabets, padded or not",
        "bytesValue=-_8%3D&bytess=%2B/8&bytess=AA",
        { bytesValue: "+/8=", bytess: ["+/8=", "AA=="] },
      ],
      [
        "accepts timestamps and durations",
        "timestamp=2020-01-02T03:04:05.006%2B01:00&duration=-1.5s",
        { timestamp: "2020-01-02T02:04:05.006Z", duration: "-1.500s" },
      ],
      ["accepts field masks in both spellings", "fieldMask=fooBar,baz.qux_quux", { fieldMask: "fooBar,baz.quxQuux" }],
      [
        "accepts wrappers, also of zero",
        "int32Wrapper=0&boolWrapper=false&stringWrapper=&int64Wrapper=7",
        { int32Wrapper: 0, boolWrapper: false, stringWrapper: "", int64Wrapper: "7" },
      ],
      [
        "accepts arbitrary JSON",
        "value=%7B%22a%22:[1,null]%7D&struct=%7B%22b%22:true%7D&listValue=[1]",
        { value: { a: [1, null] }, struct: { b: true }, listValue: [1] },
      ],
      ["accepts the field mask of everything", "fieldMask=*", { fieldMask: "*" }],
      ["accepts a member of a oneof, zero or not", "oneofInt32=0", { oneofInt32: 0 }],
      ["accepts a field whose JSON name is its own", "@other=1", { "@other": "1" }],
      ["ignores unknown names", "nope=1&__proto__=3&constructor.name=4&toString=5&nope[a]=6&[x]=7&]=8", {}],
      [
        "accepts entries of maps",
        "stringMap[a]=1&string_map[b.c]=&stringMap%5B__proto__%5D=x&boolMap[true]=-5&stringMap[a]b]=y",
        { stringMap: JSON.parse('{"a":"1","b.c":"","__proto__":"x","a]b":"y"}'), boolMap: { true: "-5" } },
      ],
      ["ignores empty pairs", "&&int32Value=1&", { int32Value: 1 }],
    ])("%s", async (_, query, expected) => {
      expect(await echoed(`/v1/echo?${query}`)).toEqual(expected);
    });

    test.each([
      ["int32Value=1&int32Value=2", "int32Value", "more than once"],
      ["int32Value=1&int32_value=2", "int32_value", "more than once"],
      ["nested.name=a&nested.name=a", "nested.name", "more than once"],
      ["oneofString=a&oneofInt32=1", "oneofInt32", "oneofString of the same oneof is given too"],
      ["oneofNested.name=a&oneofBool=true", "oneofBool", "oneofNested of the same oneof"],
      ["int32Value=", "int32Value", "expected an integer"],
      ["int32Value=1.0", "int32Value", "expected an integer"],
      ["int32Value=%201", "int32Value", "expected an integer"],
      ["int32Value=0x1f", "int32Value", "expected an integer"],
      ["int32Value=2147483648", "int32Value", "from -2147483648 to 2147483647"],
      ["uint32Value=-1", "uint32Value", "from 0 to 4294967295"],
      ["int64Value=9223372036854775808", "int64Value", "from -9223372036854775808"],
      ["uint64Value=99999999999999999999999", "uint64Value", "expected an integer"],
      ["boolValue=TRUE", "boolValue", "expected true or false"],
      ["boolValue=1", "boolValue", "expected true or false"],
      ["doubleValue=1e999", "doubleValue", "out of range"],
      ["floatValue=3.5e38", "floatValue", "out of range"],
      ["doubleValue=nan", "doubleValue", "expected a number"],
      ["doubleValue=.5", "doubleValue", "expected a number"],
      ["enumValue=RED", "enumValue", "expected a value of rich.v1.Color"],
      ["closed.value=7", "closed.value", "no value of rich.v1.Closed"],
      ["bytesValue=a", "bytesValue", "expected base64"],
      ["bytesValue=-/AA", "bytesValue", "expected base64"],
      ["timestamp=yesterday", "timestamp", "expected a google.protobuf.Timestamp"],
      ["timestamp=2020-13-02T03:04:05Z", "timestamp", "expected a google.protobuf.Timestamp"],
      ["duration=5", "duration", "expected a google.protobuf.Duration"],
      ["fieldMask=a,,b", "fieldMask", "expected a field mask"],
      ["fieldMask=a__b", "fieldMask", "expected a field mask"],
      ["fieldMask=foo_3", "fieldMask", "expected a field mask"],
      ["fieldMask=a*", "fieldMask", "expected a field mask"],
      ["value=1e400", "value", "expected a google.protobuf.Value"],
      ["struct={%22a%22:1e999}", "struct", "expected a google.protobuf.Struct"],
      [`listValue=[${"9".repeat(400)}]`, "listValue", "expected a google.protobuf.ListValue"],
      ["boolWrapper=yes", "boolWrapper", "expected true or false"],
      ["struct=[1]", "struct", "expected a google.protobuf.Struct"],
      ["nested=x", "nested", "cannot be given in a query"],
      ["nesteds=x", "nesteds", "cannot be given in a query"],
      ["stringMap=x", "stringMap", "cannot be given in a query"],
      ["any=x", "any", "cannot be given in a query"],
      ["nested.nope=2", "nested.nope", 'message rich.v1.Nested has no field "nope"'],
      ["nested.__proto__.x=6", "nested.__proto__.x", "has no field"],
      ["floatValue.x=1", "floatValue.x", "has no fields that a query can set"],
      ["timestamp.seconds=5", "timestamp.seconds", "has no fields that a query can set"],
      ["nesteds.name=1", "nesteds.name", "has no fields that a query can set"],
      ["any.typeUrl=1", "any.typeUrl", "has no fields that a query can set"],
      ["int64Wrapper.value=1", "int64Wrapper.value", "has no fields that a query can set"],
      ["stringMap.k=1", "stringMap.k", "has no fields that a query can set"],
      ["stringMap[a]=1&string_map[a]=2", "string_map[a]", "more than once"],
      ["boolMap[x]=1", "boolMap[x]", "expected true or false"],
      ["stringValue[k]=1", "stringValue[k]", "string_value is not a map"],
      ["stringMap[k=1", "stringMap[k", "a map key ends with ]"],
      ["nestedMap[1].name=n", "nestedMap[1].name", "a map key ends with ]"],
      ["value=%22%5Cud800%22", "value", "expected a google.protobuf.Value"],
    ])("is refused: %s", async (query, field, reason) => {
      const { status, code, message } = await refused({ target: `/v1/echo?${query}` });
      expect({ status, code }).toEqual({ status: 400, code: 3 });
      expect(message).toContain(`query: ${field}: `);
      expect(message).toContain(reason);
    });

    test.each(["stringValue=%", "stringValue=%zz", "stringValue=%FF", "%C3=1"])(
      "with malformed escapes is refused: %s",
      async (query) => {
        expect(await refused({ target: `/v1/echo?${query}` })).toMatchObject({
          status: 400,
          message: expect.stringContaining("query: malformed"),
        });
      },
    );

    test("cannot set fields bound by path or body, in either spelling", async () => {
      expect(await echoed("/v1/nested/7/n/end?nested.inner.id=8&nested.name=x&nested.color=1")).toEqual({
        nested: { name: "n", inner: { id: "7" }, color: "COLOR_RED" },
      });
      expect(
        await echoed("/v1/echo/nested/1/n?nested.color=1&int64_value=3&int64Value=4", { inner: { id: 2 } }, "PUT"),
      ).toEqual({
        int64Value: "1",
        nested: { name: "n", inner: { id: "2" } },
      });
    });

    test("is ignored if the body is the whole message", async () => {
      expect(await echoed("/v1/echo?int32Value=x&%zz", { boolValue: true })).toEqual({ boolValue: true });
    });
  });

  describe("a path", () => {
    test("binds the variables of the template and wins over the body", async () => {
      expect(await echoed("/v1/echo/all/p", { stringValue: "b", int32Value: 2 }, "PUT")).toEqual({
        stringValue: "p",
        int32Value: 2,
      });
      expect(await echoed("/v1/echo/nested/1/p", { name: "b" }, "PUT")).toEqual({
        int64Value: "1",
        nested: { name: "p" },
      });
    });

    test.each([
      ["/v1/nested/x/n/end", "nested.inner.id", "expected an integer"],
      ["/v1/known/x/1s/a/true/1/1/s/AA", "timestamp", "expected a google.protobuf.Timestamp"],
      ["/v1/others/s/yes/AA/1/0/o", "bool_value", "expected true or false"],
    ])("with an invalid value is refused: %s", async (target, field, reason) => {
      expect(await refused({ target })).toMatchObject({ status: 400, message: `path: ${field}: ${reason}` });
    });

    test("with malformed escapes is refused", async () => {
      expect(await refused({ target: "/v1/files/%FF" })).toMatchObject({ status: 400, code: 3 });
    });

    test.each([
      "/v1/echo/",
      "//v1/echo",
      "/v1//echo",
      "/v1/nope",
      "/v1/Echo",
      "/v1/count",
      "/rich.v1.RichService/Echo",
    ])("without a route is not found: %s", async (target) => {
      expect(await refused({ target })).toMatchObject({ status: 404, code: 5 });
    });
  });

  describe("a body", () => {
    test("may be empty, for an empty message", async () => {
      const response = await fetchRaw({ method: "POST", target: "/v1/echo" });
      expect([response.status, response.text]).toEqual([200, "{}"]);
      expect(await fetchRaw({ method: "POST", target: "/v1/echo", body: "", headers: json })).toMatchObject({
        status: 200,
      });
    });

    test("may be a field of any kind", async () => {
      expect(await echoed("/v1/echo/scalar/1", "-5", "PUT")).toEqual({
        int64Value: "-5",
        nested: { inner: { id: "1" } },
      });
      expect(await echoed("/v1/echo/list", ["a", "b"], "PUT")).toEqual({ strings: ["a", "b"] });
      expect(await echoed("/v1/echo/messages", [{ name: "a" }], "PUT")).toEqual({ nesteds: [{ name: "a" }] });
      expect(await echoed("/v1/echo/map", { k: "v" }, "PUT")).toEqual({ stringMap: { k: "v" } });
      expect(await echoed("/v1/echo/value", null, "PUT")).toEqual({ value: null });
      expect(await echoed("/v1/echo/value?int32_value=1", [1, { a: null }], "PUT")).toEqual({
        value: [1, { a: null }],
        int32Value: 1,
      });
    });

    test("is drained and ignored where none is bound", async () => {
      const response = await fetchRaw({
        method: "DELETE",
        target: "/v1/echo/5",
        body: "not JSON",
        headers: { "content-type": "text/plain" },
      });
      expect([response.status, response.json()]).toEqual([200, { uint64Value: "5" }]);
    });

    test.each([
      [
        '{"int64s":[\n9007199254740993,\t-9007199254740993, 1E1]}',
        { int64s: ["9007199254740993", "-9007199254740993", "10"] },
      ],
      [
        '{"int64Value":9007199254740993,"uint64Value":18446744073709551615}',
        { int64Value: "9007199254740993", uint64Value: "18446744073709551615" },
      ],
      [
        '{"int64s":[9223372036854775807,-9223372036854775808,1]}',
        { int64s: ["9223372036854775807", "-9223372036854775808", "1"] },
      ],
      [
        '{"nested":{"inner":{"id":9007199254740993}},"int64Wrapper":9007199254740993}',
        { nested: { inner: { id: "9007199254740993" } }, int64Wrapper: "9007199254740993" },
      ],
      [
        '{"boolMap":{"true":9007199254740993},"doubleValue":12345678901234567890}',
        { boolMap: { true: "9007199254740993" }, doubleValue: 12345678901234567000 },
      ],
      [
        '{"value":{"__proto__":[9007199254740993]},"struct":{"a":9007199254740992}}',
        { value: JSON.parse('{"__proto__":[9007199254740992]}'), struct: { a: 9007199254740992 } },
      ],
      [
        '{"int64Value":9007199254740993.0,"uint64Value":9007199254740993e0,"int64s":[9.007199254740993E+15,-90071992547409930e-1]}',
        {
          int64Value: "9007199254740993",
          uint64Value: "9007199254740993",
          int64s: ["9007199254740993", "-9007199254740993"],
        },
      ],
      [
        '{"uint64Value":999999999999999e4,"int64Wrapper":0.0e5,"int32Value":12e1,"doubleValue":1.5e3}',
        { uint64Value: "9999999999999990000", int64Wrapper: "0", int32Value: 120, doubleValue: 1500 },
      ],
    ])("keeps 64-bit integers exact, also as numbers: %s", async (body, expected) => {
      const response = await fetchRaw({ method: "POST", target: "/v1/echo", headers: json, body });
      expect([response.status, response.json()]).toEqual([200, expected]);
    });

    test("may have surrogate pairs as escapes, and texts that look like an escape", async () => {
      const body = '{"stringValue":"\\ud83d\\ude00 \\\\ud800","value":["\\u00e9"]}';
      const response = await fetchRaw({ method: "POST", target: "/v1/echo", headers: json, body });
      expect([response.status, response.json()]).toEqual([200, { stringValue: "😀 \\ud800", value: ["é"] }]);
    });

    test("with unknown fields is accepted", async () => {
      expect(await echoed("/v1/echo", { nope: 1, int32Value: 2, __proto__x: 3 })).toEqual({ int32Value: 2 });
    });

    test("cannot pollute prototypes", async () => {
      const body =
        '{"__proto__":{"polluted":1},"stringMap":{"__proto__":"x","constructor":"y"},"struct":{"__proto__":{"polluted":1}}}';
      const response = await fetchRaw({ method: "POST", target: "/v1/echo", body, headers: json });
      expect(response.status).toBeLessThan(500);
      expect(({} as { polluted?: unknown }).polluted).toBeUndefined();
    });

    test.each([
      ["{", "body: not JSON"],
      ["[]", "body: "],
      ["null", "body: "],
      ['"x"', "body: "],
      ['{"int32Value":"x"}', "body: int32Value: "],
      ['{"int32_value":"x"}', "body: int32_value: "],
      ['{"nested":{"inner":{"id":{}}}}', "body: nested.inner.id: "],
      ['{"nesteds":[{},{"name":1}]}', "body: nesteds[1].name: "],
      ['{"nesteds":[{},null]}', "body: nesteds[1]: "],
      ['{"nesteds":{}}', "body: nesteds: "],
      ['{"nestedMap":{"1":{"at":"now"}}}', "body: nestedMap[1].at: "],
      ['{"nestedMap":{"x":{}}}', "body: nestedMap: "],
      ['{"timestamps":["2020-01-02T03:04:05Z","now"]}', "body: timestamps[1]: "],
      ['{"nested":{"color":{}}}', "body: nested.color: "],
      ['{"int32Wrapper":"x"}', "body: int32Wrapper: "],
      ['{"duration":"1.0000000001s"}', "body: duration: out of range"],
      ['{"any":{"@type":"x/no.such.Type"}}', "body: any: "],
      ['{"stringValue":12345678901234567}', "body: stringValue: "],
      ['{"bytesValue":1234567890123456}', "body: bytesValue: "],
      ['{"stringWrapper":12345678901234567}', "body: stringWrapper: "],
      ['{"fieldMask":1e20}', "body: fieldMask: "],
      ['{"stringValue":"\\ud800"}', "body: stringValue: a text has a lone surrogate"],
      ['{"struct":{"a":["\\ude00\\ud83d"]}}', "body: struct.a[0]: a text has a lone surrogate"],
      ['{"value":{"\\ud800":1}}', "body: value: a text has a lone surrogate"],
      ['{"oneofString":"a","oneofInt32":1}', "body: "],
      ['{"int32Value":1,"int32Value":1}', 'body: duplicate key "int32Value"'],
      ['{"int32Value":1,"int32\\u0056alue":2}', 'body: duplicate key "int32Value"'],
      ['{"int32Value":1,"int32_value":2}', 'body: duplicate key "int32_value"'],
      ['{"nesteds":[{},{"some_name":"","someName":""},{"inner":{"id":1,"id":2}}]}', 'body: duplicate key "id"'],
      ['{"struct":{"a":[{"b":1,"c":"\\"","b":2}]}}', 'body: duplicate key "b"'],
      ['{"stringMap":{"k":"","k":""}}', 'body: duplicate key "k"'],
      ['{"nope":{"a":1,"a":1}}', 'body: duplicate key "a"'],
      ['{"int64Value":9007199254740991.4}', "body: int64Value: "],
      ['{"uint64Value":1e20}', "body: uint64Value: "],
      ['{"int64s":[1e-1]}', "body: int64s"],
      ['{"value":1e400}', "body: a number is out of range"],
      ['{"struct":{"a":[-1e999]}}', "body: a number is out of range"],
      [`{"listValue":[${"9".repeat(400)}]}`, "body: a number is out of range"],
    ])("that is no message is refused: %s", async (body, reason) => {
      const { status, code, message } = await refused({ method: "POST", target: "/v1/echo", body, headers: json });
      expect({ status, code }).toEqual({ status: 400, code: 3 });
      expect(message).toContain(reason);
    });

    test("that is not UTF-8 is refused", async () => {
      const body = Buffer.from('{"stringValue":"\xff"}', "latin1");
      expect(await refused({ method: "POST", target: "/v1/echo", body, headers: json })).toMatchObject({
        status: 400,
        message: "body: not UTF-8",
      });
    });

    test.each([
      "application/json",
      "application/json; charset=utf-8",
      "APPLICATION/JSON",
      'application/json;Charset="UTF-8"',
      "application/vnd.api+json",
      "application/problem+json;x=y",
      "",
      undefined,
    ])("of the type %s is JSON", async (type) => {
      const headers: Record<string, string> = type === undefined ? {} : { "content-type": type };
      expect(await fetchRaw({ method: "POST", target: "/v1/echo", headers, body: "{}" })).toMatchObject({
        status: 200,
      });
    });

    test.each([
      "text/plain",
      "application/x-www-form-urlencoded",
      "application/jsonx",
      "application/proto",
      "json",
      "text/json+xml",
      "application/json; charset=utf-16",
      "application/json;x=y;charset=latin1",
    ])("of the type %s is refused, even if it is empty", async (type) => {
      const headers = { "content-type": type };
      expect(await refused({ method: "POST", target: "/v1/echo", headers, body: "{}" })).toMatchObject({
        status: 415,
        code: 3,
      });
      expect(await refused({ method: "POST", target: "/v1/echo", headers })).toMatchObject({ status: 415, code: 3 });
    });

    test("over the limit is refused", async () => {
      const body = JSON.stringify({ stringValue: "x".repeat(2_000) });
      expect(await refused({ method: "POST", target: "/v1/echo", body, headers: json })).toMatchObject({
        status: 413,
        code: 8,
      });
      const fits = JSON.stringify({ stringValue: "x".repeat(1_900) });
      expect(await fetchRaw({ method: "POST", target: "/v1/echo", body: fits, headers: json })).toMatchObject({
        status: 200,
      });
    });

    test("may be gzip, with readMaxBytes as the limit of the decompressed size", async () => {
      const headers = { ...json, "content-encoding": "gzip" };
      const send = (text: string) => fetchRaw({ method: "POST", target: "/v1/echo", body: gzipSync(text), headers });
      expect((await send('{"int32Value":1}')).json()).toEqual({ int32Value: 1 });
      expect(await send(`{"stringValue":"${"x".repeat(5_000_000)}"}`)).toMatchObject({ status: 413 });
      expect(await fetchRaw({ method: "POST", target: "/v1/echo", body: "{}", headers })).toMatchObject({
        status: 400,
      });
      expect(
        await fetchRaw({
          method: "POST",
          target: "/v1/echo",
          body: "{}",
          headers: { ...json, "content-encoding": "zstd" },
        }),
      ).toMatchObject({ status: 415 });
      expect(
        await fetchRaw({
          method: "POST",
          target: "/v1/echo",
          body: "{}",
          headers: { ...json, "content-encoding": "identity" },
        }),
      ).toMatchObject({ status: 200 });
    });
  });

  describe("a PATCH", () => {
    const patch = async (target: string, body: unknown, method = "PATCH") =>
      ((await echoed(target, body, method)) as { updateMask?: string }).updateMask;
    test("without a mask gets one with the fields that were sent", async () => {
      expect(await patch("/v1/items/n", { color: 1, inner: { id: 1, tags: ["a"] }, at: null, nope: 1 })).toBe(
        "color,inner.id,inner.tags,at",
      );
      expect(await patch("/v1/items/n", { inner: {} })).toBe("inner");
      expect(await patch("/v1/items/n", {})).toBeUndefined();
    });
    test("keeps an explicit mask", async () => {
      expect(await patch("/v1/items/n?updateMask=name", { color: 1 })).toBe("name");
      expect(await patch("/v1/items/n?update_mask=inner.id,color", { color: 1 })).toBe("inner.id,color");
      expect(await patch("/v1/items/n?update_mask=", { color: 1 })).toBe("color");
    });
    test("accepts the mask * in path and query", async () => {
      expect(await patch("/v1/items/n?updateMask=*", { color: 1 })).toBe("*");
      expect(await echoed("/v1/known/2020-01-01T00:00:00Z/1s/*/true/1/1/s/AA")).toMatchObject({ fieldMask: "*" });
    });
    test("is the only method with an inferred mask", async () => {
      expect(await patch("/v1/items", { item: { color: 1 } })).toBeUndefined();
      expect(await patch("/v1/items", { color: 1 }, "PUT")).toBeUndefined();
    });
  });

  describe("a response", () => {
    test.each([
      ["int64", {}, "0"],
      ["int64", { int64Value: "9007199254740993" }, "9007199254740993"],
      ["string", { stringValue: "s" }, "s"],
      ["string", {}, ""],
      ["nested", { nested: { name: "n" } }, { name: "n" }],
      ["nested", {}, {}],
      ["strings", { strings: ["a"] }, ["a"]],
      ["strings", {}, []],
      ["map", { stringMap: { a: "b" } }, { a: "b" }],
      ["map", {}, {}],
      ["timestamp", { timestamp: "2020-01-01T00:00:00Z" }, "2020-01-01T00:00:00Z"],
      ["timestamp", {}, null],
      ["value", { value: [1] }, [1]],
      ["value", {}, null],
      ["enum", { enumValue: 1 }, "COLOR_RED"],
      ["enum", {}, "COLOR_UNSPECIFIED"],
      ["bytes", { bytesValue: "AA==" }, "AA=="],
      ["oneof", { oneofString: "x" }, "x"],
      ["oneof", {}, ""],
      ["optional", { optionalInt32: 0 }, 0],
      ["optional", {}, 0],
    ])("may be a field: %s of %j", async (field, body, expected) => {
      expect(await echoed(`/v1/pick/${field}`, body)).toEqual(expected);
    });

    test("keeps the sign of zero", async () => {
      const query = "doubleValue=-0&floatValue=-0.0&doubles=0&doubles=-0&doubleWrapper=-0&value=-0&int64Value=-0";
      const whole = await fetchRaw({ target: `/v1/echo?${query}` });
      expect(whole.text).toBe('{"doubleValue":-0,"floatValue":-0,"doubles":[0,-0],"value":-0,"doubleWrapper":-0}');
      const body = '{"value":[-0,{"a":-0.0}]}';
      const field = await fetchRaw({ method: "POST", target: "/v1/pick/value", headers: json, body });
      expect(field.text).toBe('[-0,{"a":-0}]');
    });

    test("is JSON with a content-length", async () => {
      const { headers, body } = await fetchRaw({ target: "/v1/echo?stringValue=%C3%A9" });
      expect(headers.get("content-type")).toEqual(["application/json"]);
      expect(headers.get("content-length")).toEqual([String(body.byteLength)]);
    });

    test("is compressed if it is long and the client accepts gzip", async () => {
      const target = `/v1/echo?stringValue=${"x".repeat(1_500)}`;
      for (const accept of ["gzip", "deflate, gzip;q=0.5", "*", "br, x-gzip"]) {
        const { headers, body } = await fetchRaw({ target, headers: { "accept-encoding": accept } });
        expect([accept, headers.get("content-encoding"), headers.get("vary")]).toEqual([
          accept,
          ["gzip"],
          ["Accept-Encoding"],
        ]);
        expect(JSON.parse(gunzipSync(body).toString())).toEqual({ stringValue: "x".repeat(1_500) });
      }
      for (const accept of ["identity;q=1, gzip;q=0.1", "gzip;q=0.5, identity", "identity, *;q=0.5", "gzip;q=abc"]) {
        expect([
          accept,
          (await fetchRaw({ target, headers: { "accept-encoding": accept } })).headers.get("content-encoding"),
        ]).toEqual([accept, undefined]);
      }
      for (const accept of ["identity;q=0.5, gzip", "identity, gzip", "identity;q=0, *", "gzip;q=0.1"]) {
        expect([
          accept,
          (await fetchRaw({ target, headers: { "accept-encoding": accept } })).headers.get("content-encoding"),
        ]).toEqual([accept, ["gzip"]]);
      }
      for (const accept of ["identity", "gzip;q=0", "br", "*;q=0", "gzip;q=0, *"]) {
        const { headers } = await fetchRaw({ target, headers: { "accept-encoding": accept } });
        expect([accept, headers.get("content-encoding"), headers.get("vary")]).toEqual([
          accept,
          undefined,
          ["Accept-Encoding"],
        ]);
      }
      const { headers } = await fetchRaw({ target: "/v1/echo", headers: { "accept-encoding": "gzip" } });
      expect([headers.get("content-encoding"), headers.get("vary")]).toEqual([undefined, undefined]);
    });

    test("may be raw bytes, as may the request", async () => {
      const bytes = new Uint8Array([0, 255, 13, 10]);
      const response = await fetchRaw({
        method: "POST",
        target: "/v1/raw",
        headers: { "content-type": "image/x; q=1" },
        body: bytes,
      });
      expect([response.status, response.headers.get("content-type"), [...response.body]]).toEqual([
        200,
        ["image/x; q=1"],
        [...bytes],
      ]);
      const empty = await fetchRaw({ method: "POST", target: "/v1/raw" });
      expect([empty.status, empty.headers.get("content-type"), empty.text]).toEqual([
        200,
        ["application/octet-stream"],
        "",
      ]);
      const part = await fetchRaw({
        method: "POST",
        target: "/v1/raw/n?note=x",
        headers: { "content-type": "text/csv" },
        body: "a,b",
      });
      expect([part.headers.get("content-type"), part.text]).toEqual([["text/csv"], "a,b"]);
      const whole = await fetchRaw({
        method: "POST",
        target: "/v1/raw/n:whole?note=x",
        headers: { "content-type": "text/csv" },
        body: "a,b",
      });
      expect(whole.json()).toEqual({ name: "n", note: "x", content: { contentType: "text/csv", data: "YSxi" } });
    });

    test("has the status chosen by the handler, and no content if that status has none", async () => {
      const misbehave = (how: string) =>
        fetchRaw({ method: "POST", target: "/v1/misbehave", body: JSON.stringify({ how }) });
      expect(await misbehave("created")).toMatchObject({ status: 201, text: "{}" });
      const elsewhere = await misbehave("elsewhere");
      expect([elsewhere.status, elsewhere.headers.get("location")]).toEqual([303, ["/v1/echo"]]);
      expect(await misbehave("no success")).toMatchObject({
        status: 500,
        text: expect.stringContaining("internal error"),
      });
      const none = await misbehave("no content");
      expect([none.status, none.text, none.headers.get("content-type")]).toEqual([204, "", undefined]);
    });

    test("has no trailers by default", async () => {
      const { headers } = await fetchRaw({ method: "POST", target: "/v1/misbehave", body: '{"how":"trailer"}' });
      expect([headers.get("x-handler"), headers.get("trailer-x-late")]).toEqual([["yes"], undefined]);
    });
  });

  describe("a method", () => {
    test("that the path does not support is refused with an Allow header", async () => {
      const { status, headers } = await fetchRaw({ method: "PUT", target: "/v1/echo" });
      expect([status, headers.get("allow")]).toEqual([405, ["GET, HEAD, OPTIONS, POST, REPORT"]]);
    });
    test("HEAD is GET without content", async () => {
      const get = await fetchRaw({ target: "/v1/echo?stringValue=x" });
      const head = await fetchRaw({ method: "HEAD", target: "/v1/echo?stringValue=x" });
      expect([head.status, head.text]).toEqual([200, ""]);
      expect(head.headers.get("content-length")).toEqual(get.headers.get("content-length"));
    });
    test("OPTIONS lists the methods of the path", async () => {
      const { status, headers, text } = await fetchRaw({ method: "OPTIONS", target: "/v1/items/x" });
      expect([status, headers.get("allow"), text]).toEqual([204, ["OPTIONS, PATCH"], ""]);
      const every = await fetchRaw({ method: "OPTIONS", target: "/v1/any/%FF" });
      expect([every.status, every.headers.get("allow")]).toEqual([
        204,
        ["DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"],
      ]);
      expect(await fetchRaw({ method: "OPTIONS", target: "/nowhere" })).toMatchObject({ status: 404 });
    });
    test("may be a custom one", async () => {
      if (protocol === "HTTP/1.1")
        expect(await fetchRaw({ method: "REPORT", target: "/v1/echo", body: "{}" })).toMatchObject({ status: 200 });
      expect(await fetchRaw({ method: "PUT", target: "/v1/any/thing/at/all" })).toMatchObject({ status: 200 });
    });
    test("is case-sensitive", async () => {
      if (protocol === "HTTP/2")
        expect(await fetchRaw({ method: "get", target: "/v1/echo" })).toMatchObject({ status: 405 });
      else expect(await fetchRaw({ target: "/" })).toMatchObject({ status: 200, text: "{}" });
    });
  });

  describe("a failure", () => {
    const misbehave = (how: string) =>
      fetchRaw({ method: "POST", target: "/v1/misbehave", body: JSON.stringify({ how }) });
    test("keeps the handler's headers, both cookies, and the error's metadata", async () => {
      const { status, headers } = await misbehave("detail");
      expect(status).toBe(400);
      expect(headers.get("set-cookie")).toEqual(["a=1; Path=/", "b=2; Path=/"]);
      expect([headers.get("x-handler"), headers.get("x-metadata")]).toEqual([["yes"], ["m"]]);
    });
    test("is a google.rpc.Status", async () => {
      expect((await misbehave("detail")).json()).toEqual({
        code: 9,
        message: "look inside",
        details: [{ "@type": "type.googleapis.com/rich.v1.Nested", name: "why" }],
      });
    });
    test("keeps code and message if a detail is unknown", async () => {
      const response = await misbehave("unknown detail");
      expect([response.status, response.json()]).toMatchObject([400, { code: 9, message: "look inside" }]);
    });
    test("caused by an unexpected error exposes nothing", async () => {
      const response = await misbehave("bug");
      expect([response.status, response.json()]).toEqual([500, { code: 13, message: "internal error", details: [] }]);
    });
  });

  describe("a deadline", () => {
    test.each([
      ["connect-timeout-ms", "abc"],
      ["connect-timeout-ms", "60001"],
      ["grpc-timeout", "5"],
      ["grpc-timeout", "2M"],
      ["x-server-timeout", "-1"],
      ["x-server-timeout", "61"],
    ])("that is malformed or too long is refused: %s: %s", async (name, value) => {
      expect(await refused({ target: "/v1/echo", headers: { [name]: value } })).toMatchObject({
        status: 400,
        message: expect.stringContaining(`header: ${name}: `),
      });
    });
    test.each([
      ["connect-timeout-ms", "1000"],
      ["grpc-timeout", "1S"],
      ["grpc-timeout", "100m"],
      ["x-server-timeout", "1.5"],
    ])("is accepted: %s: %s", async (name, value) => {
      expect(await fetchRaw({ target: "/v1/echo", headers: { [name]: value } })).toMatchObject({ status: 200 });
    });
  });

  describe("a stream", () => {
    const stream = (target: string, accept?: string) =>
      fetchRaw({ target, headers: accept === undefined ? {} : { accept } });
    test.each([
      [undefined, "application/x-ndjson", '{"number":1}\n{"number":2}\n'],
      ["*/*", "application/x-ndjson", '{"number":1}\n{"number":2}\n'],
      ["application/x-ndjson, application/json;q=0.5", "application/x-ndjson", '{"number":1}\n{"number":2}\n'],
      ["text/event-stream", "text/event-stream", 'data: {"number":1}\n\ndata: {"number":2}\n\n'],
      ["application/json", "application/json", '[{"number":1},{"number":2}]'],
      [
        "application/json;q=0.1, text/event-stream;q=0.2",
        "text/event-stream",
        'data: {"number":1}\n\ndata: {"number":2}\n\n',
      ],
    ])("for %s is %s", async (accept, type, text) => {
      const response = await stream("/v1/count/2", accept);
      expect([response.status, response.headers.get("content-type"), response.text]).toEqual([200, [type], text]);
    });
    test("without messages is empty", async () => {
      expect((await stream("/v1/count/0")).text).toBe("");
      expect((await stream("/v1/count/0", "application/json")).text).toBe("[]");
      expect((await stream("/v1/count/0", "text/event-stream")).text).toBe("");
    });
    test("may consist of a field of the messages", async () => {
      expect((await stream("/v1/numbers:count?to=3", "application/json")).json()).toEqual([1, 2, 3]);
    });
    test("that fails before the first message is an ordinary failure", async () => {
      expect(await refused({ target: "/v1/count/2?failAfter=0" })).toMatchObject({
        status: 500,
        code: 15,
        message: "enough",
      });
    });
    test.each([
      ["application/x-ndjson", '{"number":1}\n{"error":{"code":15,"message":"enough","details":[]}}\n'],
      [
        "text/event-stream",
        'data: {"number":1}\n\nevent: error\ndata: {"error":{"code":15,"message":"enough","details":[]}}\n\n',
      ],
      ["application/json", '[{"number":1},{"error":{"code":15,"message":"enough","details":[]}}]'],
    ])("that fails later ends with the failure in band: %s", async (accept, text) => {
      expect(await stream("/v1/count/2?failAfter=1", accept)).toMatchObject({ status: 200, text });
    });
    test("may be raw bytes", async () => {
      const response = await stream("/v1/download/3");
      expect([response.headers.get("content-type"), response.text]).toEqual([["text/csv"], "1\n2\n3\n"]);
    });
    test("of raw bytes that fails later is aborted", async () => {
      await expect(stream("/v1/download/3?failAfter=1")).rejects.toThrow();
    });
    test("supports HEAD", async () => {
      expect(await fetchRaw({ method: "HEAD", target: "/v1/count/2" })).toMatchObject({ status: 200, text: "" });
    });
  });
});
