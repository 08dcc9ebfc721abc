/** Limits for small bodies that take much memory or time once they are decoded: many elements, deep nesting, compression. */
import { gzipSync } from "node:zlib";
import { create, type JsonValue, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { scanJson } from "../../../src/connect-http-routes/codec/json-scan.ts";
import { checkBinary } from "../../../src/connect-http-routes/codec/message-limits.ts";
import { createFetchHandler, protobufCodec } from "../../../src/connect-http-routes/index.ts";
import { RelayServiceRoutes } from "../gen/relay/v1/relay_http.ts";
import { RichServiceRoutes } from "../gen/rich/v1/rich_http.ts";
import { EverythingSchema } from "../gen/rich/v1/rich_pb.ts";
import { relayRoutes } from "../support/relay-service.ts";
import { richRoutes } from "../support/rich-service.ts";

const NO_LIMIT = Number.POSITIVE_INFINITY;

/** Returns how many objects, arrays and members of both a JSON value contains, itself included. */
function elementsOf(json: JsonValue): number {
  if (typeof json !== "object" || json === null) return 0;
  const members = Object.values(json);
  return members.reduce<number>((sum, member) => sum + elementsOf(member), Math.max(1, members.length));
}

function depthOf(json: JsonValue): number {
  if (typeof json !== "object" || json === null) return 0;
  return 1 + Math.max(0, ...Object.values(json).map(depthOf));
}

const passes = (check: () => void): boolean => {
  try {
    check();
    return true;
  } catch {
    return false;
  }
};

describe("the limits of a message", () => {
  test("count the elements and levels of any JSON, and nothing within strings", () => {
    const text = fc.oneof(fc.string(), fc.stringMatching(/^[[\]{},"\\]*$/));
    const { value } = fc.letrec<{ value: JsonValue }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 6 },
        text,
        fc.constantFrom(null, 1, true),
        fc.array(tie("value"), { maxLength: 5 }),
        fc.dictionary(text, tie("value"), { maxKeys: 5 }),
      ),
    }));
    fc.assert(
      fc.property(value, fc.nat(60), fc.nat(6), fc.constantFrom(0, 2), (json, maxElements, maxDepth, indent) => {
        const sent = JSON.stringify(json, null, indent);
        const expected = elementsOf(json) <= maxElements && depthOf(json) <= maxDepth;
        expect(passes(() => scanJson(sent, { maxElements, maxDepth }))).toBe(expected);
      }),
      { numRuns: 2_000 },
    );
  });

  const nested = (depth: number): JsonValue => (depth === 0 ? {} : { value: nested(depth - 1) });
  const five = [1, 2, 3, 4, 5];
  test.each<[name: string, message: MessageInitShape<typeof EverythingSchema>, elements: number]>([
    ["messages", { nesteds: five.map(() => ({})) }, 5],
    ["packed lists of numbers", { int32s: five }, 6],
    ["packed lists of enums", { enums: [0, 1, 0, 1, 0] }, 6],
    ["texts", { strings: five.map(String) }, 5],
    ["members of messages", { nesteds: [{ inner: { tags: ["a", "b", "c"] } }] }, 5],
    ["entries of a map", { stringMap: { a: "b", c: "d" } }, 2],
    ["members of messages in a map", { nestedMap: { 1: { inner: { tags: ["a"] } } } }, 5],
  ])("count in the binary form: %s", (_, init, elements) => {
    const bytes = toBinary(EverythingSchema, create(EverythingSchema, init));
    const check = (maxElements: number) =>
      passes(() => checkBinary(EverythingSchema, bytes, { maxElements, maxDepth: 100 }));
    // A message has at most as many elements as bytes, so only a limit below the number of its bytes can refuse it.
    expect([check(elements - 1), check(elements)]).toEqual([false, true]);
    expect(passes(() => checkBinary(EverythingSchema, bytes, { maxElements: 1, maxDepth: NO_LIMIT }))).toBe(false);
  });

  test("count groups and fields that nobody knows", () => {
    const writer = new BinaryWriter();
    for (let i = 0; i < 10; i++) {
      writer.tag(900, WireType.StartGroup).tag(900, WireType.EndGroup).tag(901, WireType.Varint).int32(1);
    }
    const bytes = writer.finish();
    const check = (maxElements: number) =>
      passes(() => checkBinary(EverythingSchema, bytes, { maxElements, maxDepth: 100 }));
    expect([check(19), check(20)]).toEqual([false, true]);
  });

  const rich = (readMaxElements?: number) =>
    createFetchHandler({
      routes: richRoutes,
      tables: [RichServiceRoutes],
      codecs: [protobufCodec],
      formPosts: true,
      ...(readMaxElements !== undefined && { readMaxElements }),
    });
  const post = async (
    contentType: string,
    body: string | Uint8Array<ArrayBuffer>,
    encoding?: string,
    handler = rich(),
  ) => {
    const headers = {
      "content-type": contentType,
      accept: "application/json",
      ...(encoding !== undefined && { "content-encoding": encoding }),
    };
    const response = await handler(new Request("http://x/v1/echo", { method: "POST", headers, body }));
    return [response.status, ((await response.json()) as { message?: string }).message] as const;
  };
  const MANY = [400, "body: more than 100000 elements"];
  const empties = `{"nesteds":[${"{},".repeat(60_000)}{}]}`;

  test("are those of every form of a body", async () => {
    expect(await post("application/json", empties)).toEqual(MANY);
    const binary = new Uint8Array(
      toBinary(EverythingSchema, create(EverythingSchema, { nesteds: Array(100_001).fill({}) })),
    );
    expect(await post("application/x-protobuf", binary)).toEqual(MANY);
    expect(await post("application/x-www-form-urlencoded", "int32s=1&".repeat(100_001))).toEqual(MANY);
    expect(await post("application/json", JSON.stringify(nested(100)))).toEqual([400, "body: nested too deeply"]);
  });

  test("can be others", async () => {
    const body = '{"int32s":[1,2,3,4,5]}';
    expect((await post("application/json", body, undefined, rich(6)))[0]).toBe(200);
    expect(await post("application/json", `{"int32s":[${"1,".repeat(300)}1]}`, undefined, rich(5))).toEqual([
      400,
      "body: more than 5 elements",
    ]);
  });

  test("include how much a body may become by decompression", async () => {
    const attack = new Uint8Array(gzipSync(`{"nesteds":[${"{},".repeat(1_398_000)}{}]}`));
    expect(attack.byteLength).toBeLessThan(5_000);
    const refused = [413, "the body decompresses to more than 100 times its size"];
    expect(await post("application/json", attack, "gzip")).toEqual(refused);
    // Small bodies are served whatever their compression ratio, and large ones if the ratio is that of ordinary text.
    const small = new Uint8Array(gzipSync(JSON.stringify({ stringValue: "x".repeat(60_000) })));
    expect((await post("application/json", small, "gzip"))[0]).toBe(200);
    const text = Array.from({ length: 20_000 }, (_, i) => `item ${i * 7919}`).join(" ");
    const large = new Uint8Array(gzipSync(JSON.stringify({ stringValue: text })));
    expect((await post("application/json", large, "gzip"))[0]).toBe(200);
  });

  test("include how much a request stream may become", async () => {
    const handler = createFetchHandler({ routes: relayRoutes(), tables: [RelayServiceRoutes] });
    const body = new Uint8Array(gzipSync('{"number":1}\n'.repeat(500_000)));
    const headers = { "content-type": "application/x-ndjson", "content-encoding": "gzip" };
    const response = await handler(new Request("http://x/v1/sums/a", { method: "POST", headers, body }));
    expect(response.status).toBe(413);
  });
});
