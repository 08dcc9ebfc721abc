import { create, type DescMethod, fromJson, type JsonValue, type Message, type Registry } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { fieldByName, isHttpBody, messageType } from "../routes/field-path.ts";
import type { Route } from "../routes/model.ts";

/** Decodes the content of a route's responses. */
export interface ResponseDecoder {
  /** Whether the content is the bytes of a google.api.HttpBody. */
  readonly raw: boolean;
  fromJson(json: JsonValue | undefined): Message;
  fromBytes(data: Uint8Array, contentType: string): Message;
}

export function createResponseDecoder(
  { output }: DescMethod,
  route: Route,
  registry: Registry | undefined,
): ResponseDecoder {
  const field = fieldByName(output, route.responseBody);
  const options = { ignoreUnknownFields: true, ...(registry && { registry }) };
  return {
    raw: isHttpBody(field === undefined ? output : messageType(field)),
    fromJson(json) {
      if (json === undefined) return create(output);
      try {
        return fromJson(output, field === undefined ? json : { [field.jsonName]: json }, options);
      } catch (cause) {
        throw new ConnectError("the response is not of the expected type", Code.Internal, undefined, undefined, cause);
      }
    },
    fromBytes(data, contentType) {
      const body = { contentType, data };
      return create(output, (field === undefined ? body : { [field.localName]: body }) as never);
    },
  };
}
