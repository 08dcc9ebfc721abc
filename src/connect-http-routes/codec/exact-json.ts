import { type DescField, type DescMessage, type JsonValue, type Registry, ScalarType } from "@bufbuild/protobuf";
import { hasOwnJson } from "../routes/field-path.ts";
import { BadInput } from "./bad-input.ts";
import { scanJson } from "./json-scan.ts";
import { mapValues } from "./json-values.ts";
import type { MessageLimits } from "./message-limits.ts";

/** A number whose source text matters because a JavaScript number may lose digits. */
class Written {
  readonly text: string;
  readonly value: number;
  constructor(text: string, value: number) {
    this.text = text;
    this.value = value;
  }
}

/** The value of a JSON text in which long numbers keep their source text. */
type ExactJson = JsonValue | Written | ExactJson[] | { [key: string]: ExactJson };

// TypeScript's lib.es2024 lacks the third parameter of a reviver (ECMA-262 2026, JSON.parse source text access).
const parse = JSON.parse as (
  text: string,
  reviver: (key: string, value: ExactJson, context: { readonly source?: string } | undefined) => ExactJson,
) => ExactJson;

/**
 * Matches texts that may contain numbers of 16 digits or with an exponent; JSON.parse reads all others exactly. Proto JSON writes 64-bit
 * integers as strings, which do not match, because a quotation mark precedes their digits.
 */
