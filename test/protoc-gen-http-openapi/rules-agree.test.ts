/** The schemas of fields with rules accept what protovalidate accepts, and nothing else. */
import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { expect, test } from "vitest";
import { compileText } from "./describe.ts";
import { resolve, type Schema, schemaChecker } from "./document.ts";

const UUID = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

/** The type of a field, its rules (`(buf.validate.field)`), and JSON values that they allow and refuse. */
const FIELDS: readonly [type: string, rules: string, valid: JsonValue[], invalid: JsonValue[]][] = [
  ["int32", "int32: {gte: 1, lt: 5}", [1, 4], [0, 5]],
  ["int32", "int32: {const: 0}", [0], [1]],
  ["sint32", "sint32: {gt: -3, lte: 5}", [-2, 5], [-3, 6]],
  ["fixed32", "fixed32: {in: [1, 2]}", [1, 2], [3]],
  ["sfixed32", "sfixed32: {not_in: [1, 2]}", [3], [1, 2]],
  ["uint32", "uint32: {gt: 10, lt: 5}", [4, 11], [5, 7, 10]],
  ["int64", "int64: {gte: 0}", ["0", "9007199254740993"], ["-1"]],
  ["uint64", "uint64: {in: [1, 18446744073709551615]}", ["1", "18446744073709551615"], ["2"]],
  ["sint64", "sint64: {const: -1}", ["-1"], ["1"]],
  ["fixed64", "fixed64: {not_in: [7]}", ["8"], ["7"]],
  ["double", "double: {gte: 0.5, lt: 2}", [0.5, 1], [0.25, 2, "NaN", "-Infinity"]],
  ["double", "double: {finite: true}", [0.5], ["NaN", "Infinity"]],
  ["float", "float: {in: [1.5, 2.5]}", [1.5], [2]],
  ["bool", "bool: {const: true}", [true], [false]],
  ["string", "string: {len: 3}", ["äöü"], ["ab", "abcd"]],
  ["string", "string: {min_len: 1, max_len: 2}", ["a", "ab"], ["", "abc"]],
  ["string", "string: {len_bytes: 4}", ["abcd", "🙂"], ["abcde", ""]],
  ["string", 'string: {const: "a.b"}', ["a.b"], ["a", ""]],
  ["string", 'string: {in: ["a", "b"]}', ["a"], ["c"]],
  ["string", 'string: {not_in: ["a"]}', ["b"], ["a"]],
  ["string", 'string: {prefix: "a.", suffix: ".b", contains: "[c]"}', ["a.[c].b"], ["a.c.b", "ab[c].b", "a.[c]"]],
  ["string", 'string: {not_contains: "x.y", not_in: ["a"]}', ["xy"], ["_x.y_", "a"]],
  ["string", 'string: {pattern: "^[a-z]+$", prefix: "a"}', ["ab"], ["b", "a1"]],
  ["string", "string: {email: true}", ["a@example.com"], ["a", "@b"]],
  ["string", "string: {hostname: true}", ["a.example"], ["-a", "a b"]],
  ["string", "string: {ip: true}", ["127.0.0.1", "::1"], ["1.2.3", "x"]],
  ["string", "string: {ipv4: true}", ["127.0.0.1"], ["::1"]],
  ["string", "string: {ipv6: true}", ["::1"], ["127.0.0.1"]],
  ["string", "string: {uri: true}", ["https://a.example/b"], ["b/c", ""]],
  ["string", "string: {uri_ref: true}", ["/b?c"], ["\\"]],
  ["string", "string: {address: true}", ["a.example", "::1"], ["a b"]],
  ["string", "string: {uuid: true}", [UUID], ["1"]],
  ["string", "string: {tuuid: true}", [UUID.replaceAll("-", "")], [UUID]],
  ["string", "string: {ulid: true}", ["01ARZ3NDEKTSV4RRFFQ69G5FAV"], ["81ARZ3NDEKTSV4RRFFQ69G5FAV"]],
  ["string", "string: {protobuf_fqn: true}", ["a.B"], [".a.B", "a..b"]],
  ["string", "string: {well_known_regex: KNOWN_REGEX_HTTP_HEADER_NAME, strict: true}", ["x-a"], ["x a"]],
  ["bytes", "bytes: {len: 4}", ["AAAAAA=="], ["AAA=", "AAAAAAAAAAAA"]],
  ["bytes", "bytes: {min_len: 3, max_len: 6}", ["AAAA", "AAAAAAAA"], ["AA", "AAAAAAAAAA=="]],
  ["E", "enum: {const: 1}", ["E_ONE"], ["E_TWO"]],
  ["E", "enum: {in: [0, 1]}", ["E_ONE", "E_ZERO"], ["E_TWO"]],
  ["E", "enum: {not_in: [1]}", ["E_TWO"], ["E_ONE"]],
  ["repeated string", "repeated: {min_items: 1, max_items: 2, unique: true}", [["a"], ["a", "b"]], [[], ["a", "a"]]],
  ["repeated string", "repeated: {items: {string: {email: true}}}", [["a@b.c"], []], [["a"]]],
  ["repeated E", "repeated: {items: {enum: {in: [1]}}}", [["E_ONE"]], [["E_TWO"]]],
  ["map<string, int32>", "map: {min_pairs: 1, max_pairs: 2}", [{ a: 1 }], [{}, { a: 1, b: 2, c: 3 }]],
  [
    "map<string, int32>",
    "map: {keys: {string: {min_len: 2}}, values: {int32: {gt: 0}}}",
    [{ ab: 1 }],
    [{ a: 1 }, { ab: 0 }],
  ],
  ["map<string, int32>", "required: true", [{ a: 1 }], [{}]],
];

