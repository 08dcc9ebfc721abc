/** The schemas accept exactly the JSON that the proto3 JSON mapping allows. */
import { createRegistry, type DescMessage, type Message, toJson } from "@bufbuild/protobuf";
import fc from "fast-check";
import { expect, test } from "vitest";
import { EverythingSchema, NestedSchema, UpdateRequestSchema } from "../connect-http-routes/gen/rich/v1/rich_pb.ts";
import { arbitraryMessage } from "../connect-http-routes/support/arbitrary-message.ts";
import { describeDirectory } from "./describe.ts";
import { schemaChecker } from "./document.ts";

const document = describeDirectory("test/connect-http-routes/proto");
const check = schemaChecker(document);
const problems = (type: DescMessage, value: unknown) => check({ $ref: `#/components/schemas/${type.typeName}` }, value);

const written = (type: DescMessage, message: Message, alwaysEmitImplicit: boolean) =>
  toJson(type, message, { registry: createRegistry(NestedSchema), alwaysEmitImplicit });

test.each([EverythingSchema, NestedSchema, UpdateRequestSchema])(
  "whatever proto JSON writes of a $name is valid",
  (type) => {
    fc.assert(
      fc.property(
        arbitraryMessage(type, () => true),
        fc.boolean(),
        (message, alwaysEmitImplicit) => {
          expect(problems(type, written(type, message, alwaysEmitImplicit))).toEqual([]);
        },
      ),
      { numRuns: 200 },
    );
  },
);

test("every field has a schema, by its JSON name", () => {
  const properties = Object.keys(document.components.schemas["rich.v1.Everything"]?.properties ?? {});
  expect(properties).toEqual(EverythingSchema.fields.map((field) => field.jsonName));
  expect(properties).toContain("@other");
});

test.each([
  { int32Value: 1.5 },
  { int32Value: 2 ** 31 },
  { uint32Value: -1 },
  { uint32Value: 2 ** 32 },
  { int64Value: 5 },
  { int64Value: "five" },
  { uint64Value: "-5" },
  { doubleValue: "Inf" },
  { boolValue: "true" },
  { stringValue: 5 },
  { bytesValue: [1] },
  { enumValue: "COLOR_NOBODY_KNOWS" },
  { strings: "one" },
  { nested: { inner: { id: 5 } } },
  { nesteds: [{ name: 5 }] },
  { oneofString: "one", oneofInt32: 2 },
  { oneofInt32: 1, oneofBool: true },
  { stringMap: { a: 1 } },
  { nestedMap: { one: {} } },
  { boolMap: { yes: "1" } },
  { enumMap: { "-1": "COLOR_RED" } },
  { timestamp: "yesterday" },
  { duration: "5" },
  { fieldMask: ["name"] },
  { struct: [] },
  { listValue: {} },
  { int64Wrapper: 5 },
  { boolWrapper: {} },
])("%j is no Everything", (value) => {
  expect(problems(EverythingSchema, value)).not.toEqual([]);
});

test("the members of a oneof are valid one by one", () => {
  for (const value of [{ oneofString: "" }, { oneofInt32: 0 }, { oneofNested: {} }, { oneofEnum: "COLOR_RED" }]) {
    expect(problems(EverythingSchema, value)).toEqual([]);
  }
});
