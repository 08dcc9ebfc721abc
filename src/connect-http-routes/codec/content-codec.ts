/** Content types other than JSON. */
import { type DescMessage, fromBinary, type JsonValue, type Message, toBinary } from "@bufbuild/protobuf";
import { checkBinary, type MessageLimits } from "./message-limits.ts";

/** Encodes and decodes messages in a content type other than `application/json`. */
export type ContentCodec = MessageCodec | ValueCodec;

/** Encodes whole messages. In a stream each message is preceded by its length as a varint (size-delimited). */
export interface MessageCodec {
  readonly kind: "message";
  /** The media types, in lower case and without parameters; the first is preferred. */
  readonly mediaTypes: readonly string[];
  encode(type: DescMessage, message: Message): Uint8Array;
  /** Decodes a message. @throws any error if the bytes are not such a message: the client receives 400 */
  decode(type: DescMessage, bytes: Uint8Array): Message;
  /** Checks bytes before they are decoded. @throws BadInput if the message exceeds the limits */
  check?(type: DescMessage, bytes: Uint8Array, limits: MessageLimits): void;
}

/** Encodes the values of proto JSON in another notation, such as YAML or MessagePack. It does not support streams. */
export interface ValueCodec {
  readonly kind: "value";
  /** The media types, in lower case and without parameters; the first is preferred. */
  readonly mediaTypes: readonly string[];
  encode(value: JsonValue): string | Uint8Array;
  /** Decodes a value. @throws any error if the bytes are not in this notation: the client receives 400 */
  decode(bytes: Uint8Array): JsonValue;
}

/** A codec, and the one of its media types that the client named. */
export interface ChosenCodec<Codec extends ContentCodec = ContentCodec> {
  readonly codec: Codec;
  readonly mediaType: string;
}

/** The binary form of protobuf. */
export const protobufCodec: MessageCodec = {
  kind: "message",
  mediaTypes: ["application/x-protobuf", "application/protobuf", "application/vnd.google.protobuf"],
  encode: (type, message) => toBinary(type, message),
  decode: (type, bytes) => fromBinary(type, bytes),
  check: checkBinary,
};

/** The codecs of a handler by media type. */
export type Codecs = ReadonlyMap<string, ChosenCodec>;

/** Indexes codecs by media type; undefined if there are none. @throws Error for a media type that two codecs have, or that is JSON */
export function createCodecs(list: Iterable<ContentCodec>): Codecs | undefined {
  const codecs = new Map<string, ChosenCodec>();
  for (const codec of list) {
    for (const mediaType of codec.mediaTypes) {
      if (!MEDIA_TYPE.test(mediaType)) throw new Error(`"${mediaType}" is not a media type in lower case`);
      if (codecs.has(mediaType)) throw new Error(`two codecs have the media type ${mediaType}`);
      if (BUILT_IN.has(mediaType)) throw new Error(`a codec cannot have the media type ${mediaType}`);
      codecs.set(mediaType, { codec, mediaType });
    }
  }
  return codecs.size === 0 ? undefined : codecs;
}

const MEDIA_TYPE = /^[!#$&^_.+\-0-9a-z]+\/[!#$&^_.+\-0-9a-z]+$/;
const BUILT_IN = new Set(["application/json", "application/x-ndjson", "application/ndjson", "application/jsonl"])
  .add("text/event-stream")
  .add("application/x-www-form-urlencoded");

/** Returns the codec of a Content-Type, whatever its parameters. */
export function codecOf(codecs: Codecs | undefined, contentType: string | null): ChosenCodec | undefined {
  if (codecs === undefined || contentType === null) return undefined;
  const end = contentType.indexOf(";");
  return codecs.get((end === -1 ? contentType : contentType.slice(0, end)).trim().toLowerCase());
}
