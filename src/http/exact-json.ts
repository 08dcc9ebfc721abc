import { type DescField, type DescMessage, type JsonValue, ScalarType } from "@bufbuild/protobuf";

/** JSON whose integers beyond 2^53 are still what was written. */
type ExactJson = JsonValue | bigint | ExactJson[] | { [key: string]: ExactJson };

// lib.es2024 does not know the third parameter yet (ECMA-262 2026, JSON.parse source text access).
const parse = JSON.parse as (
  text: string,
  reviver: (key: string, value: ExactJson, context: { readonly source?: string } | undefined) => ExactJson,
) => ExactJson;

const wide: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);

/**
 * Parses the JSON of a message. Proto JSON takes 64-bit integers as numbers too, but a JavaScript number holds 53 bits:
 * what is wider becomes a string, which fields of 64 bits take exactly, and stays a number everywhere else.
 * @throws SyntaxError
 */
export function parseMessageJson(text: string, fieldOf: (json: JsonValue) => JsonValue, type: DescMessage): JsonValue {
  if (!/[0-9]{16}/.test(text)) return fieldOf(JSON.parse(text) as JsonValue);
  const json = parse(text, (_, value, context) => {
    if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
    // Before Node 21 there is no source: such numbers are then as exact as JavaScript has them.
    const source = context?.source ?? "";
    return /^-?[0-9]{16,20}$/.test(source) ? BigInt(source) : value;
  });
  return settleMessage(type, fieldOf(json as JsonValue));
}

function settleMessage(type: DescMessage, json: ExactJson): JsonValue {
  if (type.typeName.startsWith("google.protobuf.")) {
    const value = type.fields[0];
    return value !== undefined && type.fields.length === 1 ? settleSingular(value, json) : toNumbers(json);
  }
  if (typeof json !== "object" || json === null || Array.isArray(json)) return toNumbers(json);
  return mapValues(json, (value, name) => {
    const field = type.fields.find((f) => f.jsonName === name || f.name === name);
    return field === undefined ? toNumbers(value) : settleField(field, value);
  });
}

function settleField(field: DescField, json: ExactJson): JsonValue {
  if (field.fieldKind === "list" && Array.isArray(json)) return json.map((item) => settleSingular(field, item));
  if (field.fieldKind === "map" && typeof json === "object" && json !== null && !Array.isArray(json)) {
    return mapValues(json, (item) => settleSingular(field, item));
  }
  return settleSingular(field, json);
}

function settleSingular(field: DescField, json: ExactJson): JsonValue {
  if (field.message !== undefined) return settleMessage(field.message, json);
  return typeof json === "bigint" && field.scalar !== undefined && wide.has(field.scalar)
    ? String(json)
    : toNumbers(json);
}

function toNumbers(json: ExactJson): JsonValue {
  if (typeof json === "bigint") return Number(json);
  if (typeof json !== "object" || json === null) return json;
  return Array.isArray(json) ? json.map(toNumbers) : mapValues(json, toNumbers);
}

/** An object of the same keys, `__proto__` among them. */
function mapValues(
  object: { [key: string]: ExactJson },
  change: (value: ExactJson, key: string) => JsonValue,
): { [key: string]: JsonValue } {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
}
