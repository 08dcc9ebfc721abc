import type { DescField, DescMessage } from "@bufbuild/protobuf";
import {
  hasOwnJson,
  isTextField,
  isTextMap,
  JSON_MESSAGES,
  type MultiSegmentDecoding,
  type Route,
  resolveFieldPath,
} from "connect-http-routes/descriptors";
import { commentOf } from "./comments.ts";
import type { JsonObject } from "./json.ts";
import type { PathParameter } from "./paths.ts";
import { isRequired, notesOf } from "./rules.ts";
import type { Schemas } from "./schemas.ts";
import type { Schema } from "./well-known.ts";

/** Describes a path parameter. Its value is proto JSON without quotes. */
export function pathParameter(
  parameter: PathParameter,
  input: DescMessage,
  { template }: Route,
  schemas: Schemas,
  decoding: MultiSegmentDecoding = "except-slash",
): JsonObject {
  const { name, multi, variable, whole } = parameter;
  const resolved = variable && resolveFieldPath(input, variable.field);
  const field = resolved?.ok ? resolved.fields.at(-1) : undefined;
  const description = [
    field && whole ? commentOf(field) : `A part of \`${template}\`.`,
    multi && "Any number of path segments, with the slashes between them as they are.",
    multi &&
      decoding !== "all" &&
      'A client that escapes them (`%2F`) needs a server with `multiSegmentDecoding: "all"`.',
  ];
  return {
    name,
    in: "path",
    description: description.filter(Boolean).join("\n\n") || undefined,
    required: true,
    deprecated: field?.deprecated || undefined,
    schema: field && whole ? schemas.field(field) : { type: "string" },
  };
}

/**
 * Describes the query parameters: every field that neither path nor body binds and that a query can carry. A field of a nested message is
 * named `message.field`. Recursive messages are not expanded further.
 */
export function* queryParameters(
  input: DescMessage,
  bound: readonly string[],
  schemas: Schemas,
): Generator<JsonObject> {
  function* within(
    type: DescMessage,
    outer: readonly DescField[],
    seen: readonly DescMessage[],
  ): Generator<JsonObject> {
    for (const field of type.fields) {
      const path = [...outer, field];
      if (bound.includes(path.map((part) => part.name).join("."))) continue;
      if (isTextField(field) || isTextMap(field)) yield queryParameter(path, field, schemas);
      else if (field.fieldKind === "message" && !seen.includes(field.message) && !hasOwnJson(field.message)) {
        yield* within(field.message, path, [...seen, field.message]);
      }
    }
  }
  yield* within(input, [], [input]);
}

function queryParameter(path: readonly DescField[], field: DescField, schemas: Schemas): JsonObject {
  const others =
    field.oneof?.fields.filter((other) => other !== field).map((other) => `\`${schemas.nameOf(other)}\``) ?? [];
  const description = [
    commentOf(field),
    notesOf(field).join(" "),
    others.length > 0 && `Not together with ${others.join(", ")}.`,
  ];
  const value = textSchema(field, schemas);
  const isMap = field.fieldKind === "map";
  return {
    name: path.map((part) => schemas.nameOf(part)).join("."),
    in: "query",
    description: description.filter(Boolean).join("\n\n") || undefined,
    required: path.every(isRequired) || undefined,
    deprecated: path.some((part) => part.deprecated) || undefined,
    ...(isMap && { style: "deepObject", explode: true }),
    schema: isMap
      ? schemas.map(field, { ...value, ...schemas.keywords.ofItem(field) })
      : valueSchema(field, value, schemas),
  };
}

function valueSchema(field: DescField, value: Schema, { keywords }: Schemas): Schema {
  if (field.fieldKind !== "list") return { ...value, ...keywords.ofField(field) };
  return { type: "array", items: { ...value, ...keywords.ofItem(field) }, ...keywords.ofField(field) };
}

/** A query carries arbitrary JSON as JSON text. Other values are as in JSON, without quotes. */
function textSchema(field: DescField, schemas: Schemas): Schema {
  const value = schemas.element(field);
  if (field.message === undefined || !JSON_MESSAGES.has(field.message.typeName)) return value;
  return { type: "string", contentMediaType: "application/json", contentSchema: value };
}
