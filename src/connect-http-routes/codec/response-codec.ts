import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  isMessage,
  type JsonValue,
  type JsonWriteOptions,
  type Message,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.ts";
import { bodyField, fieldByName, isHttpBody, JSON_MESSAGES, messageType, TEXT_MESSAGES } from "../routes/field-path.ts";
import type { Route } from "../routes/model.ts";
import type { ChosenCodec, ContentCodec } from "./content-codec.ts";
import { fieldJson } from "./field-json.ts";
import { createFieldMapper, type FieldChange, type FieldMapper } from "./field-values.ts";
import { jsonReplacerOf } from "./json-text.ts";
import { isJsonObject } from "./json-values.ts";

export interface Payload {
  readonly contentType: string;
  readonly content: string | Uint8Array;
}

/** Encodes the response of one route: the whole message, its `response_body` field, or the bytes of an HttpBody. */
export interface ResponseCodec {
  /** Whether a codec can encode the content. A `MessageCodec` encodes only content that is a message. */
  accepts(codec: ContentCodec): boolean;
  /** @param chosen the codec; undefined for JSON */
  encode(message: Message, chosen?: ChosenCodec): Payload;
}

/** Returns the message type of a route's response content; undefined if the content is not a message. */
export function responseType(method: DescMethod, route: Route): DescMessage | undefined {
  if (route.responseBody === "") return method.output;
  return messageType(fieldByName(method.output, route.responseBody));
}

/** @param int64AsNumber whether 64-bit integers are written as numbers where JavaScript reads them exactly */
export function createResponseCodec(
  method: DescMethod,
  route: Route,
  json: Partial<JsonWriteOptions>,
  int64AsNumber = false,
): ResponseCodec {
  const { output } = method;
  const field = bodyField(output, route.responseBody);
  const type = responseType(method, route);
  if (isHttpBody(type)) {
    return { accepts: () => false, encode: (message) => httpBody(messageOf(output, message, field)) };
  }
  const replacer = jsonReplacerOf(output);
  const mapper = int64AsNumber ? createFieldMapper(output, SAFE_INTEGERS, json.registry) : undefined;
  const readValue = createValueReader(output, field, json, mapper);
  return {
    accepts: ({ kind }) => kind === "value" || type !== undefined,
    encode(message, chosen) {
      if (chosen === undefined) {
        return { contentType: "application/json", content: JSON.stringify(readValue(message), replacer) };
      }
      const { codec, mediaType } = chosen;
      if (codec.kind === "value") return { contentType: mediaType, content: codec.encode(readValue(message)) };
      const content = codec.encode(type ?? output, messageOf(output, message, field));
      return { contentType: mediaType, content };
    },
  };
}

/** Returns the message that is the content: the response, or its `response_body` field. */
export function messageOf(output: DescMessage, message: Message, field: DescField | undefined): Message {
  if (field?.fieldKind !== "message") return message;
  const whole = reflect(output, message);
  return whole.isSet(field) ? whole.get(field).message : create(field.message);
}

/** Returns a function that makes the JSON value of the content. */
function createValueReader(
  output: DescMessage,
  field: DescField | undefined,
  json: Partial<JsonWriteOptions>,
  mapper?: FieldMapper,
): (message: Message) => JsonValue {
  const plain = createPlainReader(output, field, json);
  if (mapper === undefined) return plain;
  if (field === undefined) return (message) => mapper(plain(message));
  return (message) => {
    const whole = mapper({ [field.jsonName]: plain(message) });
    return isJsonObject(whole) ? (whole[field.jsonName] ?? null) : whole;
  };
}

function createPlainReader(
  output: DescMessage,
  field: DescField | undefined,
  json: Partial<JsonWriteOptions>,
): (message: Message) => JsonValue {
  if (field === undefined) return (message) => toJson(output, message, json);
  return (message) => {
    // If `response_body` names a field, only that field is encoded, not the whole message.
    const whole = reflect(output, message);
    return whole.isSet(field) ? jsonOfField(whole, field, json) : zeroJson(whole, field, json);
  };
}

function jsonOfField(message: ReflectMessage, field: DescField, json: Partial<JsonWriteOptions>): JsonValue {
  return fieldJson(message, field, json)[json.useProtoFieldName ? field.name : field.jsonName] ?? null;
}

function httpBody(message: Message): Payload {
  if (!isMessage(message, HttpBodySchema)) throw new Error(`not a ${HttpBodySchema.typeName}`);
  return { contentType: message.contentType || "application/octet-stream", content: message.data };
}

/** Returns the JSON of a field that the message does not set. */
function zeroJson(message: ReflectMessage, field: DescField, json: Partial<JsonWriteOptions>): JsonValue {
  switch (field.fieldKind) {
    case "list":
      return [];
    case "map":
      return {};
    case "message":
      if (TEXT_MESSAGES.has(field.message.typeName)) return null;
      if (JSON_MESSAGES.has(field.message.typeName)) {
        return field.message.typeName === "google.protobuf.ListValue"
          ? []
          : field.message.typeName.endsWith(".Value")
            ? null
            : {};
      }
      return toJson(field.message, create(field.message), json);
    default:
      return jsonOfField(message, field, { ...json, alwaysEmitImplicit: true });
  }
}

const OF_64_BITS: ReadonlySet<ScalarType | undefined> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
]);

/** Writes 64-bit integers as numbers, if JavaScript reads them exactly. Proto JSON writes all of them as text. */
const SAFE_INTEGERS: FieldChange = {
  isMeant: (field) => OF_64_BITS.has(field.scalar),
  change: (_, json) => (typeof json === "string" && Number.isSafeInteger(Number(json)) ? Number(json) : json),
};
