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
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { bodyField, fieldByName, jsonMessages, textMessages } from "./field-path.ts";
import { jsonTextOf } from "./json-text.ts";
import type { Route } from "./model.ts";

/** A response's content. */
export interface Payload {
  readonly contentType: string;
  readonly content: string | Uint8Array;
}

/** Makes the response content of one route: the message or its `response_body` field, as JSON or as an HttpBody's bytes. */
export type ResponseCodec = (message: Message) => Payload;

/** The message type that a route's response content has, if it has one. */
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
    // The field alone, so that no other is encoded in vain.
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

/** The JSON of a field that is not set. */
function zeroJson(field: DescField, json: Partial<JsonWriteOptions>): JsonValue {
  switch (field.fieldKind) {
    case "list":
      return [];
    case "map":
      return {};
    case "message":
      if (textMessages.has(field.message.typeName)) return null;
      if (jsonMessages.has(field.message.typeName)) {
        return field.message.typeName === "google.protobuf.ListValue"
          ? []
          : field.message.typeName.endsWith(".Value")
            ? null
            : {};
      }
      return toJson(field.message, create(field.message), json);
    default: {
      // A message with this field at its default: proto JSON knows how 64-bit integers, bytes and enums are written.
      const zero = reflect(field.parent);
      zero.set(field, zero.get(field));
      const encoded = toJson(field.parent, zero.message, { ...json, alwaysEmitImplicit: true });
      return (encoded as Record<string, JsonValue>)[json.useProtoFieldName ? field.name : field.jsonName] ?? null;
    }
  }
}
