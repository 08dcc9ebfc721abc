import type { JsonObject, JsonValue } from "@bufbuild/protobuf";

export function isJsonObject(json: JsonValue): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

/** Maps the values of an object; the keys, even `__proto__`, stay the same. */
export function mapValues<Value>(
  object: { readonly [key: string]: Value },
  change: (value: Value, key: string) => JsonValue,
): JsonObject {
  return Object.fromEntries(Object.entries(object).map(([key, value]) => [key, change(value, key)]));
}
