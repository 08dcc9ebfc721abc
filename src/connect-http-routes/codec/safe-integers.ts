import { ScalarType } from "@bufbuild/protobuf";
import type { FieldChange } from "./field-values.ts";

const OF_64_BITS: ReadonlySet<ScalarType | undefined> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);

/** Writes 64-bit integers as numbers, if JavaScript reads them exactly. Proto JSON writes all of them as text. */
export const SAFE_INTEGERS: FieldChange = {
  isMeant: (field) => OF_64_BITS.has(field.scalar),
  change: (_, json) => (typeof json === "string" && Number.isSafeInteger(Number(json)) ? Number(json) : json),
};
