import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  fromJson,
  type JsonReadOptions,
  type JsonValue,
  type Message,
} from "@bufbuild/protobuf";
import { isFieldError, reflect } from "@bufbuild/protobuf/reflect";
import { type HttpBody, HttpBodySchema } from "../../../gen/google/api/httpbody_pb.ts";
import { bodyField, resolveFieldPath } from "../routes/field-path.ts";
import type { Binding } from "../routes/matcher.ts";
import type { Route } from "../routes/model.ts";
import { BadInput } from "./bad-input.ts";
import { createEnumNormalizer } from "./enum-names.ts";
import { DuplicateKey, NumberOutOfRange, parseMessageJson } from "./exact-json.ts";
import { createQueryReader, type RefuseUnknownQuery } from "./query.ts";
import { setFromText, type TextOptions, TextValueError } from "./text-value.ts";
import { inferUpdateMask, updateMaskOf } from "./update-mask.ts";

/** Decodes the request message of one route. */
export interface RequestCodec {
  /** How the route decodes the body: not at all, as JSON, or as raw bytes (google.api.HttpBody). */
  readonly body: "none" | "json" | "raw";
  /**
   * @param query the raw query, without the question mark
   * @throws BadInput
   */
  decode(bindings: readonly Binding[], query: string, body: Uint8Array, contentType: string | null): Message;
  /**
   * Decodes a form, whose fields are named as in a query; undefined if the route takes none.
   * @throws BadInput
   */
  readonly decodeForm: ((bindings: readonly Binding[], body: Uint8Array) => Message) | undefined;
}

export interface RequestCodecOptions {
  readonly json: Partial<JsonReadOptions>;
  readonly refuseUnknownQuery: RefuseUnknownQuery;
  /** Whether the empty update mask of a PATCH is inferred from the fields of the body. */
  readonly inferUpdateMask: boolean;
  /** Whether the whole message may also be sent as `application/x-www-form-urlencoded`. */
  readonly formPosts: boolean;
  readonly caseInsensitiveEnums: boolean;
}

export function createRequestCodec(method: DescMethod, route: Route, options: RequestCodecOptions): RequestCodec {
  const { input } = method;
  const whole = route.body === "*";
  const field = bodyField(input, route.body);
  const raw = isHttpBody(whole ? input : field?.fieldKind === "message" ? field.message : undefined);
  const bound = [...route.variables.map((variable) => variable.field), ...(field ? [field.name] : [])];
  const { registry } = options.json;
  const text: TextOptions = { registry, caseInsensitiveEnums: options.caseInsensitiveEnums };
  const readQuery = createQueryReader(input, bound, { refuseUnknown: options.refuseUnknownQuery, text });
  const normalizeEnums = options.caseInsensitiveEnums ? createEnumNormalizer(input, registry) : undefined;
  const paths = pathFields(input, route);
  const mask =
    options.inferUpdateMask && route.method === "PATCH" && !raw && field ? updateMaskOf(input, field) : undefined;

  // Many requests without parameters have the body `{}`: skip the parser.
  const isPlainMessage = whole && !input.typeName.startsWith("google.protobuf.");

  /** Wraps a body that is a field of the message. */
  const asMessage = (json: JsonValue): JsonValue => (field === undefined ? json : { [field.jsonName]: json });

  function fromBody(body: Uint8Array, contentType: string | null): { message: Message; json?: JsonValue } {
    if (raw) {
      const data: HttpBody = create(HttpBodySchema, { contentType: contentType ?? "", data: body });
      if (field === undefined) return { message: data };
      return { message: create(input, { [field.localName]: data }) };
    }
    if (body.byteLength === 0 || (!whole && field === undefined)) return { message: create(input) };
    if (isPlainMessage && body.byteLength === 2 && body[0] === 0x7b && body[1] === 0x7d)
      return { message: create(input) };
    const parsed = parseBody(body, asMessage, input);
    const json = normalizeEnums === undefined ? parsed : normalizeEnums(parsed);
    return { message: messageFromJson(input, json, options.json), json };
  }

  function setBindings(message: Message, bindings: readonly Binding[]): void {
    for (const { field: path, value } of bindings) {
      try {
        setFromText(reflect(input, message), paths.get(path) ?? [], value, text);
      } catch (error) {
        if (error instanceof TextValueError) throw new BadInput("path", path, error.message);
        throw error;
      }
    }
  }

  return {
    body: raw ? "raw" : whole || field !== undefined ? "json" : "none",
    decodeForm:
      options.formPosts && whole && !raw
        ? (bindings, body) => {
            const message = create(input);
            readQuery(textOf(body), reflect(input, message));
            setBindings(message, bindings);
            return message;
          }
        : undefined,
    decode(bindings, query, body, contentType) {
      const { message, json } = fromBody(body, contentType);
      // http.proto: with body "*" there are no query parameters.
      if (query !== "" && !whole) readQuery(query, reflect(input, message));
      if (mask !== undefined && json !== undefined) inferUpdateMask(reflect(input, message), mask, json);
      setBindings(message, bindings);
      return message;
    },
  };
}

/** The fields of each path variable, outermost first. */
function pathFields(input: DescMessage, { variables }: Route): ReadonlyMap<string, readonly DescField[]> {
  const paths = new Map<string, readonly DescField[]>();
  for (const { field } of variables) {
    const fields = resolveFieldPath(input, field);
    if (typeof fields === "string") throw new Error(`${fields}: generate the routes again`);
    paths.set(field, fields);
  }
  return paths;
}

export function isHttpBody(type: DescMessage | undefined): boolean {
  return type?.typeName === HttpBodySchema.typeName;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function textOf(body: Uint8Array): string {
  try {
    return utf8.decode(body);
  } catch {
    throw new BadInput("body", undefined, "not UTF-8");
  }
}

function parseBody(body: Uint8Array, asMessage: (json: JsonValue) => JsonValue, type: DescMessage): JsonValue {
  const text = textOf(body);
  try {
    return parseMessageJson(text, asMessage, type);
  } catch (error) {
    if (error instanceof SyntaxError) throw new BadInput("body", undefined, "not JSON");
    if (error instanceof NumberOutOfRange || error instanceof DuplicateKey)
      throw new BadInput("body", undefined, error.message);
    // Stack overflow.
    if (error instanceof RangeError) throw new BadInput("body", undefined, "nested too deeply");
    throw error;
  }
}

function messageFromJson(type: DescMessage, json: JsonValue, options: Partial<JsonReadOptions>): Message {
  try {
    return fromJson(type, json, options);
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    throw new BadInput("body", isFieldError(error.cause) ? error.cause.field().name : undefined, error.message);
  }
}
