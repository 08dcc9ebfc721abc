import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  fromJson,
  isFieldSet,
  type Message,
  type Registry,
  ScalarType,
  toJson,
} from "@bufbuild/protobuf";
import { type ReflectMessage, reflect, type ScalarValue } from "@bufbuild/protobuf/reflect";
import { base64Decode } from "@bufbuild/protobuf/wire";
import { FieldMaskSchema } from "@bufbuild/protobuf/wkt";
import { ExpectedError } from "../routes/expected-error.ts";
import { JSON_MESSAGES, TEXT_MESSAGES } from "../routes/field-path.ts";
import { declaredName } from "./enum-names.ts";
import { parseJson } from "./exact-json.ts";

/** A text that is not a valid value of the field. */
export class TextValueError extends ExpectedError {
  override readonly name = "TextValueError";
}

export interface TextOptions {
  /** The types of `google.protobuf.Any`. */
  readonly registry: Registry | undefined;
  /** Whether names of enum values are accepted in any case. */
  readonly caseInsensitiveEnums: boolean;
}

/**
 * Sets a singular field or appends to a repeated one, from the proto JSON form without quotes.
 * @param fields the path to the field, outermost first
 * @throws TextValueError
 */
export function setFromText(
  message: ReflectMessage,
  fields: readonly DescField[],
  text: string,
  options: TextOptions,
): void {
  const [field, ...inner] = fields;
  if (field === undefined) return;
  if (field.fieldKind === "message" && inner.length > 0) {
    const child = message.isSet(field) ? message.get(field) : reflect(field.message);
    setFromText(child, inner, text, options);
    message.set(field, child);
    return;
  }
  if (field.fieldKind === "list") message.get(field).add(valueFromText(field, text, options));
  else message.set(field, valueFromText(field, text, options));
}

/**
 * Sets an entry of a map field from the texts of key and value.
 * @param fields the path to the map field, outermost first
 * @throws TextValueError
 */
export function setEntryFromText(
  message: ReflectMessage,
  fields: readonly DescField[],
  key: string,
  text: string,
  options: TextOptions,
): void {
  const [field, ...inner] = fields;
  if (field?.fieldKind === "message") {
    const child = message.isSet(field) ? message.get(field) : reflect(field.message);
    setEntryFromText(child, inner, key, text, options);
    message.set(field, child);
  } else if (field?.fieldKind === "map") {
    message.get(field).set(scalarFromText(field.mapKey, key), elementFromText(field, text, options));
  }
}

function valueFromText(field: DescField, text: string, options: TextOptions): ReflectMessage | ScalarValue {
  if (field.fieldKind === "map") throw new TextValueError("a map cannot be given as text");
  return elementFromText(field, text, options);
}

/** Decodes a singular value, an element of a list or the value of a map entry. */
function elementFromText(field: DescField, text: string, options: TextOptions): ReflectMessage | ScalarValue {
  if (field.message !== undefined) return reflect(field.message, messageFromText(field.message, text, options));
  return field.enum === undefined ? scalarFromText(field.scalar, text) : enumFromText(field.enum, text, options);
}

/** Returns another member of the field's oneof that is already set. */
export function otherOneofMember(message: Message, field: DescField): DescField | undefined {
  return field.oneof?.fields.find((other) => other !== field && isFieldSet(message, other));
}

const INTEGER = /^-?(?:0|[1-9][0-9]*)$/;
// `number` of RFC 8259, the syntax of proto JSON.
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;

