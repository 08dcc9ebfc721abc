/** Writes the path and query of a request (google/api/http.proto): the inverse of the server's decoding. */
import {
  type DescField,
  type DescMessage,
  type JsonValue,
  type Message,
  type Registry,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import type { ReflectMessage } from "@bufbuild/protobuf/reflect";
import type { FeatureSet_FieldPresence } from "@bufbuild/protobuf/wkt";
import { fieldJson } from "../codec/field-json.ts";
import { isJsonObject } from "../codec/json-values.ts";
import { fieldByName, isTextField, isTextMap, JSON_MESSAGES, TEXT_MESSAGES } from "../routes/field-path.ts";
import type { Route } from "../routes/model.ts";
import type { Variable } from "../routes/template.ts";

/** A number, because an import of the enum would add the descriptors of descriptor.proto to the bundle. */
const IMPLICIT = 2 satisfies FeatureSet_FieldPresence.IMPLICIT;

type JsonObject = { [key: string]: JsonValue };

/** Reports why a route cannot carry a message. */
export class NotCarried extends Error {}

/** Returns the path for a message, and removes the fields that the path carries from its JSON. @throws NotCarried */
export function pathFor(route: Route, message: ReflectMessage, json: JsonObject): string {
  const segments: (string | undefined)[] = [...route.segments];
  for (const variable of [...route.variables].reverse()) {
    const { field, start, end } = variable;
    const text = variableText(message, field);
    segments.splice(start, end - start, ...encodeVariable(text, variable, route));
    remove(message.desc, json, field.split("."));
  }
  // No field of the message gives a value for a wildcard outside variables: with `*` the path cannot be written, and `**` is left out.
  const unbound = segments.findIndex((segment) => segment === "*" || segment === "**");
  if (unbound !== -1 && segments[unbound] === "*") throw new NotCarried("the path has a wildcard without a variable");
  const path = segments.filter((segment) => segment !== "**").join("/");
  return `/${path}${route.verb === "" ? "" : `:${route.verb}`}`;
}

/** Returns the encoded segments of a variable's value, which must match the variable's pattern. */
function encodeVariable(text: string, { field, start, end, multi }: Variable, { segments }: Route): string[] {
  const pattern = segments.slice(start, end);
  const parts = multi ? (text === "" ? [] : text.split("/")) : [text];
  const star = pattern.indexOf("**");
  const tail = star === -1 ? 0 : pattern.length - star - 1;
  const fits = star === -1 ? parts.length === pattern.length : parts.length >= pattern.length - 1;
  const matches = parts.every((part, index) => {
    const expected = pattern[index < star || star === -1 ? index : pattern.length - (parts.length - index)];
    const inStar = star !== -1 && index >= star && index < parts.length - tail;
    return inStar || expected === "*" ? part !== "" : encode(part) === encode(decodeURIComponent(expected ?? ""));
  });
  // URL parsers remove dot segments, even escaped ones, so such a value cannot be sent.
  if (!fits || !matches || parts.some((part) => part === "." || part === ".."))
    throw new NotCarried(`"${text}" does not match the path variable ${field}`);
  return parts.map(encode);
}

/** Escapes all but the unreserved characters of RFC 3986. */
function encode(text: string): string {
  return encodeURIComponent(text.toWellFormed()).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function variableText(message: ReflectMessage, path: string): string {
  const [name = "", ...rest] = path.split(".");
  const field = fieldByName(message.desc, name);
  if (field === undefined) throw new NotCarried(`there is no field ${path}`);
  if (rest.length > 0 && field.fieldKind === "message") return variableText(message.get(field), rest.join("."));
  if (field.presence !== IMPLICIT && !message.isSet(field)) throw new NotCarried(`the field ${path} is not set`);
  if (field.scalar === ScalarType.STRING) return message.get(field) as string;
  return textOf(field, fieldJson(message, field, { alwaysEmitImplicit: true })[field.jsonName] ?? null);
}

function remove(type: DescMessage, json: JsonObject, [name = "", ...rest]: string[]): void {
  const field = fieldByName(type, name);
  const inner = field && json[field.jsonName];
  if (field === undefined || inner === undefined) return;
  if (rest.length === 0) delete json[field.jsonName];
  else if (field.fieldKind === "message") remove(field.message, inner as JsonObject, rest);
}

/** Returns the query for the fields of a message that neither path nor body carry. @throws NotCarried */
export function queryFor(type: DescMessage, json: JsonObject): string {
  const pairs: string[] = [];
  const add = (name: string, text: string) => pairs.push(`${encode(name)}=${encode(text)}`);
  const visit = (within: DescMessage, object: JsonObject, prefix: string) => {
    for (const field of within.fields) {
      const value = object[field.jsonName];
      if (value === undefined) continue;
      const name = prefix + field.jsonName;
      const isText = field.fieldKind === "map" ? isTextMap(field) : isTextField(field);
      if (isText && field.fieldKind === "map") {
        for (const [key, item] of Object.entries(value as JsonObject)) add(`${name}[${key}]`, textOf(field, item));
      } else if (isText && field.fieldKind === "list") {
        for (const item of value as JsonValue[]) add(name, textOf(field, item));
      } else if (isText) add(name, textOf(field, value));
      else if (field.fieldKind === "message" && field.message.typeName !== "google.protobuf.Any") {
        visit(field.message, value as JsonObject, `${name}.`);
      } else throw new NotCarried(`a query cannot carry the field ${name}`);
    }
  };
  visit(type, json, "");
  return pairs.length === 0 ? "" : `?${pairs.join("&")}`;
}

/** Returns the text of a JSON value for a path or a query, without quotes. */
function textOf({ message, enum: type }: DescField, json: JsonValue): string {
  if (message !== undefined && JSON_MESSAGES.has(message.typeName)) return JSON.stringify(json);
  if (json === null && type !== undefined) return "NULL_VALUE";
  if (message !== undefined && !TEXT_MESSAGES.has(message.typeName))
    throw new NotCarried(`not a text: ${message.typeName}`);
  return Object.is(json, -0) ? "-0" : String(json);
}

/** Returns the JSON of a message as an object. @throws NotCarried for a well-known type whose JSON is no object */
export function jsonOf(type: DescMessage, message: Message, registry: Registry | undefined): JsonObject {
  const json = toJson(type, message, registry && { registry });
  if (isJsonObject(json)) return json;
  throw new NotCarried(`${type.typeName} is not an object in JSON`);
}
