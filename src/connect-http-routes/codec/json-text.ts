import { type DescMessage, ScalarType } from "@bufbuild/protobuf";
import { typesWithin } from "../routes/field-path.ts";

// TypeScript's lib.es2024 lacks `JSON.rawJSON` (ECMA-262 2026).
const RAW_JSON: unknown = "rawJSON" in JSON ? JSON.rawJSON : undefined;
const MINUS_ZERO: unknown = typeof RAW_JSON === "function" ? RAW_JSON("-0") : 0;

const keepSign = (_: string, value: unknown) => (Object.is(value, -0) ? MINUS_ZERO : value);

/** Returns the replacer by which JSON.stringify writes -0 as proto JSON does; undefined for types that cannot hold floats. */
export function jsonReplacerOf(type: DescMessage): ((name: string, value: unknown) => unknown) | undefined {
  return [...typesWithin(type)].some(mayHoldFloat) ? keepSign : undefined;
}

function mayHoldFloat({ typeName, fields }: DescMessage): boolean {
  if (typeName === "google.protobuf.Any") return true;
  return fields.some(({ scalar }) => scalar === ScalarType.DOUBLE || scalar === ScalarType.FLOAT);
}
