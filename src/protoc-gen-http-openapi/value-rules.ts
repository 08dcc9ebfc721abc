/** Maps the rules of numbers and enums (`buf.validate`) to schema keywords. */
import type { DescEnum } from "@bufbuild/protobuf";
import type { EnumRules } from "../../gen/buf/validate/validate_pb.ts";
import type { Schema } from "./well-known.ts";

type Bound<Value, Exclusive extends string, Inclusive extends string> =
  | { readonly case: Exclusive | Inclusive; readonly value: Value }
  | { readonly case: undefined; readonly value?: undefined };

/** The rules that all types of numbers have in common. */
interface NumberRules<Value extends number | bigint> {
  readonly const: Value;
  readonly in: readonly Value[];
  readonly notIn: readonly Value[];
  readonly example: readonly Value[];
  readonly lessThan: Bound<Value, "lt", "lte">;
  readonly greaterThan: Bound<Value, "gt", "gte">;
}

/** @param hasConst whether the rules set `const`, which cannot be seen from its value if that is zero */
export function integerKeywords(rules: NumberRules<number>, hasConst: boolean): Schema {
  return { ...valueKeywords(rules, hasConst, (value) => value), ...bounds(rules, 1) };
}

/** Returns the keywords of a double. JSON writes NaN and Infinity as words, which are excluded if there are bounds. */
export function floatKeywords(
  rules: NumberRules<number> & { readonly finite: boolean },
  format: string,
  hasConst: boolean,
): Schema {
  const limits = bounds(rules);
  const values = valueKeywords(rules, hasConst, (value) => (Number.isFinite(value) ? value : String(value)));
  if (!rules.finite && Object.keys(limits).length === 0) return values;
  return { oneOf: undefined, type: "number", format, ...values, ...limits };
}

/** JSON writes 64-bit integers as strings, whose bounds no keyword can express. A text states them. */
export function longKeywords(rules: NumberRules<bigint>, hasConst: boolean): Schema {
  const { greaterThan } = rules;
  const positive = greaterThan.case !== undefined && greaterThan.value >= 0n && bounds(rules).anyOf === undefined;
  return { ...valueKeywords(rules, hasConst, String), ...(positive && { pattern: "^[0-9]+$" }) };
}

/** Returns the bounds of a 64-bit integer as a sentence; undefined if there are none. */
export function longBounds({ lessThan, greaterThan }: NumberRules<bigint>): string | undefined {
  const words = { gt: "more than", gte: "at least", lt: "less than", lte: "at most" };
  const parts = [greaterThan, lessThan].flatMap((b) => (b.case === undefined ? [] : [`${words[b.case]} ${b.value}`]));
  if (parts.length === 0) return undefined;
  const text = parts.join(isOutside({ lessThan, greaterThan }) ? " or " : " and ");
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
}

/** Whether the lower bound is above the upper one. The rule then excludes the values between them. */
function isOutside({ lessThan, greaterThan }: Pick<NumberRules<number | bigint>, "lessThan" | "greaterThan">): boolean {
  return lessThan.case !== undefined && greaterThan.case !== undefined && lessThan.value < greaterThan.value;
}

/** @param step of integers: the difference between an exclusive bound and the inclusive one that replaces it, and that of the type */
function bounds(rules: Pick<NumberRules<number | bigint>, "lessThan" | "greaterThan">, step?: 1): Schema {
  const { lessThan, greaterThan } = rules;
  const lower: Schema = {
    ...(greaterThan.case === "gte" && { minimum: Number(greaterThan.value) }),
    ...(greaterThan.case === "gt" &&
      (step ? { minimum: Number(greaterThan.value) + step } : { exclusiveMinimum: Number(greaterThan.value) })),
  };
  const upper: Schema = {
    ...(lessThan.case === "lte" && { maximum: Number(lessThan.value) }),
    ...(lessThan.case === "lt" &&
      (step ? { maximum: Number(lessThan.value) - step } : { exclusiveMaximum: Number(lessThan.value) })),
  };
  return isOutside(rules) ? { anyOf: [lower, upper] } : { ...lower, ...upper };
}

function valueKeywords<Value extends number | bigint>(
  rules: NumberRules<Value>,
  hasConst: boolean,
  toJson: (value: Value) => number | string,
): Schema {
  return {
    ...(hasConst && { const: toJson(rules.const) }),
    ...(rules.in.length > 0 && { enum: rules.in.map(toJson) }),
    ...(rules.notIn.length > 0 && { not: { enum: rules.notIn.map(toJson) } }),
    ...(rules.example.length > 0 && { examples: rules.example.map(toJson) }),
  };
}

/** JSON writes the values of an enum as their names, unless as numbers. */
export function enumKeywords(
  rules: EnumRules,
  type: DescEnum | undefined,
  hasConst: boolean,
  asInteger: boolean,
): Schema {
  const valuesOf = (numbers: readonly number[]): readonly (string | number)[] =>
    asInteger ? numbers : numbers.flatMap((number) => type?.value[number]?.name ?? []);
  const [only] = valuesOf([rules.const]);
  return {
    ...(rules.definedOnly && (asInteger ? { enum: type?.values.map(({ number }) => number) } : { type: "string" })),
    ...(hasConst && only !== undefined && { const: only }),
    ...(rules.in.length > 0 && { enum: valuesOf(rules.in) }),
    ...(rules.notIn.length > 0 && { not: { enum: valuesOf(rules.notIn) } }),
    ...(rules.example.length > 0 && { examples: valuesOf(rules.example) }),
  };
}