const INEXACT = /(?:^|[:,[\s])-?[0-9](?:[0-9.]{15}|[0-9.]*[eE])/;

const NO_INTEGERS: ReadonlySet<ScalarType | undefined> = new Set([
  undefined,
  ScalarType.DOUBLE,
  ScalarType.FLOAT,
  ScalarType.STRING,
  ScalarType.BYTES,
  ScalarType.BOOL,
]);

/**
 * Works as JSON.parse, but a number that JavaScript reads as Infinity (`1e400`) and a text that is not Unicode are errors.
 * @throws SyntaxError, BadInput, RangeError
 */
export function parseJson(text: string): JsonValue {
  return wellFormed(text, INEXACT.test(text) ? toNumbers(parse(text, written)) : (JSON.parse(text) as JsonValue));
}

interface MessageJsonOptions {
  readonly limits: MessageLimits;
  /** The registry has the types of `google.protobuf.Any`. */
  readonly json: { readonly registry?: Registry | undefined };
}

/**
 * Parses the JSON of a message. Proto JSON accepts 64-bit integers as numbers, even with a zero fraction or an exponent, but a JavaScript
 * number holds 53 bits. So for integer fields, longer numbers become strings, which are read exactly or refused.
 * @throws SyntaxError, BadInput for a duplicate key, a number that is too large, a text that is not Unicode or exceeds the limits,
 * RangeError
 */
export function parseMessageJson(
  text: string,
  fieldOf: (json: JsonValue) => JsonValue,
  type: DescMessage,
  { limits, json: { registry } }: MessageJsonOptions,
): JsonValue {
  const repeated = scanJson(text, limits);
  const json = INEXACT.test(text)
    ? settleMessage(type, fieldOf(parse(text, written) as JsonValue), registry)
    : fieldOf(JSON.parse(text) as JsonValue);
  const duplicate = repeated ?? (text.includes("_") ? fieldGivenTwice(type, json) : undefined);
  if (duplicate !== undefined) throw new BadInput("body", undefined, `duplicate key ${JSON.stringify(duplicate)}`);
  return wellFormed(text, json);
}

/** Matches the escape of half a surrogate pair. Many programs also escape other characters, which need no search. */
const SURROGATE = /\\u[dD][89a-fA-F]/;

/**
 * Returns the JSON of a text unless it contains a lone surrogate, which has no UTF-8 and would become another character on its way to a
 * server. UTF-8 cannot contain one, so only an escape can make it.
 * @throws BadInput
 */
function wellFormed(text: string, json: JsonValue): JsonValue {
  const path = SURROGATE.test(text) ? pathOfLoneSurrogate(json) : undefined;
  if (path !== undefined)
    throw new BadInput("body", path.replace(/^\./, "") || undefined, "a text has a lone surrogate");
  return json;
}

/** Returns the path of a text that is not Unicode, or of the object that has it as a key. A dot precedes each name. */
function pathOfLoneSurrogate(json: JsonValue): string | undefined {
  if (typeof json === "string") return json.isWellFormed() ? undefined : "";
  if (typeof json !== "object" || json === null) return undefined;
  for (const [key, value] of Object.entries(json)) {
    if (!key.isWellFormed()) return "";
    const path = pathOfLoneSurrogate(value);
    if (path !== undefined) return `${Array.isArray(json) ? `[${key}]` : `.${key}`}${path}`;
  }
  return undefined;
}

/** Returns the proto name of a field that an object has under its JSON name too. */
function fieldGivenTwice(type: DescMessage, json: JsonValue): string | undefined {
  if (type.typeName.startsWith("google.protobuf.") || !isObject(json)) return undefined;
  for (const field of type.fields) {
    const hasProtoName = Object.hasOwn(json, field.name);
    if (hasProtoName && field.name !== field.jsonName && Object.hasOwn(json, field.jsonName)) return field.name;
    if (field.message === undefined) continue;
    const value = json[hasProtoName ? field.name : field.jsonName];
    if (value === undefined || value === null) continue;
    const items = field.fieldKind === "message" ? [value] : Object.values(value);
    for (const item of items) {
      const found = fieldGivenTwice(field.message, item);
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

function written(_: string, value: ExactJson, context: { readonly source?: string } | undefined): ExactJson {
  if (typeof value !== "number") return value;
  if (!Number.isFinite(value)) throw new BadInput("body", undefined, "a number is out of range");
  const source = context?.source ?? "0";
  return /^-?[0-9]{1,15}$/.test(source) ? value : new Written(source, value);
}

function settleMessage(type: DescMessage, json: ExactJson, registry: Registry | undefined): JsonValue {
  if (type.typeName === ANY) return settleAny(json, registry);
  if (hasOwnJson(type)) {
    const value = type.fields[0];
    return value !== undefined && type.fields.length === 1 ? settleSingular(value, json, registry) : toNumbers(json);
  }
  if (!isObject(json)) return toNumbers(json);
  return mapValues(json, (value, name) => {
    const field = type.fields.find((f) => f.jsonName === name || f.name === name);
    return field === undefined ? toNumbers(value) : settleField(field, value, registry);
  });
}

const ANY = "google.protobuf.Any";

function settleAny(json: ExactJson, registry: Registry | undefined): JsonValue {
  if (!isObject(json)) return toNumbers(json);
  const url = json["@type"];
  const type = typeof url === "string" ? registry?.getMessage(url.slice(url.lastIndexOf("/") + 1)) : undefined;
  if (type === undefined) return toNumbers(json);
  if (!hasOwnJson(type)) return settleMessage(type, json, registry);
  return mapValues(json, (value, name) => (name === "value" ? settleMessage(type, value, registry) : toNumbers(value)));
}

function settleField(field: DescField, json: ExactJson, registry: Registry | undefined): JsonValue {
  const settled = (item: ExactJson) => settleSingular(field, item, registry);
  if (field.fieldKind === "list" && Array.isArray(json)) return json.map(settled);
  if (field.fieldKind === "map" && isObject(json)) return mapValues(json, settled);
  return settled(json);
}

function settleSingular(field: DescField, json: ExactJson, registry: Registry | undefined): JsonValue {
  if (field.message !== undefined) return settleMessage(field.message, json, registry);
  return json instanceof Written && !NO_INTEGERS.has(field.scalar) ? integerText(json.text) : toNumbers(json);
}

/** Returns an integral number in plain digits. Other numbers, and those longer than 64 bits, are returned as written. */
function integerText(text: string): string {
  const [, sign = "", whole = "", fraction = "", exponent = "0"] =
    /^(-?)([0-9]+)(?:\.([0-9]+))?(?:[eE]([+-]?[0-9]+))?$/.exec(text) ?? [];
  const digits = (whole + fraction).replace(/^0+/, "");
  if (digits === "") return "0";
  const scale = Number(exponent) - fraction.length;
  if (digits.length + scale > 20) return text;
  if (scale >= 0) return sign + digits + "0".repeat(scale);
  const cut = digits.length + scale;
  return cut > 0 && /^0+$/.test(digits.slice(cut)) ? sign + digits.slice(0, cut) : text;
}

function toNumbers(json: ExactJson): JsonValue {
  if (json instanceof Written) return json.value;
  if (Array.isArray(json)) return json.map(toNumbers);
  return isObject(json) ? mapValues(json, toNumbers) : json;
}

function isObject(json: ExactJson): json is { [key: string]: ExactJson } {
  return typeof json === "object" && json !== null && !Array.isArray(json) && !(json instanceof Written);
}
