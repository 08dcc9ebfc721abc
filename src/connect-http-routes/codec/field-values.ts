/** Changes the values of certain fields in the JSON of messages. */
import type { DescField, DescMessage, JsonValue, Registry } from "@bufbuild/protobuf";
import { typesWithin } from "../routes/field-path.ts";
import { isJsonObject, mapValues } from "./json-values.ts";

export interface FieldChange {
  /** Returns whether the values of a field are changed. */
  isMeant(field: DescField): boolean;
  /** Changes one value of the field: the value itself, an element of a list, or the value of a map entry. */
  change(field: DescField, json: JsonValue): JsonValue;
}

export type FieldMapper = (json: JsonValue) => JsonValue;

/**
 * Creates the function that changes the values in a message of this type; undefined if the message holds no such field.
 * @param registry the types that `google.protobuf.Any` may hold
 */
export function createFieldMapper(
  type: DescMessage,
  change: FieldChange,
  registry: Registry | undefined,
): FieldMapper | undefined {
  const holds = [...typesWithin(type)].some(({ typeName, fields }) => typeName === ANY || fields.some(change.isMeant));
  return holds ? (json) => inMessage(type, json, change, registry) : undefined;
}

const ANY = "google.protobuf.Any";

function inMessage(type: DescMessage, json: JsonValue, change: FieldChange, registry: Registry | undefined): JsonValue {
  if (type.typeName.startsWith("google.protobuf.") && type.typeName !== ANY) {
    // The JSON of a wrapper is the value of its one field.
    const [value, ...others] = type.fields;
    return value !== undefined && others.length === 0 && change.isMeant(value) ? change.change(value, json) : json;
  }
  if (!isJsonObject(json)) return json;
  if (type.typeName === ANY) {
    const url = json["@type"];
    const inner = typeof url === "string" ? registry?.getMessage(url.slice(url.lastIndexOf("/") + 1)) : undefined;
    return inner === undefined || inner.typeName === ANY ? json : inMessage(inner, json, change, registry);
  }
  return mapValues(json, (value, name) => {
    const field = type.fields.find((f) => f.jsonName === name || f.name === name);
    return field === undefined ? value : inField(field, value, change, registry);
  });
}

function inField(field: DescField, json: JsonValue, change: FieldChange, registry: Registry | undefined): JsonValue {
  const inValue = (value: JsonValue) => {
    if (field.message !== undefined) return inMessage(field.message, value, change, registry);
    return change.isMeant(field) ? change.change(field, value) : value;
  };
  if (field.fieldKind === "list" && Array.isArray(json)) return json.map(inValue);
  if (field.fieldKind === "map" && isJsonObject(json)) return mapValues(json, inValue);
  return inValue(json);
}
