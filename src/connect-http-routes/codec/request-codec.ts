import { create, type DescField, type DescMessage, type DescMethod, type Message } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { bodyField, isHttpBody, messageType, resolveFieldPath } from "../routes/field-path.ts";
import type { Binding } from "../routes/matcher.ts";
import type { RefuseUnknownQuery, Route } from "../routes/model.ts";
import { BadInput } from "./bad-input.ts";
import { type BodyOptions, type BodyReader, createBodyReader, utf8TextOf } from "./body-reader.ts";
import type { ContentCodec } from "./content-codec.ts";
import { checkForm } from "./message-limits.ts";
import { readMultipart } from "./multipart.ts";
import { createQueryReader } from "./query.ts";
import { createRequiredCheck } from "./required.ts";
import { setFromText, type TextOptions, TextValueError } from "./text-value.ts";
import { inferUpdateMask, updateMaskOf } from "./update-mask.ts";

/** Decodes the request message of one route. */
export interface RequestCodec {
  /** How the route decodes the body: it has no body, JSON, or raw bytes (google.api.HttpBody). */
  readonly body: "none" | "json" | "raw";
  /** Whether a codec can decode the body. A `MessageCodec` decodes only bodies that are messages. */
  accepts(codec: ContentCodec): boolean;
  /**
   * Decodes a request.
   * @throws BadInput
   * @param query the raw query, without the question mark
   * @param codec the codec of the body; undefined for JSON
   */
  decode(
    bindings: readonly Binding[],
    query: string,
    body: Uint8Array,
    contentType: string | null,
    codec?: ContentCodec,
  ): Message;
  /** The other types of bodies that the route accepts by its options. */
  readonly forms: readonly FormCodec[];
}

/** Decodes the bodies of one type of form. */
interface FormCodec {
  readonly contentType: RegExp;
  /** Whether the body is needed as it was sent. */
  readonly raw: boolean;
  readonly decode: RequestCodec["decode"];
}

const FORM = /^application\/x-www-form-urlencoded\s*(?:;\s*charset="?utf-?8"?\s*)?$/i;

const MULTIPART = /^multipart\/form-data\s*;/i;

interface RequestCodecOptions extends BodyOptions {
  readonly refuseUnknownQuery: RefuseUnknownQuery;
  readonly inferUpdateMask: boolean | "any-name";
  /** Whether the whole message may also be sent as `application/x-www-form-urlencoded`. */
  readonly formPosts: boolean;
  /** Whether the whole message may also be sent as `multipart/form-data`. */
  readonly multipart: boolean;
}

export function createRequestCodec(method: DescMethod, route: Route, options: RequestCodecOptions): RequestCodec {
  const { input } = method;
  const whole = route.body === "*";
  const field = bodyField(input, route.body);
  const raw = isHttpBody(whole ? input : messageType(field));
  const bound = [...route.variables.map((variable) => variable.field), ...(field ? [field.name] : [])];
  const ofBody = whole ? input.fields.map(({ name }) => name) : [];
  const { registry } = options.json;
  const text: TextOptions = { registry, caseInsensitiveEnums: options.caseInsensitiveEnums };
  const reading = { refuseUnknown: options.refuseUnknownQuery, text };
  const readForm = createQueryReader(input, bound, reading);
  const readQuery = createQueryReader(input, [...bound, ...ofBody], reading);
  const readBody = createBodyReader(input, { whole, raw, field }, options);
  const paths = pathFields(input, route);
  const findMissing = createRequiredCheck(input);
  const mask =
    options.inferUpdateMask && route.method === "PATCH" && !raw && field
      ? updateMaskOf(input, field, options.inferUpdateMask === "any-name")
      : undefined;

  const isPlainMessage = whole && !raw && !input.typeName.startsWith("google.protobuf.");

  const decodeBy =
    (read: BodyReader): RequestCodec["decode"] =>
    (bindings, query, body, contentType, codec) => {
      // Many requests without parameters have the body `{}`. It is not parsed.
      const isEmptyObject = body.byteLength === 2 && body[0] === 0x7b && body[1] === 0x7d;
      const isBlank = isEmptyObject && isPlainMessage && codec === undefined && read === readBody;
      const { message, json } = isBlank ? { message: create(input) } : read(body, contentType, codec);
      // http.proto: a route with body "*" has no query parameters. They are read only to be refused.
      if (query !== "" && (!whole || options.refuseUnknownQuery !== false)) readQuery(query, reflect(input, message));
      if (mask !== undefined && json !== undefined) inferUpdateMask(reflect(input, message), mask, json);
      if (bindings.length > 0) setBindings(reflect(input, message), bindings, paths, text);
      const missing = findMissing?.(message);
      if (missing === undefined) return message;
      const isOfBody = whole || (field !== undefined && missing.split(".")[0] === field.jsonName);
      throw new BadInput(isOfBody ? "body" : "query", missing, "is required");
    };

  /** Reads a form, whose fields are named as in a query. */
  function readPostedForm(body: Uint8Array) {
    const message = create(input);
    const form = utf8TextOf(body);
    checkForm(form, options.limits);
    readForm(form, reflect(input, message));
    return { message };
  }

  function readUpload(body: Uint8Array, contentType: string | null) {
    const { form, json, setFiles } = readMultipart(input, body, contentType ?? "", options.limits);
    const { message } = readBody(json, null, undefined);
    readForm(form, reflect(input, message));
    setFiles(reflect(input, message));
    return { message };
  }

  const forms: FormCodec[] = [];
  const takesForms = whole && !raw;
  if (options.formPosts && takesForms) forms.push({ contentType: FORM, raw: false, decode: decodeBy(readPostedForm) });
  if (options.multipart && takesForms) forms.push({ contentType: MULTIPART, raw: true, decode: decodeBy(readUpload) });
  return {
    accepts: (codec) => codec.kind === "value" || whole || field?.fieldKind === "message",
    body: raw ? "raw" : whole || field !== undefined ? "json" : "none",
    decode: decodeBy(readBody),
    forms,
  };
}

function setBindings(
  message: ReflectMessage,
  bindings: readonly Binding[],
  paths: ReadonlyMap<string, readonly DescField[]>,
  text: TextOptions,
): void {
  for (const { field: path, value } of bindings) {
    try {
      setFromText(message, paths.get(path) ?? [], value, text);
    } catch (error) {
      if (error instanceof TextValueError) throw new BadInput("path", path, error.message);
      throw error;
    }
  }
}

/** Returns the fields of each path variable, outermost first. */
function pathFields(input: DescMessage, { variables }: Route): ReadonlyMap<string, readonly DescField[]> {
  const paths = new Map<string, readonly DescField[]>();
  for (const { field } of variables) {
    const resolved = resolveFieldPath(input, field);
    if (!resolved.ok) throw new Error(`${resolved.reason}: generate the routes again`);
    paths.set(field, resolved.fields);
  }
  return paths;
}
