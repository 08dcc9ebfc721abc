import { type DescMessage, type JsonValue, ScalarType } from "@bufbuild/protobuf";

// lib.es2024 does not know it yet (ECMA-262 2026); before Node 21 there is none.
const rawJson: unknown = "rawJSON" in JSON ? JSON.rawJSON : undefined;
const minusZero: unknown = typeof rawJson === "function" ? rawJson("-0") : 0;

const keepSign = (_: string, value: unknown) => (Object.is(value, -0) ? minusZero : value);

/**
 * JSON.stringify for messages of a type. It writes -0 as 0, though proto JSON has a -0: where a type can hold one, a
 * replacer keeps the sign; others are spared its cost.
 */
export function jsonTextOf(type: DescMessage): (json: JsonValue) => string {
  return holdsFloat(type, new Set()) ? (json) => JSON.stringify(json, keepSign) : (json) => JSON.stringify(json);
}

function holdsFloat(type: DescMessage, seen: Set<DescMessage>): boolean {
  if (type.typeName === "google.protobuf.Any") return true;
  if (seen.has(type)) return false;
  seen.add(type);
  return type.fields.some(
    ({ scalar, message }) =>
      scalar === ScalarType.DOUBLE ||
      scalar === ScalarType.FLOAT ||
      (message !== undefined && holdsFloat(message, seen)),
  );
}
