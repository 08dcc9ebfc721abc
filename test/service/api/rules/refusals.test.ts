/** Rules that the service cannot check are refused, and the contract has none of them: every declared rule is checked. */
import { globSync, readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";
import type { DescFile, DescMethod, DescService } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { hasRules } from "../../../../src/service/api/rules/violations.ts";
import { compileService, faultOf } from "./compile.ts";

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

/** Rules of a whole message. */
const REFUSED_MESSAGES: readonly [declarations: string, fault: string][] = [
  ["oneof o { option (buf.validate.oneof).required = true; string f = 1; }", "rules of a oneof are not supported"],
  ['option (buf.validate.message).oneof = {fields: ["x"]}; string f = 1;', "the group names x, which is no field"],
  ['option (buf.validate.message).oneof = {fields: ["f", "f"]}; string f = 1;', "a group needs different fields"],
  ["option (buf.validate.message).oneof = {}; string f = 1;", "a group needs different fields"],
];

/** The declarations of each request, and its fault after the name of the request. */
const REQUESTS = [
  ...REFUSED.map(([declarations, fault]) => [declarations, "field ", `.f: ${fault}`] as const),
  ...REFUSED_MESSAGES.map(([declarations, fault]) => [declarations, "", `: ${fault}`] as const),
];

const INNER = `message Inner { string g = 1 [${RULE}.string.max_bytes = 1]; }`;

/** All requests are compiled at once, because starting the compiler is slow. */
const { methods } = compileService(`
  service S { ${REQUESTS.map((_, index) => `rpc R${index}(M${index}) returns (M${index});`).join("\n")} }
  enum E { E_ZERO = 0; }
  ${INNER}
  ${REQUESTS.map(([declarations], index) => `message M${index} { ${declarations} }`).join("\n")}`);

test.each(
  REQUESTS.map(
    ([declarations, before, after], index) => [declarations, `${before}t.v1.M${index}${after}`, index] as const,
  ),
)("%s is refused: %s", (_, fault, index) => {
  expect(faultOf((methods[index] as DescMethod).input)).toBe(fault);
});

test("a rule of a message inside a request is refused, also in a list and behind a message that contains the request", () => {
  const { methods } = compileService(`
    service S { rpc A(Direct) returns (Q); rpc B(List) returns (Q); rpc C(Cycle) returns (Q); }
    message Direct { Q f = 1; }
    message List { repeated Q f = 1; }
    message Cycle { Middle f = 1; }
    message Middle { Cycle back = 1; Q f = 2; }
    message Q { string f = 1 [${RULE}.string.email = true]; }`);
  const fault = "field t.v1.Q.f: string.email is not supported: add it to src/service/api/rules/checks.ts";
  expect(methods.map(({ input }) => faultOf(input))).toEqual([fault, fault, fault]);
});

test("rules that proto/buf/validate does not declare, such as CEL, are refused wherever they are", () => {
  // Adds fields to this repository's validate.proto that it lacks: `cel_expression` with the numbers of the public version, and a made-up
  // rule.
  const complete = readFileSync("proto/buf/validate/validate.proto", "utf8")
    .replace("message FieldRules {", "message FieldRules { repeated string cel_expression = 29;")
    .replace("message MessageRules {", "message MessageRules { repeated string cel_expression = 5;")
    .replace("message StringRules {", "message StringRules { optional bool later = 99;");
  const { methods } = compileService(
    `service S { rpc A(M1) returns (M1); rpc B(M2) returns (M1); rpc C(M3) returns (M1); rpc D(M4) returns (M1); }
     message M1 { option (buf.validate.message).cel_expression = "true"; }
     message M2 { string f = 1 [${RULE}.cel_expression = "true"]; }
     message M3 { string f = 1 [${RULE}.string.later = true]; }
     message M4 { repeated string f = 1 [${RULE}.repeated.items.cel_expression = "true"]; }`,
    { "buf/validate/validate.proto": complete },
  );
  expect(methods.map(({ input }) => faultOf(input))).toEqual([
    "t.v1.M1: buf.validate.MessageRules has a field 5, which is not supported",
    "field t.v1.M2.f: buf.validate.FieldRules has a field 29, which is not supported",
    "field t.v1.M3.f: buf.validate.StringRules has a field 99, which is not supported",
    "field t.v1.M4.f: buf.validate.FieldRules has a field 29, which is not supported",
  ]);
});

test("messages that no request holds may have any rules", () => {
  const { methods } = compileService(`
    service S { rpc R(Q) returns (M); }
    message Q { string plain = 1; google.protobuf.Struct claims = 2; }
    message M { string f = 1 [${RULE}.string.email = true]; }`);
  expect(methods.map(({ input }) => [hasRules(input), faultOf(input)])).toEqual([[false, undefined]]);
});

/** Every service of the contract. */
const SERVICES = await Promise.all(
  globSync("gen/auth/**/*_pb.ts").map(async (file) => {
    const module = (await import(pathToFileURL(file).href)) as Record<string, DescFile | DescService>;
    return Object.values(module).filter((value): value is DescService => value.kind === "service");
  }),
);

test.each(SERVICES.flat())("%s: no rule of a request is refused", ({ methods }) => {
  expect(methods.map(({ input }) => faultOf(input)).filter((fault) => fault !== undefined)).toEqual([]);
});
