/** Describes the content of requests and responses by media type. */
import type { JsonObject } from "./json.ts";
import type { Schema } from "./well-known.ts";

/** The media types other than JSON that the runtime is configured with (`codecs`, `formPosts`). */
export type MediaTypes = readonly string[];

export const FORM = "application/x-www-form-urlencoded";

/** Binary content. Generators know `format: binary`, and send JSON or nothing for content without a type. */
export const BINARY = { schema: { type: "string", format: "binary" } };

/** The content of google.api.HttpBody: any bytes. Their media type is not known before. */
export const RAW: JsonObject = { "application/octet-stream": BINARY };

function isBinary(mediaType: string): boolean {
  return mediaType.includes("protobuf");
}

/** Describes the content of one value. @param isForm whether a form can carry the value: only if it is the whole message of a request */
export function contentOf(schema: Schema, others: MediaTypes, isForm = false): JsonObject {
  const content: Record<string, JsonObject> = { "application/json": { schema } };
  for (const mediaType of others) {
    if (mediaType !== FORM || isForm) content[mediaType] = isBinary(mediaType) ? BINARY : { schema };
  }
  return content;
}

/** Describes the content of a stream: one message per line, elements of an array, or size-delimited; of responses also events. */
export function streamOf(schema: Schema, others: MediaTypes, of: "request" | "response"): JsonObject {
  return {
    "application/x-ndjson": { schema },
    ...(of === "response" && { "text/event-stream": { schema } }),
    "application/json": { schema: { type: "array", items: schema } },
    ...Object.fromEntries(others.filter(isBinary).map((mediaType) => [mediaType, BINARY])),
  };
}
