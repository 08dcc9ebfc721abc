import { type DescField, type DescMessage, type JsonValue, ScalarType } from "@bufbuild/protobuf";

/** A number as it is written, where a JavaScript number may not be what was meant. */
class Written {
  readonly text: string;
  readonly value: number;
  constructor(text: string, value: number) {
    this.text = text;
    this.value = value;
  }
}

/** JSON whose long numbers are still what was written. */
type ExactJson = JsonValue | Written | ExactJson[] | { [key: string]: ExactJson };

// lib.es2024 does not know the third parameter yet (ECMA-262 2026, JSON.parse source text access).
const parse = JSON.parse as (
  text: string,
  reviver: (key: string, value: ExactJson, context: { readonly source?: string } | undefined) => ExactJson,
) => ExactJson;

/** Whether a text may have numbers of 16 digits, or with an exponent: all others are what JavaScript makes of them. */
const delicate = /[0-9][0-9.]{15}|[0-9][eE]/;

const floating: ReadonlySet<ScalarType> = new Set([ScalarType.DOUBLE, ScalarType.FLOAT]);

/**
 * JSON.parse, but what is too large for a number (`1e400`) is an error and not Infinity, which no JSON can write.
 * @throws SyntaxError, RangeError
 */
export function parseJson(text: string): JsonValue {
  return delicate.test(text) ? toNumbers(parse(text, written)) : (JSON.parse(text) as JsonValue);
}

/**
 * Parses the JSON of a message. Proto JSON takes 64-bit integers as numbers too, also with a fraction of zeros or an
 * exponent, but a JavaScript number holds 53 bits: what is longer becomes a string, which integer fields take exactly or
 * refuse, and stays a number everywhere else.
 * @throws SyntaxError, RangeError if a number is too large or the nesting too deep
 */
export function parseMessageJson(text: string, fieldOf: (json: JsonValue) => JsonValue, type: DescMessage): JsonValue {
  if (!delicate.test(text)) return fieldOf(JSON.parse(text) as JsonValue);
  return settleMessage(type, fieldOf(parse(text, written) as JsonValue));
}

/** A number that JSON has and JavaScript has not. */
export class NumberOutOfRange extends RangeError {
  override readonly name = "NumberOutOfRange";
}

function written(_: string, value: ExactJson, context: { readonly source?: string } | undefined): ExactJson {
  if (typeof value !== "number") return value;
  if (!Number.isFinite(value)) throw new NumberOutOfRange("a number is out of range");
  // Before Node 21 there is no source: such numbers are then as exact as JavaScript has them.
  const source = context?.source ?? "0";
  return /^-?[0-9]{1,15}$/.test(source) ? value : new Written(source, value);
}

function settleMessage(type: DescMessage, json: ExactJson): JsonValue {
  if (type.typeName.startsWith("google.protobuf.")) {
    const value = type.fields[0];
    return value !== undefined && type.fields.length === 1 ? settleSingular(value, json) : toNumbers(json);
  }
  if (!isObject(json)) return toNumbers(json);
  return mapValues(json, (value, name) => {
    const field = type.fields.find((f) => f.jsonName === name || f.name === name);
    return field === undefined ? toNumbers(value) : settleField(field, value);
  });
}

function settleField(field: DescField, json: ExactJson): JsonValue {
  if (field.fieldKind === "list" && Array.isArray(json)) return json.map((item) => settleSingular(field, item));
  if (field.fieldKind === "map" && isObject(json)) return mapValues(json, (item) => settleSingular(field, item));
  return settleSingular(field, json);
}

function settleSingular(field: DescField, json: ExactJson): JsonValue {
  if (field.message !== undefined) return settleMessage(field.message, json);
  return json instanceof Written && field.scalar !== undefined && !floating.has(field.scalar)
    ? integerText(json.text)
    : toNumbers(json);
}

/** The integer that a number is, in digits alone. What is no integer, or longer than 64 bits, stays as it is written. */
function integerText(text: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return "0";
  const scale = Number(exponent) - fraction.length;
  if (digits.length + scale > 20) return text;
  if (scale >= 0) return sign + digits + "0".repeat(scale);
  const cut = digits.length + scale;
  return cut > 0 && /^0+$/.test(digits.slice(cut)) ? sign + digits.slice(0, cut) : text;
}

function toNumbers(json: ExactJson): JsonValue {
  if (json instanceof Written) return json.value;
  if (Array.isArray(json)) return json.map(toNumbers);
  return isObject(json) ? mapValues(json, toNumbers) : json;
}

function isObject(json: ExactJson): json is { [key: string]: ExactJson } {
  return typeof json === "object" && json !== null && !Array.isArray(json) && !(json instanceof Written);
}

/** An object of the same keys, `__proto__` among them. */
function mapValues(
  object: { [key: string]: ExactJson },
  change: (value: ExactJson, key: string) => JsonValue,
): { [key: string]: JsonValue } {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
}
