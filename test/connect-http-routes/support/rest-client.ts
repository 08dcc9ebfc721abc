import {
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  type Registry,
  toJson,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import type { Route } from "../../../src/connect-http-routes/index.ts";
import type { TestRequest } from "./servers.ts";

/**
 * The client side of http.proto: encodes a message as a request of a route. It was written from http.proto, independently of the server,
 * so that both do not have the same mistakes.
 */
export function encodeRequest(type: DescMessage, message: Message, route: Route, registry: Registry): TestRequest {
  const json = toJson(type, message, { registry }) as JsonObject;
  const path = route.segments.map((segment) => segment);
  let tail = "";
  for (const variable of [...route.variables].reverse()) {
    const text = valueAt(type, message, variable.field, registry);
    path.splice(variable.start, variable.end - variable.start, escapePath(text, variable.multi));
    remove(type, json, variable.field);
  }
  if (route.verb !== "") tail = `:${route.verb}`;
  const target = `/${path.filter((segment) => segment !== "").join("/")}${tail}`;
  const method = route.method;
  if (route.body === "*") return { method, target, body: jsonText(json), headers: jsonHeaders };
  const bodyField = type.fields.find((field) => field.name === route.body);
  let body: string | undefined;
  if (bodyField !== undefined) {
    const value = json[bodyField.jsonName];
    if (value !== undefined) body = jsonText(value);
    delete json[bodyField.jsonName];
  }
  const query = [...queryOf(type, json, "")].map(([name, text]) => `${encodeURIComponent(name)}=${encodeQuery(text)}`);
  const full = query.length === 0 ? target : `${target}?${query.join("&")}`;
  return body === undefined ? { method, target: full } : { method, target: full, body, headers: jsonHeaders };
}

const jsonHeaders = { "content-type": "application/json" };

/** Escapes a value for a path as http.proto requires: all characters but `[-_.~0-9a-zA-Z]`, and but `/` in a variable of several segments. */
function escapePath(text: string, multi: boolean): string {
  const escaped = (part: string) =>
    [...new TextEncoder().encode(part)]
      .map((byte) => {
        const character = String.fromCharCode(byte);
        if (/[-_.~0-9a-zA-Z]/.test(character)) return character;
        return `%${byte.toString(16).padStart(2, "0").toUpperCase()}`;
      })
      .join("");
  return multi ? text.split("/").map(escaped).join("/") : escaped(text);
}

function encodeQuery(text: string): string {
  return encodeURIComponent(text).replaceAll("%20", "+");
}

function valueAt(type: DescMessage, message: Message, path: string, registry: Registry): string {
  const [name, ...rest] = path.split(".");
  const field = type.fields.find((f) => f.name === name);
  if (field === undefined) throw new Error(`no field ${path}`);
  const value = reflect(type, message).get(field);
  if (rest.length > 0 && field.fieldKind === "message") {
    return valueAt(field.message, reflect(type, message).get(field).message, rest.join("."), registry);
  }
  const json = toJson(type, message, { registry, alwaysEmitImplicit: true }) as JsonObject;
  return textOf(json[field.jsonName] ?? String(value));
}

/** Returns the text of a JSON value in a query or a path: without quotes. */
function textOf(json: JsonValue): string {
  return typeof json === "string" ? json : jsonText(json);
}

/** Returns the text of a JSON value. Proto JSON has -0, which JSON.stringify alone would write as 0. */
function jsonText(json: JsonValue): string {
  // The types of lib.es2024 lack `rawJSON`, which ECMA-262 has since 2026.
  const { rawJSON } = JSON as typeof JSON & { rawJSON(text: string): unknown };
  return JSON.stringify(json, (_, value: unknown) => (Object.is(value, -0) ? rawJSON("-0") : value));
}

function remove(type: DescMessage, json: JsonObject, path: string): void {
  const [name, ...rest] = path.split(".");
  const field = type.fields.find((f) => f.name === name);
  if (field === undefined) return;
  const inner = json[field.jsonName];
  if (rest.length === 0) delete json[field.jsonName];
  else if (field.fieldKind === "message" && typeof inner === "object" && inner !== null && !Array.isArray(inner)) {
    remove(field.message, inner, rest.join("."));
    if (Object.keys(inner).length === 0) delete json[field.jsonName];
  }
}

function* queryOf(type: DescMessage, json: JsonObject, prefix: string): Generator<[string, string]> {
  for (const field of type.fields) {
    const value = json[field.jsonName];
    if (value === undefined) continue;
    const name = prefix + field.jsonName;
    if (field.fieldKind === "list") for (const item of value as JsonValue[]) yield [name, textOf(item)];
    else if (field.fieldKind === "message" && !field.message.typeName.startsWith("google.protobuf.")) {
      yield* queryOf(field.message, value as JsonObject, `${name}.`);
    } else
      yield [name, field.fieldKind === "message" && isJsonType(field.message) ? JSON.stringify(value) : textOf(value)];
  }
}

function isJsonType(type: DescMessage): boolean {
  return /^google\.protobuf\.(Struct|Value|ListValue)$/.test(type.typeName);
}

/** Returns whether a query can carry a field. */
export function fitsQuery(field: DescField): boolean {
  if (field.fieldKind === "map") return false;
  const type = field.message;
  if (type === undefined) return true;
  if (/^google\.protobuf\.(Any|Empty)$/.test(type.typeName)) return false;
  return field.fieldKind === "message" || type.typeName.startsWith("google.protobuf.");
}
