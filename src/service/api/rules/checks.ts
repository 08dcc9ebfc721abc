/** The supported rules of `buf.validate`, with the descriptions of protovalidate. Others are refused, so that no rule is left unchecked. */
import { type DescField, isFieldSet, type Message, ScalarType } from "@bufbuild/protobuf";
import { type Duration, DurationSchema } from "@bufbuild/protobuf/wkt";
import { type FieldRules, FieldRulesSchema, Ignore } from "../../../../gen/buf/validate/validate_pb.ts";

export type Check = {
  readonly ruleId: string;
  readonly description: string;
  readonly holds: (value: unknown) => boolean;
};

/** Makes the check of a rule from the rule's value. It returns undefined if the value switches the rule off. */
type CreateCheck = (
  argument: never,
  field: DescField,
) => { readonly description: string; readonly holds: (value: never) => boolean } | undefined;

/** A pattern must be one repeated class of characters from the beginning to the end. RE2 and JavaScript match it alike, in linear time. */
const PLAIN_PATTERN = /^\^(?:\\[pP]\{\w+\}|\[(?:[^\\[\]]|\\\W)+\])[*+]\$$/u;

const CHECKS: Readonly<Record<string, CreateCheck>> = {
  "string.min_bytes": (least: bigint) => ({
    description: `must be at least ${least} bytes`,
    holds: (text: string) => Buffer.byteLength(text) >= least,
  }),
  "string.max_bytes": (most: bigint) => ({
    description: `must be at most ${most} bytes`,
    holds: (text: string) => Buffer.byteLength(text) <= most,
  }),
  "string.pattern"(source: string) {
    if (!PLAIN_PATTERN.test(source)) throw new Error(`the pattern ${source} is not one class, as in ^[a-z]+$`);
    const pattern = new RegExp(source, "u");
    return {
      description: `does not match regex pattern \`${source}\``,
      holds: (text: string) => pattern.test(text),
    };
  },
  "int32.gte": (least: number) => ({
    description: `must be greater than or equal to ${least}`,
    holds: (value: number) => value >= least,
  }),
  "duration.gte"(least: Duration) {
    if (least.nanos !== 0) throw new Error("a duration has to be in whole seconds");
    return {
      description: `must be greater than or equal to ${least.seconds}s`,
      holds: ({ seconds, nanos }: Duration) => seconds > least.seconds || (seconds === least.seconds && nanos >= 0),
    };
  },
  "enum.defined_only": (isOn: boolean, { enum: type }) =>
    isOn
      ? {
          description: "value must be one of the defined enum values",
          holds: (value: number) => type?.value[value] !== undefined,
        }
      : undefined,
  "repeated.max_items": (most: bigint) => ({
    description: `must contain no more than ${most} item(s)`,
    holds: (items: readonly unknown[]) => items.length <= most,
  }),
  "repeated.unique"(isOn: boolean, { scalar }) {
    if (scalar !== ScalarType.STRING) throw new Error("repeated.unique is supported for texts only");
    return isOn
      ? {
          description: "repeated value must contain unique items",
          holds: (items: readonly unknown[]) => new Set(items).size === items.length,
        }
      : undefined;
  },
};

/** Returns the checks of a field's value. @throws Error for a rule that is not supported */
export function checksOfValue(field: DescField, { type }: FieldRules): Check[] {
  return createChecks(field, type, field.fieldKind === "list" ? "repeated" : kindOfValue(field));
}

/** Returns the checks of the items of a list. @throws Error for a rule that is not supported */
export function checksOfItems(field: DescField, { type }: FieldRules): Check[] {
  const rules = type.case === "repeated" ? type.value.items : undefined;
  if (rules === undefined) return [];
  requireKnown(rules);
  if (rules.required || rules.ignore !== Ignore.UNSPECIFIED) {
    throw new Error("`required` and `ignore` of items are not supported");
  }
  return createChecks(field, rules.type, kindOfValue(field));
}

/** @throws Error for rules that the declarations in proto/buf/validate lack: CEL and rules of later versions */
export function requireKnown(option: Message): void {
  const [first] = option.$unknown ?? [];
  if (first !== undefined) throw new Error(`${option.$typeName} has a field ${first.no}, which is not supported`);
}

/** Returns the member of `FieldRules.type` that fits a value or an item. */
function kindOfValue({ scalar, enum: enumType, message }: DescField): string {
  if (scalar !== undefined) return ScalarType[scalar].toLowerCase();
  if (enumType !== undefined) return "enum";
  return message?.typeName === DurationSchema.typeName ? "duration" : "";
}

/** Members of rules that are no checks of the value itself: the items of a list have checks of their own. */
const NO_CHECKS: readonly string[] = ["repeated.items"];

function createChecks(field: DescField, rules: FieldRules["type"], kind: string): Check[] {
  if (rules.case === undefined) return [];
  if (rules.case !== kind) throw new Error(`rules of ${rules.case} do not fit`);
  requireKnown(rules.value);
  const schema = FieldRulesSchema.field[rules.case].message;
  const set = (schema?.fields ?? []).filter((rule) => rule.name !== "example" && isFieldSet(rules.value, rule));
  return set.flatMap((rule) => {
    const ruleId = `${rules.case}.${rule.name}`;
    if (NO_CHECKS.includes(ruleId)) return [];
    const create = CHECKS[ruleId];
    if (create === undefined) throw new Error(`${ruleId} is not supported: add it to src/service/api/rules/checks.ts`);
    const check = create(readField(rules.value, rule) as never, field);
    return check === undefined ? [] : [{ ruleId, ...check } as Check];
  });
}

/** Returns the value of a field that is set, alone or in a oneof. */
function readField(message: Message, { localName, oneof }: DescField): unknown {
  const record = message as unknown as Record<string, unknown>;
  if (oneof === undefined) return record[localName];
  return (record[oneof.localName] as { readonly value?: unknown }).value;
}
