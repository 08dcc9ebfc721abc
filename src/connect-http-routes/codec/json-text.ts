import { type DescMessage, ScalarType } from "@bufbuild/protobuf";

// TypeScript's lib.es2024 lacks `JSON.rawJSON` (ECMA-262 2026).
const RAW_JSON: unknown = "rawJSON" in JSON ? JSON.rawJSON : undefined;
const MINUS_ZERO: unknown = typeof RAW_JSON === "function" ? RAW_JSON("-0") : 0;

const keepSign = (_: string, value: unknown) => (Object.is(value, -0) ? MINUS_ZERO : value);

/**
 * Returns the replacer with which JSON.stringify writes messages of a type, so that it writes -0 as proto JSON does. Only types that can hold
 * floats need one.
 */
export function jsonReplacerOf(type: DescMessage): ((name: string, value: unknown) => unknown) | undefined {
  return holdsFloat(type, new Set()) ? keepSign : undefined;
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
