/** Converts the `buf.validate` options of a value to checks: the ids and arguments of functions in src/service/api/rules/checks.ts. */
import { type DescField, isFieldSet, type Message, ScalarType } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { type FieldRules as FieldOption, FieldRulesSchema, Ignore } from "../../../gen/buf/validate/validate_pb.ts";
import { type ArgumentOf, CHECKS, type RuleId } from "../api/rules/checks.ts";
import type { RuleCheck } from "../api/rules/model.ts";

/** A pattern must be one repeated class of characters from the beginning to the end. RE2 and JavaScript match it alike, in linear time. */
const PLAIN_PATTERN = /^\^(?:\\[pP]\{\w+\}|\[(?:[^\\[\]]|\\\W)+\])[*+]\$$/u;

/** For each rule the function that converts its value to the check's argument, or to undefined if the value switches the rule off. */
const ARGUMENTS: { [Id in RuleId]: (value: never, field: DescField) => ArgumentOf<Id> | undefined } = {
  "string.min_bytes": Number,
  "string.max_bytes": Number,
  "string.pattern"(pattern: string) {
    if (!PLAIN_PATTERN.test(pattern)) throw new Error(`the pattern ${pattern} is not one class, as in ^[a-z]+$`);
    new RegExp(pattern, "u");
    return pattern;
  },
  "int32.gte": Number,
  "duration.gte"({ seconds, nanos }: Duration) {
    if (nanos !== 0) throw new Error("a duration has to be in whole seconds");
    return Number(seconds);
  },
  "enum.defined_only": (isOn: boolean, field) => (isOn ? field.enum?.values.map(({ number }) => number) : undefined),
  "repeated.max_items": Number,
  "repeated.unique"(isOn: boolean, field) {
    if (field.scalar !== ScalarType.STRING) throw new Error("repeated.unique is supported for texts only");
    return isOn ? true : undefined;
  },
};

/** Returns the checks of a field's value. @throws Error for a rule that cannot be expressed */
export function describeValue(field: DescField, { type }: FieldOption): RuleCheck[] {
  return describeChecks(field, type, field.fieldKind === "list" ? "repeated" : kindOfValue(field));
}

/** Returns the checks of the items of a list. @throws Error for a rule that cannot be expressed */
export function describeItems(field: DescField, { type }: FieldOption): RuleCheck[] {
  const option = type.case === "repeated" ? type.value.items : undefined;
  if (option === undefined) return [];
  refuseUnknown(option);
  if (option.required || option.ignore !== Ignore.UNSPECIFIED) {
    throw new Error("`required` and `ignore` of items are not supported");
  }
  return describeChecks(field, option.type, kindOfValue(field));
}

/** Returns the member of `FieldRules.type` that fits a value or an item. */
function kindOfValue({ scalar, enum: enumType, message }: DescField): string {
  if (scalar !== undefined) return ScalarType[scalar].toLowerCase();
  if (enumType !== undefined) return "enum";
  return message?.typeName === DurationSchema.typeName ? "duration" : "";
}

/** Rules that are skipped when the checks of a list are described, because they are about its items, which have checks of their own. */
const APART: readonly string[] = ["repeated.items"];

function describeChecks(field: DescField, rules: FieldOption["type"], kind: string): RuleCheck[] {
  if (rules.case === undefined) return [];
  if (rules.case !== kind) throw new Error(`rules of ${rules.case} do not fit`);
  refuseUnknown(rules.value);
  const schema = FieldRulesSchema.field[rules.case].message;
  const set = (schema?.fields ?? []).filter((rule) => rule.name !== "example" && isFieldSet(rules.value, rule));
  return set.flatMap((rule) => {
    const ruleId = `${rules.case}.${rule.name}`;
    if (APART.includes(ruleId)) return [];
    if (!isKnown(ruleId)) throw new Error(`${ruleId} is not supported: add it to src/service/api/rules/checks.ts`);
    const argument = ARGUMENTS[ruleId](readField(rules.value, rule) as never, field);
    return argument === undefined ? [] : [[ruleId, argument] as RuleCheck];
  });
}

const isKnown = (ruleId: string): ruleId is RuleId => Object.hasOwn(CHECKS, ruleId);

/** Returns the value of a field that is set, alone or in a oneof. */
function readField(message: Message, { localName, oneof }: DescField): unknown {
  const record = message as unknown as Record<string, unknown>;
  if (oneof === undefined) return record[localName];
  return (record[oneof.localName] as { readonly value?: unknown }).value;
}

/** Refuses rules that the declarations in proto/buf/validate lack: CEL and rules of later versions. @throws Error */
export function refuseUnknown(option: Message): void {
  const [first] = option.$unknown ?? [];
  if (first !== undefined) throw new Error(`${option.$typeName} has a field ${first.no}, which is not supported`);
}
