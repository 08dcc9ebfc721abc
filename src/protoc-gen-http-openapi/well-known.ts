import { ScalarType } from "@bufbuild/protobuf";
import type { JsonObject } from "./json.ts";

/** A JSON Schema (2020-12, the dialect of OpenAPI 3.1). */
export type Schema = JsonObject;

/** Describes texts in a union: each alone, because mocks by orval do not compile for arrays of a union with `enum`. */
export const textsOf = (texts: readonly string[]): Schema[] => texts.map((text) => ({ type: "string", const: text }));

const NON_FINITE = textsOf(["NaN", "Infinity", "-Infinity"]);

/** Describes how proto JSON writes a scalar (protobuf.dev/programming-guides/json). 64-bit integers are strings. */
export function scalarSchema(type: ScalarType): Schema {
  switch (type) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    case ScalarType.BYTES:
      return { type: "string", contentEncoding: "base64" };
    case ScalarType.DOUBLE:
      return { oneOf: [{ type: "number", format: "double" }, ...NON_FINITE] };
    case ScalarType.FLOAT:
      return { oneOf: [{ type: "number", format: "float" }, ...NON_FINITE] };
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return { type: "integer", format: "int32", minimum: -2147483648, maximum: 2147483647 };
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return { type: "integer", format: "uint32", minimum: 0, maximum: 4294967295 };
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return { type: "string", format: "int64", pattern: "^-?[0-9]+$" };
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return { type: "string", format: "uint64", pattern: "^[0-9]+$" };
  }
}

/** Describes the keys of a map, which are always strings in JSON. */
export function keySchema(type: ScalarType): Schema | undefined {
  if (type === ScalarType.STRING) return undefined;
  if (type === ScalarType.BOOL) return { enum: ["true", "false"] };
  const { minimum, pattern } = scalarSchema(type);
  return { pattern: pattern ?? (minimum === 0 ? "^[0-9]+$" : "^-?[0-9]+$") };
}

/** The messages of google.protobuf for which proto JSON has a special form. */
const WELL_KNOWN: ReadonlyMap<string, Schema> = new Map(
  Object.entries<Schema>({
    Timestamp: { type: "string", format: "date-time" },
    Duration: { type: "string", pattern: "^-?[0-9]+(\\.[0-9]{1,9})?s$" },
    FieldMask: { type: "string" },
    Struct: { type: "object" },
    Value: {},
    ListValue: { type: "array", items: {} },
    Any: { type: "object", properties: { "@type": { type: "string" } } },
    Empty: { type: "object" },
    DoubleValue: scalarSchema(ScalarType.DOUBLE),
    FloatValue: scalarSchema(ScalarType.FLOAT),
    Int64Value: scalarSchema(ScalarType.INT64),
    UInt64Value: scalarSchema(ScalarType.UINT64),
    Int32Value: scalarSchema(ScalarType.INT32),
    UInt32Value: scalarSchema(ScalarType.UINT32),
    BoolValue: scalarSchema(ScalarType.BOOL),
    StringValue: scalarSchema(ScalarType.STRING),
    BytesValue: scalarSchema(ScalarType.BYTES),
  }).map(([name, schema]) => [`google.protobuf.${name}`, schema]),
);

export function wellKnownSchema(typeName: string): Schema | undefined {
  return WELL_KNOWN.get(typeName);
}
