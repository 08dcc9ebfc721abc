/** Maps the rules of strings and bytes (`buf.validate`, `google.api.field_info`) to schema keywords. */

import { type BytesRules, KnownRegex, type StringRules } from "../../gen/buf/validate/validate_pb.ts";
import { FieldInfo_Format } from "../../gen/google/api/field_info_pb.ts";
import type { Schema } from "./well-known.ts";

/** How many bytes a character has at most in UTF-8. */
const MAX_BYTES_PER_CHARACTER = 4;

const IP: Schema = { anyOf: [{ format: "ipv4" }, { format: "ipv6" }] };

/** The formats for which JSON Schema has a name, or which a pattern can describe. No keyword expresses the other formats. */
const WELL_KNOWN: Readonly<Record<string, Schema>> = {
  email: { format: "email" },
  hostname: { format: "hostname" },
  ip: IP,
  ipv4: { format: "ipv4" },
  ipv6: { format: "ipv6" },
  uri: { format: "uri" },
  uriRef: { format: "uri-reference" },
  address: { anyOf: [{ format: "hostname" }, { format: "ipv4" }, { format: "ipv6" }] },
  uuid: { format: "uuid" },
  tuuid: { pattern: "^[0-9a-fA-F]{32}$" },
  ulid: { pattern: "^[0-7][0-9A-HJKMNP-TV-Za-hjkmnp-tv-z]{25}$" },
  protobufFqn: { pattern: "^[A-Za-z_][A-Za-z_0-9]*(\\.[A-Za-z_][A-Za-z_0-9]*)*$" },
  protobufDotFqn: { pattern: "^\\.[A-Za-z_][A-Za-z_0-9]*(\\.[A-Za-z_][A-Za-z_0-9]*)*$" },
};

/** Returns the keywords of a string. JSON Schema counts characters, so limits in bytes become the bounds that they imply. */
export function stringKeywords(rules: StringRules): Schema {
  const least = Math.max(Number(rules.minLen), atLeast(rules.minBytes), Number(rules.len), atLeast(rules.lenBytes));
  const most = [rules.maxLen, rules.maxBytes, rules.len, rules.lenBytes].filter((limit) => limit > 0n).map(Number);
  const patterns = patternsOf(rules);
  const { pattern, ...format } = formatOf(rules);
  if (typeof pattern === "string") patterns.push(pattern);
  const excluded: Schema[] = [];
  if (rules.notIn.length > 0) excluded.push({ enum: rules.notIn });
  if (rules.notContains !== "") excluded.push({ pattern: escaped(rules.notContains) });
  return {
    ...format,
    ...(least > 0 && { minLength: least }),
    ...(most.length > 0 && { maxLength: Math.min(...most) }),
    ...(patterns.length === 1 && { pattern: patterns[0] }),
    ...(patterns.length > 1 && { allOf: patterns.map((one) => ({ pattern: one })) }),
    ...(rules.in.length > 0 && { enum: rules.in }),
    ...(excluded.length === 1 && { not: excluded[0] }),
    ...(excluded.length > 1 && { not: { anyOf: excluded } }),
    ...(rules.example.length > 0 && { examples: rules.example }),
  };
}

function atLeast(bytes: bigint): number {
  return Math.ceil(Number(bytes) / MAX_BYTES_PER_CHARACTER);
}

function patternsOf({ pattern, prefix, suffix, contains }: StringRules): string[] {
  const patterns: string[] = [];
  if (pattern !== "") patterns.push(portable(pattern));
  if (prefix !== "") patterns.push(`^${escaped(prefix)}`);
  if (suffix !== "") patterns.push(`${escaped(suffix)}$`);
  if (contains !== "") patterns.push(escaped(contains));
  return patterns;
}

/** Replaces `\p{Cc}` by the control characters: Python's patterns have no Unicode classes. A pattern with brackets stays as it is. */
function portable(pattern: string): string {
  if (pattern.includes("[")) return pattern;
  return pattern.replace(/\\(?:([pP])\{Cc\}|.)/gs, (found, kind?: string) => {
    if (kind === undefined) return found;
    return kind === "P" ? "[^\\x00-\\x1f\\x7f-\\x9f]" : "[\\x00-\\x1f\\x7f-\\x9f]";
  });
}

function formatOf({ wellKnown: { case: kind, value }, strict }: StringRules): Schema {
  if (kind !== "wellKnownRegex") return (value && kind !== undefined && WELL_KNOWN[kind]) || {};
  if (!strict) return { pattern: "^[^\\u0000\\n\\r]*$" };
  return value === KnownRegex.HTTP_HEADER_NAME
    ? { pattern: "^:?[0-9a-zA-Z!#$%&'*+\\-.^_|~`]+$" }
    : { pattern: "^[^\\u0000-\\u0008\\n-\\u001f\\u007f]*$" };
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
}

/** JSON has bytes in base64: four characters for three bytes. Requests may omit the padding. */
export function bytesKeywords({ len, minLen, maxLen, example }: BytesRules): Schema {
  const least = Math.max(Number(len), Number(minLen));
  const most = [len, maxLen].filter((limit) => limit > 0n).map(Number);
  return {
    ...(least > 0 && { minLength: Math.ceil((least * 4) / 3) }),
    ...(most.length > 0 && { maxLength: Math.ceil(Math.min(...most) / 3) * 4 }),
    ...(example.length > 0 && { examples: example.map((bytes) => Buffer.from(bytes).toString("base64")) }),
  };
}

/** Returns the format that `google.api.field_info` names (AIP-202). */
export function infoKeywords(format: FieldInfo_Format): Schema {
  switch (format) {
    case FieldInfo_Format.UUID4:
      return { format: "uuid" };
    case FieldInfo_Format.IPV4:
      return { format: "ipv4" };
    case FieldInfo_Format.IPV6:
      return { format: "ipv6" };
    case FieldInfo_Format.IPV4_OR_IPV6:
      return IP;
    default:
      return {};
  }
}
