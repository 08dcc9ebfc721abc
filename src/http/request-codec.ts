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
import { type HttpBody, HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { BadInput } from "./bad-input.ts";
import { NumberOutOfRange, parseMessageJson } from "./exact-json.ts";
import { bodyField, resolveFieldPath } from "./field-path.ts";
import type { Binding } from "./matcher.ts";
import type { Route } from "./model.ts";
import { createQueryReader } from "./query.ts";
import { setFromText, TextValueError } from "./text-value.ts";
import { inferUpdateMask, updateMaskOf } from "./update-mask.ts";

/** Makes the request message of one route. */
export interface RequestCodec {
  /** What the route makes of the body: nothing, JSON, or bytes as they are (google.api.HttpBody). */
  readonly body: "none" | "json" | "raw";
  /**
   * @param query the raw query, without the question mark
   * @throws BadInput
   */
  decode(bindings: readonly Binding[], query: string, body: Uint8Array, contentType: string | null): Message;
}

export interface RequestCodecOptions {
  readonly json: Partial<JsonReadOptions>;
  /** Whether a query parameter that names no field is refused. */
  readonly refuseUnknownQuery: boolean;
  /** Whether an empty update mask of a PATCH is made from the fields of the body. */
  readonly inferUpdateMask: boolean;
}

export function createRequestCodec(method: DescMethod, route: Route, options: RequestCodecOptions): RequestCodec {
  const { input } = method;
  const whole = route.body === "*";
  const field = bodyField(input, route.body);
  const raw = isHttpBody(whole ? input : field?.fieldKind === "message" ? field.message : undefined);
  const bound = [...route.variables.map((variable) => variable.field), ...(field ? [field.name] : [])];
  const readQuery = createQueryReader(input, bound, {
    refuseUnknown: options.refuseUnknownQuery,
    registry: options.json.registry,
  });
  const paths = new Map<string, readonly DescField[]>();
  for (const variable of route.variables) {
    const fields = resolveFieldPath(input, variable.field);
    if (typeof fields === "string") throw new Error(`${fields}: generate the routes again`);
    paths.set(variable.field, fields);
  }
  const mask =
    options.inferUpdateMask && route.method === "PATCH" && !raw && field ? updateMaskOf(input, field) : undefined;

  // `{}` is the body of many requests that need none: nothing is to be parsed.
  const plain = whole && !input.typeName.startsWith("google.protobuf.");

  /** The JSON of a message of which the body is a field. */
  const asMessage = (json: JsonValue): JsonValue => (field === undefined ? json : { [field.jsonName]: json });

  function fromBody(body: Uint8Array, contentType: string | null): { message: Message; json?: JsonValue } {
    if (raw) {
      const data: HttpBody = create(HttpBodySchema, { contentType: contentType ?? "", data: body });
      if (field === undefined) return { message: data };
      return { message: create(input, { [field.localName]: data }) };
    }
    if (body.byteLength === 0 || (!whole && field === undefined)) return { message: create(input) };
    if (plain && body.byteLength === 2 && body[0] === 0x7b && body[1] === 0x7d) return { message: create(input) };
    const json = parseBody(body, asMessage, input);
    return { message: messageFromJson(input, json, options.json), json };
  }

  return {
    body: raw ? "raw" : whole || field !== undefined ? "json" : "none",
    decode(bindings, query, body, contentType) {
      const { message, json } = fromBody(body, contentType);
      // http.proto: with body "*" no field is left for the query.
      if (query !== "" && !whole) readQuery(query, reflect(input, message));
      if (mask !== undefined && json !== undefined) inferUpdateMask(reflect(input, message), mask, json);
      for (const { field: path, value } of bindings) {
        try {
          setFromText(reflect(input, message), paths.get(path) ?? [], value);
        } catch (error) {
          if (error instanceof TextValueError) throw new BadInput("path", path, error.message);
          throw error;
        }
      }
      return message;
    },
  };
}

export function isHttpBody(type: DescMessage | undefined): boolean {
  return type?.typeName === HttpBodySchema.typeName;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function parseBody(body: Uint8Array, asMessage: (json: JsonValue) => JsonValue, type: DescMessage): JsonValue {
  let text: string;
  try {
    text = utf8.decode(body);
  } catch {
    throw new BadInput("body", undefined, "not UTF-8");
  }
  try {
    return parseMessageJson(text, asMessage, type);
  } catch (error) {
    if (error instanceof SyntaxError) throw new BadInput("body", undefined, "not JSON");
    if (error instanceof NumberOutOfRange) throw new BadInput("body", undefined, error.message);
    // What is left is the stack.
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
