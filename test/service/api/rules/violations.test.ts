/** The rules of requests find the same violations as protovalidate, an independent implementation. */
import {
  create,
  type DescField,
  type DescMessage,
  type DescService,
  getOption,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { pathToString } from "@bufbuild/protobuf/reflect";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { createValidator } from "@bufbuild/protovalidate";
import fc, { type Arbitrary } from "fast-check";
import { describe, expect, test } from "vitest";
import { OAuthAdminService } from "../../../../gen/auth/admin/v1/oauth_admin_pb.ts";
import { SessionAdminService } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SharedSignalsService } from "../../../../gen/auth/admin/v1/shared_signals_pb.ts";
import { SignalsAdminService } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { OAuthService } from "../../../../gen/auth/v1/oauth_pb.ts";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { field as fieldRules } from "../../../../gen/buf/validate/validate_pb.ts";
import { hasRules, prepareRules } from "../../../../src/service/api/rules/violations.ts";
import { compileService } from "./compile.ts";

const RULE = "(buf.validate.field)";

/** Invented messages with rules that the contract lacks, alone or combined: nested and recursive messages, presence, groups. */
const synthetic = compileService(`
  service S { rpc R(M) returns (M); rpc P(Plain) returns (M); }
  enum E { E_ZERO = 0; E_ONE = 1; E_FAR = 300; }
  message Inner { string text = 1 [${RULE}.string.max_bytes = 2]; }
  message Plain { google.protobuf.Struct claims = 1; oneof o { string a = 2; int32 b = 3; } }
  message M {
    option (buf.validate.message).oneof = {fields: ["name", "tags", "deep", "since"], required: true};
    option (buf.validate.message).oneof = {fields: ["count", "kind"]};
    string name = 1 [${RULE}.required = true, ${RULE}.string.max_bytes = 2];
    optional string nick = 2 [${RULE}.string = {min_bytes: 1, max_bytes: 3, pattern: "^[a-zé]+$"}];
    optional string real = 3 [${RULE}.required = true, ${RULE}.string.min_bytes = 2];
    repeated string tags = 4 [${RULE}.repeated = {max_items: 2, unique: true, items: {string: {max_bytes: 3}}}];
    repeated M others = 5 [${RULE}.repeated.max_items = 2];
    M deep = 6;
    M needed = 7 [${RULE}.required = true];
    int32 count = 8 [${RULE}.int32.gte = 1];
    optional int32 more = 9 [${RULE}.int32.gte = -2];
    E kind = 10 [${RULE}.enum.defined_only = true];
    optional E other = 11 [${RULE}.enum.defined_only = true];
    repeated E kinds = 12 [${RULE}.repeated.items.enum.defined_only = true];
    google.protobuf.Duration since = 13 [${RULE}.duration.gte = {seconds: -2}];
    repeated google.protobuf.Duration times = 14 [${RULE}.repeated.items.duration.gte = {seconds: 1}];
    repeated string off = 15 [${RULE}.repeated.unique = false];
    E any = 16 [${RULE}.enum.defined_only = false];
    bool flag = 17 [${RULE}.required = true];
    repeated int32 numbers = 18 [${RULE}.required = true, ${RULE}.repeated.items.int32.gte = 0];
    bytes raw = 19 [${RULE}.required = true];
    Inner inner = 20;
  }`);

const validator = createValidator();

const CONTRACTS: readonly DescService[] = [
  ...[SessionAdminService, OAuthAdminService, SharedSignalsService, SignalsAdminService],
  ...[SessionService, OAuthService, synthetic],
];

/** Lengths at and beside the limits of the contracts. */
const LENGTHS = [1, 2, 3, 4, 32, 64, 128, 255, 512].flatMap((length) => [length - 1, length, length + 1]);
const text: Arbitrary<string> = fc.oneof(
  fc.constantFrom("", "a", "ab", "b"),
  fc
    .tuple(fc.constantFrom("a", "é", "🙂", "\u0085", " "), fc.constantFrom(...LENGTHS), fc.constantFrom("", "\n", "z"))
    .map(([unit, bytes, last]) => unit.repeat(bytes / Buffer.byteLength(unit)) + last),
  fc.string({ unit: "binary", maxLength: 5 }),
);
const duration: Arbitrary<Message> = fc
  .record({
    seconds: fc.oneof(fc.bigInt({ min: -4n, max: 4n }), fc.constantFrom(315_576_000_001n, -(2n ** 62n))),
    nanos: fc.constantFrom(0, 1, -1, 999_999_999, -999_999_999, 2_000_000_000),
  })
  .map((value) => create(DurationSchema, value));

