/** Rules that the service cannot check are refused when gen/ is written, so that every declared rule is checked. */
import { readFileSync } from "node:fs";
import { create } from "@bufbuild/protobuf";
import { CodeGeneratorRequestSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { protocGenRules } from "../../../src/service/protoc-gen-rules/plugin.ts";
import { buildProtos, testProto } from "../../protoc-gen-http-openapi/describe.ts";
import { describeText } from "./compile.ts";

const RULE = "(buf.validate.field)";

/** The declarations of requests, each with the reason why it is refused. */
const REFUSED: readonly [declarations: string, fault: string][] = [
  [
    `string f = 1 [${RULE}.string.email = true];`,
    "string.email is not supported: add it to src/service/api/rules/checks.ts",
  ],
  [
    `string f = 1 [${RULE}.string.max_len = 3];`,
    "string.max_len is not supported: add it to src/service/api/rules/checks.ts",
  ],
  [
    `int32 f = 1 [${RULE}.int32 = {gte: 1, lt: 5}];`,
    "int32.lt is not supported: add it to src/service/api/rules/checks.ts",
  ],
  [`int64 f = 1 [${RULE}.int64.gte = 1];`, "int64.gte is not supported: add it to src/service/api/rules/checks.ts"],
  [
    `bytes f = 1 [${RULE}.bytes.max_len = 1];`,
    "bytes.max_len is not supported: add it to src/service/api/rules/checks.ts",
  ],
  [
    `E f = 1 [${RULE}.enum = {not_in: [0]}];`,
    "enum.not_in is not supported: add it to src/service/api/rules/checks.ts",
  ],
  [
    `repeated string f = 1 [${RULE}.repeated.min_items = 1];`,
    "repeated.min_items is not supported: add it to src/service/api/rules/checks.ts",
  ],
  [`string f = 1 [${RULE}.string.pattern = "^(a+)+$"];`, "the pattern ^(a+)+$ is not one class, as in ^[a-z]+$"],
  [`string f = 1 [${RULE}.string.pattern = "^.*$"];`, "the pattern ^.*$ is not one class, as in ^[a-z]+$"],
  [`string f = 1 [${RULE}.string.pattern = "^[a-z]+"];`, "the pattern ^[a-z]+ is not one class, as in ^[a-z]+$"],
  [`string f = 1 [${RULE}.string.pattern = "^[a-z]+$|b"];`, "the pattern ^[a-z]+$|b is not one class, as in ^[a-z]+$"],
  [`string f = 1 [${RULE}.string.pattern = "b|^[a-z]+$"];`, "the pattern b|^[a-z]+$ is not one class, as in ^[a-z]+$"],
  [`string f = 1 [${RULE}.string.pattern = "^[\\\\w]+$"];`, "the pattern ^[\\w]+$ is not one class, as in ^[a-z]+$"],
  [`google.protobuf.Duration f = 1 [${RULE}.duration.gte = {nanos: 5}];`, "a duration has to be in whole seconds"],
  [`google.protobuf.Timestamp f = 1 [${RULE}.timestamp.lt_now = true];`, "rules of timestamp do not fit"],
  [`google.protobuf.StringValue f = 1 [${RULE}.string.max_bytes = 1];`, "rules of string do not fit"],
  [`repeated string f = 1 [${RULE}.string.max_bytes = 1];`, "rules of string do not fit"],
  [`repeated int32 f = 1 [${RULE}.repeated.unique = true];`, "repeated.unique is supported for texts only"],
  [
    `repeated string f = 1 [${RULE}.repeated.items = {required: true}];`,
    "`required` and `ignore` of items are not supported",
  ],
  [
    `repeated string f = 1 [${RULE}.repeated.items = {ignore: IGNORE_IF_ZERO_VALUE, string: {min_bytes: 1}}];`,
    "`required` and `ignore` of items are not supported",
  ],
  [`string f = 1 [${RULE} = {ignore: IGNORE_IF_ZERO_VALUE, string: {min_bytes: 1}}];`, "`ignore` is not supported"],
  [`map<string, string> f = 1 [${RULE}.required = true];`, "rules inside a map are not supported"],
  ["map<string, Inner> f = 1;", "rules inside a map are not supported"],
  [`oneof o { string f = 1 [${RULE}.string.max_bytes = 1]; }`, "rules inside a oneof are not supported"],
  ["oneof o { Inner f = 1; }", "rules inside a oneof are not supported"],
];

const contract = (declarations: string) => `
  service S { rpc R(M) returns (M); }
  enum E { E_ZERO = 0; }
  message M { ${declarations} }
  message Inner { string g = 1 [${RULE}.string.max_bytes = 1]; }`;

/** All test messages are compiled at once, because starting the compiler is slow. */
const all = describeText(`
  service S { ${REFUSED.map((_, index) => `rpc R${index}(M${index}) returns (M${index});`).join("\n")} }
  enum E { E_ZERO = 0; }
  message Inner { string g = 1 [${RULE}.string.max_bytes = 1]; }
  ${REFUSED.map(([declarations], index) => `message M${index} { ${declarations} }`).join("\n")}`);

test.each(REFUSED.map(([declarations, fault], index) => [declarations, fault, index] as const))(
  "%s is refused: %s",
  (_, fault, index) => {
    expect(all.faults).toContain(`field t.v1.M${index}.f: ${fault}`);
  },
);

test("nothing else is refused", () => {
  expect(all.faults).toHaveLength(REFUSED.length);
});

describe("rules of a whole message", () => {
  test.each([
    [
      "oneof o { option (buf.validate.oneof).required = true; string f = 1; }",
      "t.v1.M: rules of a oneof are not supported",
    ],
    [
      'option (buf.validate.message).oneof = {fields: ["x"]}; string f = 1;',
      "t.v1.M: the group names x, which is no field",
    ],
    [
      'option (buf.validate.message).oneof = {fields: ["f", "f"]}; string f = 1;',
      "t.v1.M: a group needs different fields",
    ],
    ["option (buf.validate.message).oneof = {}; string f = 1;", "t.v1.M: a group needs different fields"],
  ])("%s", (declarations, fault) => {
    expect(describeText(contract(declarations)).faults).toEqual([fault]);
  });
});

test("rules that proto/buf/validate does not declare, such as CEL, are refused wherever they are", () => {
  // Adds fields to this repository's validate.proto that it lacks: `cel_expression` with the numbers of the public version, and a made-up
  // rule.
  const complete = readFileSync("proto/buf/validate/validate.proto", "utf8")
    .replace("message FieldRules {", "message FieldRules { repeated string cel_expression = 29;")
    .replace("message MessageRules {", "message MessageRules { repeated string cel_expression = 5;")
    .replace("message StringRules {", "message StringRules { optional bool later = 99;");
  const described = describeText(
    `service S { rpc R(M) returns (M); }
     message M { option (buf.validate.message).cel_expression = "true";
       string f = 1 [${RULE}.cel_expression = "true"];
       string g = 2 [${RULE}.string.later = true];
       repeated string h = 3 [${RULE}.repeated.items.cel_expression = "true"]; }`,
    { "buf/validate/validate.proto": complete },
  );
  expect(described.faults).toEqual([
    "t.v1.M: buf.validate.MessageRules has a field 5, which is not supported",
    "field t.v1.M.f: buf.validate.FieldRules has a field 29, which is not supported",
    "field t.v1.M.g: buf.validate.StringRules has a field 99, which is not supported",
    "field t.v1.M.h: buf.validate.FieldRules has a field 29, which is not supported",
  ]);
});

test("messages that no request holds may have any rules", () => {
  const { rules, faults } = describeText(`
    service S { rpc R(Q) returns (M); }
    message Q { string plain = 1; google.protobuf.Struct claims = 2; }
    message M { string f = 1 [${RULE}.string.email = true]; }`);
  expect([rules, faults]).toEqual([{}, []]);
});

test("the plugin writes nothing where one rule is refused", () => {
  const { file: protoFile } = buildProtos({
    "test.proto": testProto(
      contract(`string e = 1 [${RULE}.required = true]; string f = 2 [${RULE}.string.email = true];`),
    ),
  });
  const parameter = "target=ts,model=./model.ts";
  const request = create(CodeGeneratorRequestSchema, { protoFile, fileToGenerate: ["test.proto"], parameter });
  expect(() => protocGenRules.run(request)).toThrow(
    "field t.v1.M.f: string.email is not supported: add it to src/service/api/rules/checks.ts",
  );
});