function scalarFromText(type: ScalarType, text: string): ScalarValue {
  switch (type) {
    case ScalarType.STRING:
      return text;
    case ScalarType.BOOL:
      if (text !== "true" && text !== "false") throw new TextValueError(`expected true or false`);
      return text === "true";
    case ScalarType.BYTES:
      return bytesFromText(text);
    case ScalarType.DOUBLE:
      return floatFromText(text, (value) => value);
    case ScalarType.FLOAT:
      return floatFromText(text, Math.fround);
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return Number(integerFromText(text, -(2n ** 31n), 2n ** 31n - 1n));
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return Number(integerFromText(text, 0n, 2n ** 32n - 1n));
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return integerFromText(text, -(2n ** 63n), 2n ** 63n - 1n);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return integerFromText(text, 0n, 2n ** 64n - 1n);
  }
}

function integerFromText(text: string, min: bigint, max: bigint): bigint {
  // 64 bits need at most 20 characters. The limit bounds the work of BigInt.
  if (text.length > 20 || !INTEGER.test(text)) throw new TextValueError("expected an integer");
  const value = BigInt(text);
  if (value < min || value > max) throw new TextValueError(`expected an integer from ${min} to ${max}`);
  return value;
}

function floatFromText(text: string, round: (value: number) => number): number {
  if (text === "NaN") return Number.NaN;
  if (text === "Infinity") return Number.POSITIVE_INFINITY;
  if (text === "-Infinity") return Number.NEGATIVE_INFINITY;
  if (!NUMBER.test(text)) throw new TextValueError("expected a number");
  const value = round(Number(text));
  if (!Number.isFinite(value)) throw new TextValueError("number out of range");
  return value;
}

function bytesFromText(text: string): Uint8Array {
  // The base64 is that of RFC 4648 section 4 or 5, with or without padding. A length of 4n+1 characters is never valid.
  const bare = text.replace(/={1,2}$/, "");
  const padded = bare !== text;
  if (
    !/^(?:[A-Za-z0-9+/]*|[A-Za-z0-9\-_]*)$/.test(bare) ||
    bare.length % 4 === 1 ||
    (padded && text.length % 4 !== 0)
  ) {
    throw new TextValueError("expected base64");
  }
  return base64Decode(bare);
}

function enumFromText(type: DescEnum, text: string, { caseInsensitiveEnums }: TextOptions): number {
  const name = caseInsensitiveEnums ? declaredName(type, text) : text;
  const byName = type.values.find((value) => value.name === name);
  if (byName !== undefined) return byName.number;
  if (!INTEGER.test(text)) throw new TextValueError(`expected a value of ${type.typeName}`);
  const byNumber = Number(integerFromText(text, -(2n ** 31n), 2n ** 31n - 1n));
  if (!type.open && type.value[byNumber] === undefined) throw new TextValueError(`no value of ${type.typeName}`);
  return byNumber;
}

function messageFromText(type: DescMessage, text: string, { registry }: TextOptions): Message {
  if (type.typeName === FieldMaskSchema.typeName) return maskFromText(text);
  const value = type.fields.length === 1 ? type.fields[0] : undefined;
  if (TEXT_MESSAGES.has(type.typeName) && value?.fieldKind === "scalar") {
    const wrapper = reflect(type);
    wrapper.set(value, scalarFromText(value.scalar, text));
    return wrapper.message;
  }
  try {
    return fromJson(type, JSON_MESSAGES.has(type.typeName) ? parseJson(text) : text, registry && { registry });
  } catch {
    throw new TextValueError(`expected a ${type.typeName}`);
  }
}

function maskFromText(text: string): Message {
  const mask = create(FieldMaskSchema, { paths: text === "" ? [] : text.split(",").map(snakeCase) });
  try {
    // A path such as a__b or foo_3 has no JSON form: its camelCase is that of another path, so it is refused.
    toJson(FieldMaskSchema, mask);
  } catch {
    throw new TextValueError("expected a field mask");
  }
  return mask;
}

/** Converts a field mask path, in camelCase (proto JSON) or snake_case; `*` is every field (AIP-134). */
function snakeCase(path: string): string {
  if (!/^(?:\*|[A-Za-z0-9_.]+)$/.test(path)) throw new TextValueError("expected a field mask");
  return path.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