function scalar(type: ScalarType): Arbitrary<unknown> {
  if (type === ScalarType.STRING) return text;
  if (type === ScalarType.INT32) return fc.oneof(fc.integer({ min: -4, max: 4 }), fc.integer());
  if (type === ScalarType.BOOL) return fc.boolean();
  if (type === ScalarType.BYTES) return fc.uint8Array({ maxLength: 2 });
  throw new Error(`no values of ${ScalarType[type]}`);
}

function single(field: DescField, depth: number): Arbitrary<unknown> {
  if (field.enum !== undefined) return fc.constantFrom(-1, 0, 1, 2, 300);
  if (field.scalar !== undefined) return scalar(field.scalar);
  if (field.message?.typeName === DurationSchema.typeName) return duration;
  if (field.message !== undefined) return requestOf(field.message, depth - 1);
  throw new Error(`no values of ${field}`);
}

/** Generates any message of a type, with each field set or not. */
function requestOf(type: DescMessage, depth = 2): Arbitrary<Message> {
  const foreign = type.file.proto.package?.startsWith("google.") ?? false;
  if (foreign || depth === 0) return fc.constant(create(type));
  const values = type.members.flatMap((member): (readonly [string, Arbitrary<unknown>])[] => {
    if (member.kind === "oneof") {
      const set = member.fields.map((field) =>
        fc.record({ case: fc.constant(field.localName), value: single(field, depth) }),
      );
      return [[member.localName, fc.oneof(...set)]];
    }
    const value = single(member, depth);
    return [[member.localName, member.fieldKind === "list" ? fc.array(value, { maxLength: 10, size: "max" }) : value]];
  });
  const any = fc.record(Object.fromEntries(values), { requiredKeys: [] });
  // With the required fields and at most two others a message is valid so often that 300 of them have both outcomes.
  const required = new Set(
    type.fields.filter((field) => getOption(field, fieldRules).required).map(({ localName }) => localName),
  );
  const needed = values.filter(([name]) => required.has(name));
  const others = values.filter(([name]) => !required.has(name));
  const few = fc
    .subarray(others, { maxLength: Math.min(2, others.length) })
    .chain((chosen): Arbitrary<Record<string, unknown>> => fc.record(Object.fromEntries([...needed, ...chosen])));
  return fc.oneof(any, few).map((init) => create(type, init));
}

function expected(type: DescMessage, message: Message) {
  const result = validator.validate(type, message);
  if (result.kind === "error") throw result.error;
  return (result.violations ?? []).map(({ field, message: description, ruleId }) => ({
    field: pathToString(field),
    description,
    ruleId,
  }));
}

describe.each(CONTRACTS)("%s", (service) => {
  test.each(service.methods)("%s: the violations of any request are those of protovalidate", (method) => {
    const seen = { valid: false, invalid: false };
    const violationsOf = prepareRules(method.input, Number.POSITIVE_INFINITY);
    fc.assert(
      fc.property(requestOf(method.input), (request) => {
        const violations = expected(method.input, request);
        seen[violations.length === 0 ? "valid" : "invalid"] = true;
        expect(violationsOf(request)).toEqual(violations);
      }),
      { numRuns: hasRules(method.input) ? 300 : 20 },
    );
    if (hasRules(method.input) && method.input.typeName !== "t.v1.M")
      expect(seen).toEqual({ valid: true, invalid: true });
  });
});

test("a request is examined until enough is found", () => {
  const method = synthetic.method.r;
  if (method === undefined) throw new Error("no method R");
  const request = create(method.input, { kinds: Array<number>(1000).fill(7) } as Record<string, unknown>);
  const all = expected(method.input, request);
  expect(prepareRules(method.input, 5)(request)).toEqual(all.slice(0, 5));
});
