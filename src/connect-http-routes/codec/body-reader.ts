import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonReadOptions,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { reflect } from "@bufbuild/protobuf/reflect";
import { type HttpBody, HttpBodySchema } from "../../../gen/google/api/httpbody_pb.ts";
import { BadInput } from "./bad-input.ts";
import type { ContentCodec, MessageCodec } from "./content-codec.ts";
import { DECLARED_ENUMS } from "./enum-names.ts";
import { parseMessageJson } from "./exact-json.ts";
import { createFieldMapper, type FieldMapper } from "./field-values.ts";
import { pathOfFault } from "./json-fault.ts";
import type { MessageLimits } from "./message-limits.ts";

/** Makes a message from a body, and reports the body's JSON if it is JSON. @throws BadInput */
export type BodyReader = (
  body: Uint8Array,
  contentType: string | null,
  codec: ContentCodec | undefined,
) => { readonly message: Message; readonly json?: JsonValue };

/** The part of the message that is the body of a route. */
interface BodyPart {
  /** Whether the body is the whole message. */
  readonly whole: boolean;
  /** The field of the request message that the body contains, if the route binds the body to a single field. */
  readonly field: DescField | undefined;
  /** Whether the body is the bytes of a google.api.HttpBody. */
  readonly raw: boolean;
}

export interface BodyOptions {
  readonly limits: MessageLimits;
  readonly json: Partial<JsonReadOptions>;
  readonly caseInsensitiveEnums: boolean;
}

export function createBodyReader(
  input: DescMessage,
  { whole, field, raw }: BodyPart,
  options: BodyOptions,
): BodyReader {
  const normalizeEnums = options.caseInsensitiveEnums
    ? createFieldMapper(input, DECLARED_ENUMS, options.json.registry)
    : undefined;

  /** Returns the JSON of the whole message: if the body is only a field of the message, it becomes an object with that field. */
  const asMessage = (json: JsonValue): JsonValue => (field === undefined ? json : { [field.jsonName]: json });

  return (body, contentType, codec) => {
    if (raw) {
      const data: HttpBody = create(HttpBodySchema, { contentType: contentType ?? "", data: body });
      if (field === undefined) return { message: data };
      return { message: create(input, { [field.localName]: data }) };
    }
    if (body.byteLength === 0 || (!whole && field === undefined)) return { message: create(input) };
    if (codec?.kind === "message") return { message: decodeMessage(codec, input, field, body, options.limits) };
    const parsed =
      codec === undefined
        ? parseBody(body, asMessage, input, options)
        : asMessage(decodedBy(codec, () => codec.decode(body)));
    const json = normalizeEnums === undefined ? parsed : normalized(normalizeEnums, parsed);
    return { message: messageFromJson(input, json, options.json), json };
  };
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Decodes a body as UTF-8. @throws BadInput if it is not valid UTF-8 */
export function utf8TextOf(body: Uint8Array): string {
  try {
    return utf8.decode(body);
  } catch {
    throw new BadInput("body", undefined, "not UTF-8");
  }
}

function parseBody(
  body: Uint8Array,
  asMessage: (json: JsonValue) => JsonValue,
  type: DescMessage,
  options: BodyOptions,
): JsonValue {
  const text = utf8TextOf(body);
  try {
    return parseMessageJson(text, asMessage, type, options);
  } catch (error) {
    if (error instanceof SyntaxError) throw new BadInput("body", undefined, "not JSON");
    throw unlessTooDeep(error);
  }
}

function normalized(normalizeEnums: FieldMapper, json: JsonValue): JsonValue {
  try {
    return normalizeEnums(json);
  } catch (error) {
    throw unlessTooDeep(error);
  }
}

/** Returns the error to throw for a failure of the parser. `JSON.parse` throws a RangeError if the nesting is too deep for the stack. */
function unlessTooDeep(error: unknown): unknown {
  return error instanceof RangeError ? new BadInput("body", undefined, "nested too deeply") : error;
}

function decodeMessage(
  codec: MessageCodec,
  input: DescMessage,
  field: DescField | undefined,
  bytes: Uint8Array,
  limits: MessageLimits,
): Message {
  const type = field?.message ?? input;
  decodedBy(codec, () => codec.check?.(type, bytes, limits));
  const decoded = decodedBy(codec, () => codec.decode(type, bytes));
  if (field === undefined) return decoded;
  const message = reflect(input);
  message.set(field, reflect(type, decoded));
  return message.message;
}

function decodedBy<Decoded>({ mediaTypes }: ContentCodec, decode: () => Decoded): Decoded {
  try {
    return decode();
  } catch (error) {
    throw error instanceof BadInput ? error : new BadInput("body", undefined, `not ${mediaTypes[0]}`);
  }
}

function messageFromJson(type: DescMessage, json: JsonValue, options: Partial<JsonReadOptions>): Message {
  try {
    return fromJson(type, json, options);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    // A Duration with more than nine digits after the point is a RangeError of JavaScript.
    const reason = error instanceof RangeError ? "out of range" : error.message;
    throw new BadInput("body", pathOfFault(type, json, error, options), reason);
  }
}