const messages = FIELDS.map(
  ([type, rules], index) => `message M${index} { ${type} f = 1 [(buf.validate.field) = {${rules}}]; }`,
);
const rpcs = FIELDS.map(
  (_, index) =>
    `rpc R${index}(M${index}) returns (M${index}) { option (google.api.http) = {post: "/r${index}" body: "*"}; }`,
);
const GROUPS = `
  service Groups { rpc Group(G) returns (G) { option (google.api.http) = {post: "/g" body: "*"}; }
    rpc Part(G) returns (G) { option (google.api.http) = {post: "/g/{a}" body: "*"}; } }
  message G {
    option (buf.validate.message).oneof = {fields: ["a", "b"], required: true};
    optional string a = 1; optional string b = 2;
    oneof choice { option (buf.validate.oneof).required = true; string c = 3; string d = 4; }
    option (buf.validate.message).oneof = {fields: ["e", "f", "g"]};
    optional string e = 5; optional string f = 6; optional string g = 7; }`;
const { document, registry } = compileText(
  `service S { ${rpcs.join("\n")} } enum E { E_ZERO = 0; E_ONE = 1; E_TWO = 2; } ${messages.join("\n")} ${GROUPS}`,
);
const check = schemaChecker(document);
const validator = createValidator();

/** Returns whether the schema accepts a message in JSON, and whether protovalidate does. */
function verdicts(name: string, json: JsonValue): [schema: boolean, protovalidate: boolean] {
  const type = registry.getMessage(`t.v1.${name}`);
  if (type === undefined) throw new Error(name);
  const valid = validator.validate(type, fromJson(type, json)).kind === "valid";
  return [check(document.components.schemas[`t.v1.${name}`] ?? {}, json).length === 0, valid];
}

test.each(FIELDS.map((field, index) => [`${field[0]} with ${field[1]}`, index, field] as const))(
  "%s",
  (_, index, [, , valid, invalid]) => {
    for (const value of valid) expect([value, ...verdicts(`M${index}`, { f: value })]).toEqual([value, true, true]);
    for (const value of invalid) expect([value, ...verdicts(`M${index}`, { f: value })]).toEqual([value, false, false]);
  },
);

test.each<[JsonValue, boolean]>([
  [{ a: "1", c: "1" }, true],
  [{ b: "1", d: "1" }, true],
  [{ a: "1", b: "1", c: "1" }, false],
  [{ c: "1" }, false],
  [{ a: "1" }, false],
  [{ a: "1", c: "1", f: "1" }, true],
  [{ a: "1", c: "1", e: "1", g: "1" }, false],
  [{ a: "1", c: "1", e: "1", f: "1", g: "1" }, false],
])("oneofs and groups: %j", (json, valid) => {
  expect(verdicts("G", json)).toEqual([valid, valid]);
});

test("a group with a field in the path is not required of the body", () => {
  const content = document.paths["/g/{a}"]?.post as { requestBody: { content: Record<string, { schema: Schema }> } };
  const schema = resolve(document, content.requestBody.content["application/json"]?.schema ?? {});
  expect(check(schema, { c: "1" })).toEqual([]);
  expect(check(schema, { b: "1" })).not.toEqual([]);
});
