/** The rules of fields (`buf.validate`, `google.api.field_behavior`) become keywords of their schemas. */
import { type DescEnum, type DescFile, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { file_buf_validate_validate as theirs } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { describe, expect, test } from "vitest";
import { file_buf_validate_validate as ours } from "../../gen/buf/validate/validate_pb.ts";
import { describeText, get, service } from "./describe.ts";
import { operation, resolve } from "./document.ts";

const RULE = "(buf.validate.field)";
const BEHAVIOR = "(google.api.field_behavior)";

/** Returns the properties of the message M and the required ones among them, in the schema of a request body. */
function bodyOf(fields: string) {
  const document = describeText(service(`post: "/v1" body: "*"`, fields));
  const { properties, required } = document.components.schemas["t.v1.M"] ?? {};
  return { properties, required };
}

describe("a field with", () => {
  const string = { type: "string" };
  const int32 = { type: "integer", format: "int32", minimum: -2147483648, maximum: 2147483647 };
  const uint32 = { type: "integer", format: "uint32", minimum: 0, maximum: 4294967295 };

  test.each<[rule: string, field: string, schema: object]>([
    ["characters", `string f = 1 [${RULE}.string = {min_len: 2, max_len: 9}];`, { minLength: 2, maxLength: 9 }],
    [
      "bytes: what they imply",
      `string f = 1 [${RULE}.string = {min_bytes: 9, max_bytes: 9}];`,
      {
        minLength: 3,
        maxLength: 9,
      },
    ],
    ["the narrower limit", `string f = 1 [${RULE}.string = {max_len: 5, max_bytes: 9}];`, { maxLength: 5 }],
    [
      "a pattern without control characters, as Python reads it, too",
      `string f = 1 [${RULE}.string.pattern = "^\\\\\\\\\\\\P{Cc}\\\\p{Cc}$"];`,
      { pattern: "^\\\\[^\\x00-\\x1f\\x7f-\\x9f][\\x00-\\x1f\\x7f-\\x9f]$" },
    ],
    [
      "a pattern with a class in brackets, as it is",
      `string f = 1 [${RULE}.string.pattern = "^[a\\\\p{Cc}]$"];`,
      { pattern: "^[a\\p{Cc}]$" },
    ],
    ["a pattern", `string f = 1 [${RULE}.string.pattern = "^a$"];`, { pattern: "^a$" }],
    ["a text required", `string f = 1 [${RULE}.required = true];`, { minLength: 1 }],
    ["rules that are off", `string f = 1 [${RULE} = {ignore: IGNORE_ALWAYS, string: {max_len: 1}}];`, {}],
    [
      "rules that empty texts escape",
      `string f = 1 [${RULE} = {ignore: IGNORE_IF_ZERO_VALUE, string: {min_len: 2}}];`,
      {},
    ],
    ["output only", `string f = 1 [${BEHAVIOR} = OUTPUT_ONLY];`, { readOnly: true }],
    ["input only", `string f = 1 [${BEHAVIOR} = INPUT_ONLY];`, { writeOnly: true }],
  ])("%s", (_, field, keywords) => {
    expect(bodyOf(field).properties).toEqual({ f: { ...string, ...keywords } });
  });

  test.each<[field: string, schema: object]>([
    [`int32 f = 1 [${RULE}.int32 = {gte: 1, lte: 9}];`, { ...int32, minimum: 1, maximum: 9 }],
    [`int32 f = 1 [${RULE}.int32 = {gt: 1, lt: 9}];`, { ...int32, minimum: 2, maximum: 8 }],
    [`int32 f = 1 [${RULE}.int32.gte = 0];`, { ...int32, minimum: 0 }],
    [`uint32 f = 1 [${RULE}.uint32.lte = 9];`, { ...uint32, maximum: 9 }],
  ])("bounds: %s", (field, schema) => {
    expect(bodyOf(field).properties).toEqual({ f: schema });
  });

  test("items", () => {
    const rules = "{min_items: 1, max_items: 8, unique: true, items: {string: {max_len: 3}}}";
    expect(bodyOf(`repeated string f = 1 [${RULE}.repeated = ${rules}];`).properties).toEqual({
      f: { type: "array", items: { ...string, maxLength: 3 }, minItems: 1, maxItems: 8, uniqueItems: true },
    });
    expect(bodyOf(`repeated string f = 1 [${RULE}.required = true];`).properties).toEqual({
      f: { type: "array", items: string, minItems: 1 },
    });
    const both = `{required: true, repeated: {max_items: 8}}`;
    expect(bodyOf(`repeated string f = 1 [${RULE} = ${both}];`).properties).toEqual({
      f: { type: "array", items: string, minItems: 1, maxItems: 8 },
    });
  });
});

test.each<[field: string, schema: object]>([
  ["string f = 1 [(google.api.field_info).format = UUID4];", { type: "string", format: "uuid" }],
  ["string f = 1 [(google.api.field_info).format = IPV4];", { type: "string", format: "ipv4" }],
  ["string f = 1 [(google.api.field_info).format = IPV6];", { type: "string", format: "ipv6" }],
  [
    "string f = 1 [(google.api.field_info).format = IPV4_OR_IPV6];",
    { type: "string", anyOf: [{ format: "ipv4" }, { format: "ipv6" }] },
  ],
  [
    "repeated string f = 1 [(google.api.field_info).format = UUID4];",
    { type: "array", items: { type: "string", format: "uuid" } },
  ],
])("field_info: %s", (field, schema) => {
  expect(bodyOf(field).properties).toEqual({ f: schema });
});

test.each<[field: string, examples: unknown[]]>([
  [`string f = 1 [${RULE}.string.example = "a", ${RULE}.string.example = "b"];`, ["a", "b"]],
  [`int32 f = 1 [${RULE}.int32.example = 1];`, [1]],
  [`int64 f = 1 [${RULE}.int64.example = 1];`, ["1"]],
  [`double f = 1 [${RULE}.double.example = 1.5];`, [1.5]],
  [`bytes f = 1 [${RULE}.bytes.example = "a"];`, ["YQ=="]],
  [`E f = 1 [${RULE}.enum.example = 1]; enum E { E_ZERO = 0; E_ONE = 1; }`, ["E_ONE"]],
  [`google.protobuf.Duration f = 1 [${RULE}.duration.example = {nanos: 500000000}];`, ["0.500s"]],
  [`google.protobuf.Timestamp f = 1 [${RULE}.timestamp.example = {seconds: 0}];`, ["1970-01-01T00:00:00Z"]],
])("examples: %s", (field, examples) => {
  expect(bodyOf(field).properties).toMatchObject({ f: { examples } });
});

test.each([
  [`string f = 1 [${BEHAVIOR} = IMMUTABLE];`, "Immutable: set at creation."],
  [`repeated string f = 1 [${BEHAVIOR} = UNORDERED_LIST];`, "In no particular order."],
  [`string f = 1 [${BEHAVIOR} = NON_EMPTY_DEFAULT];`, "If it is not set, a default applies."],
  [`int64 f = 1 [${RULE}.int64 = {gt: 1, lte: 9}];`, "More than 1 and at most 9."],
  [`uint64 f = 1 [${RULE}.uint64 = {gt: 9, lt: 1}];`, "More than 9 or less than 1."],
])("what has no keyword is described: %s", (field, description) => {
  expect(bodyOf(field).properties).toMatchObject({ f: { description } });
  expect(get('get: "/v1"', field).operation.parameters).toMatchObject([{ description }]);
});

test("a field is required by its rule or by its behavior", () => {
  const fields = `string a = 1; string b = 2 [${RULE}.required = true]; Inner c = 3 [${BEHAVIOR} = REQUIRED];`;
  expect(bodyOf(fields).required).toEqual(["b", "c"]);
});

test("query parameters have the same rules", () => {
  const fields = `string a = 1 [${BEHAVIOR} = REQUIRED, ${RULE}.string.max_len = 3];
    repeated int32 b = 2 [${RULE}.repeated = {max_items: 2, items: {int32: {gte: 0}}}];`;
  expect(get(`get: "/v1"`, fields).operation.parameters).toMatchObject([
    { name: "a", required: true, schema: { type: "string", maxLength: 3 } },
    { name: "b", schema: { type: "array", maxItems: 2, items: { type: "integer", format: "int32", minimum: 0 } } },
  ]);
});

describe("alwaysEmitImplicit of the handler", () => {
  const text = `service S {
    rpc Get(Q) returns (A) { option (google.api.http) = { post: "/a" body: "*" }; } }
    message Q { Shared shared = 1; string q = 2; }
    message A { string text = 1; repeated string list = 2; map<string, string> map = 3; optional string maybe = 4;
      Shared shared = 5; Own own = 6 [${RULE}.required = true]; }
    message Shared { string s = 1; }
    message Own { int32 n = 1; }`;
  const requiredOf = (parameter: string, name: string) =>
    describeText(text, parameter).components.schemas[`t.v1.${name}`]?.required;

  test("makes fields without presence required in messages of responses alone", () => {
    const emit = "options=src/service/api/connect-options.ts";
    expect(requiredOf(emit, "A")).toEqual(["text", "list", "map", "own"]);
    expect(requiredOf(emit, "Own")).toEqual(["n"]);
    expect(requiredOf(emit, "Q")).toBeUndefined();
    expect(requiredOf(emit, "Shared")).toBeUndefined();
  });

  test("is off by default", () => {
    expect(requiredOf("", "A")).toEqual(["own"]);
    expect(() => requiredOf("closed_enums=1", "A")).toThrow(/expected true or false/);
  });
});

test("a required field without presence is not promised in a response, which leaves it out if it is empty", () => {
  const document = describeText(`
    service S { rpc Get(Q) returns (A) { option (google.api.http) = { get: "/a" }; } }
    message Q { string q = 1 [${BEHAVIOR} = REQUIRED]; }
    message A { string implicit = 1 [${BEHAVIOR} = REQUIRED]; repeated string list = 2 [${RULE}.required = true];
      optional string explicit = 3 [${BEHAVIOR} = REQUIRED]; }`);
  expect(document.components.schemas["t.v1.A"]?.required).toEqual(["explicit"]);
  expect(operation(document, "S_Get").operation.parameters).toMatchObject([{ name: "q", required: true }]);
});

test("a response of the same message is still an object", () => {
  const document = describeText(service(`get: "/v1"`, `optional string a = 1 [${RULE}.required = true];`));
  const content = operation(document, "Shelf_Get").operation.responses["200"]?.content?.["application/json"];
  expect(resolve(document, content?.schema ?? {})).toMatchObject({ type: "object", required: ["a"] });
});

/** Returns the type and number of each field, extension and enum value that a file declares, by name. */
function declared(file: DescFile): Map<string, string> {
  const found = new Map<string, string>();
  const typeOf = (field: {
    scalar?: ScalarType | undefined;
    message?: DescMessage | undefined;
    enum?: DescEnum | undefined;
  }) => field.message?.typeName ?? field.enum?.typeName ?? (field.scalar === undefined ? "" : ScalarType[field.scalar]);
  for (const extension of file.extensions) found.set(extension.typeName, `${extension.number} ${typeOf(extension)}`);
  for (const message of file.messages) {
    for (const field of message.fields) {
      found.set(`${message.typeName}.${field.name}`, `${field.number} ${field.fieldKind} ${typeOf(field)}`);
    }
  }
  for (const type of file.enums) for (const value of type.values) found.set(value.name, String(value.number));
  return found;
}

test("proto/buf/validate is a part of what protovalidate declares", () => {
  const complete = declared(theirs);
  const part = declared(ours);
  expect(part.size).toBeGreaterThan(200);
  expect([...part].filter(([name, type]) => complete.get(name) !== type)).toEqual([]);
});
