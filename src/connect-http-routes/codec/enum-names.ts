/** Accepts the names of enum values in any case (`caseInsensitiveEnums`). */
import type { DescEnum, DescField, DescMessage, JsonValue, Registry } from "@bufbuild/protobuf";
import { isJsonObject, mapValues } from "./json-values.ts";

const namesOf = new WeakMap<DescEnum, ReadonlyMap<string, string>>();

/** Returns the declared spelling of a name: the name itself if it is declared, else a declared name that differs only in case. */
export function declaredName(type: DescEnum, name: string): string {
  let names = namesOf.get(type);
  if (names === undefined) {
    const reversed = [...type.values].reverse();
    const inLowerCase = reversed.map((value) => [value.name.toLowerCase(), value.name] as const);
    names = new Map([...inLowerCase, ...reversed.map((value) => [value.name, value.name] as const)]);
    namesOf.set(type, names);
  }
  return names.get(name) ?? names.get(name.toLowerCase()) ?? name;
}

/** Replaces the names of enum values in the JSON of a message by their declared spelling. */
export type EnumNormalizer = (json: JsonValue) => JsonValue;

/**
 * Creates the function that replaces the names in a message of this type; undefined if the message holds no enums.
 * @param registry the types that `google.protobuf.Any` may hold
 */
export function createEnumNormalizer(type: DescMessage, registry: Registry | undefined): EnumNormalizer | undefined {
  return holdsEnum(type, new Set()) ? (json) => inMessage(type, json, registry) : undefined;
}

function holdsEnum(type: DescMessage, seen: Set<DescMessage>): boolean {
  if (type.typeName === ANY) return true;
  if (seen.has(type)) return false;
  seen.add(type);
  return type.fields.some((field) => field.enum !== undefined || (field.message && holdsEnum(field.message, seen)));
}

const ANY = "google.protobuf.Any";

function inMessage(type: DescMessage, json: JsonValue, registry: Registry | undefined): JsonValue {
  if (!isJsonObject(json)) return json;
  if (type.typeName === ANY) {
    const url = json["@type"];
    const inner = typeof url === "string" ? registry?.getMessage(url.slice(url.lastIndexOf("/") + 1)) : undefined;
    return inner === undefined || inner.typeName === ANY ? json : inMessage(inner, json, registry);
  }
  if (type.typeName.startsWith("google.protobuf.")) return json;
  return mapValues(json, (value, name) => {
    const field = type.fields.find((f) => f.jsonName === name || f.name === name);
    return field === undefined ? value : inField(field, value, registry);
  });
}

function inField(field: DescField, json: JsonValue, registry: Registry | undefined): JsonValue {
  if (field.fieldKind === "list" && Array.isArray(json)) return json.map((item) => inValue(field, item, registry));
  if (field.fieldKind === "map" && isJsonObject(json)) return mapValues(json, (item) => inValue(field, item, registry));
  return inValue(field, json, registry);
}

function inValue(field: DescField, json: JsonValue, registry: Registry | undefined): JsonValue {
  if (field.message !== undefined) return inMessage(field.message, json, registry);
  return field.enum !== undefined && typeof json === "string" ? declaredName(field.enum, json) : json;
}
