import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  isMessage,
  type JsonValue,
  type JsonWriteOptions,
  type Message,
  toJson,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { HttpBodySchema } from "../../../gen/google/api/httpbody_pb.ts";
import { bodyField, fieldByName, JSON_MESSAGES, TEXT_MESSAGES } from "../routes/field-path.ts";
import type { Route } from "../routes/model.ts";
import { jsonTextOf } from "./json-text.ts";

/** The content of a response. */
export interface Payload {
  readonly contentType: string;
  readonly content: string | Uint8Array;
}

/** Encodes the response of one route: the message or its `response_body` field, as JSON or as the bytes of an HttpBody. */
export type ResponseCodec = (message: Message) => Payload;

/** The message type of a route's response content, if it is a message. */
export function responseType(method: DescMethod, route: Route): DescMessage | undefined {
  if (route.responseBody === "") return method.output;
  const field = fieldByName(method.output, route.responseBody);
  return field?.fieldKind === "message" ? field.message : undefined;
}

export function createResponseCodec(method: DescMethod, route: Route, json: Partial<JsonWriteOptions>): ResponseCodec {
  const { output } = method;
  const field = bodyField(output, route.responseBody);
  const textOf = jsonTextOf(output);
  const jsonPayload = (value: JsonValue): Payload => ({ contentType: "application/json", content: textOf(value) });
  if (field === undefined) {
    if (output.typeName === HttpBodySchema.typeName) return httpBody;
    return (message) => jsonPayload(toJson(output, message, json));
  }
  if (field.fieldKind === "message" && field.message.typeName === HttpBodySchema.typeName) {
    return (message) => {
      const body = reflect(output, message);
      return httpBody(body.isSet(field) ? body.get(field).message : create(HttpBodySchema));
    };
  }
  const name = json.useProtoFieldName ? field.name : field.jsonName;
  return (message) => {
    // Encode only this field.
    const whole = reflect(output, message);
    if (!whole.isSet(field)) return jsonPayload(zeroJson(field, json));
    const alone = reflect(output);
    alone.set(field, whole.get(field));
    const encoded = toJson(output, alone.message, json);
    return jsonPayload((encoded as Record<string, JsonValue>)[name] ?? null);
  };
}

function httpBody(message: Message): Payload {
  if (!isMessage(message, HttpBodySchema)) throw new Error(`not a ${HttpBodySchema.typeName}`);
  return { contentType: message.contentType || "application/octet-stream", content: message.data };
}

/** The JSON of an unset field. */
function zeroJson(field: DescField, json: Partial<JsonWriteOptions>): JsonValue {
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
    default: {
      // Encode a message with this field at its default, so that proto JSON formats 64-bit integers, bytes and enums.
      const zero = reflect(field.parent);
      zero.set(field, zero.get(field));
      const encoded = toJson(field.parent, zero.message, { ...json, alwaysEmitImplicit: true });
      return (encoded as Record<string, JsonValue>)[json.useProtoFieldName ? field.name : field.jsonName] ?? null;
    }
  }
}
