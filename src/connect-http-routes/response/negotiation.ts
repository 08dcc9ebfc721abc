import type { ChosenCodec, Codecs } from "../codec/content-codec.ts";

/**
 * Whether a Content-Type is JSON in UTF-8: `application/json`, or any type with the suffix `+json` (RFC 6839), without a `charset` or with
 * `charset=utf-8` (RFC 8259 section 8.1).
 */
export function isJson(contentType: string): boolean {
  if (contentType === "application/json") return true;
  const [type = "", ...parameters] = contentType.split(";").map((part) => part.trim().toLowerCase());
  if (type !== "application/json" && !/^[!#$&^_.+\-0-9a-z]+\/[!#$&^_.+\-0-9a-z]+\+json$/.test(type)) return false;
  return parameters.every(isUtf8);
}

const isUtf8 = (parameter: string) => !parameter.startsWith("charset=") || UTF_8.test(parameter);
const UTF_8 = /^charset=(?:utf-?8|"utf-?8")$/;

/** Whether a Content-Type is newline-delimited JSON, under any of its names. */
export function isJsonLines(contentType: string): boolean {
  const [type = "", ...parameters] = contentType.split(";").map((part) => part.trim().toLowerCase());
  return JSON_LINES.includes(type) && parameters.every(isUtf8);
}

export const JSON_LINES: readonly string[] = ["application/x-ndjson", "application/ndjson", "application/jsonl"];

/** Whether an Accept-Encoding accepts gzip (RFC 9110 section 12.5.3), at least as much as `identity`. */
export function acceptsGzip(acceptEncoding: string | null): boolean {
  if (acceptEncoding === null) return false;
  let gzip: number | undefined;
  let any = 0;
  let identity = 0;
  for (const { name, weight } of weighted(acceptEncoding)) {
    if (name === "gzip" || name === "x-gzip") gzip ??= weight;
    else if (name === "*") any = weight;
    else if (name === "identity") identity = weight;
  }
  gzip ??= any;
  return gzip > 0 && gzip >= identity;
}

interface Weighted {
  readonly name: string;
  /** The weight: from 0 (not acceptable) to 1. */
  readonly weight: number;
}

/** Splits an Accept or Accept-Encoding header into its members. Malformed members are skipped. */
export function weighted(header: string): Weighted[] {
  const members: Weighted[] = [];
  for (const member of header.split(",")) {
    const [name = "", ...parameters] = member.split(";").map((part) => part.trim().toLowerCase());
    if (name === "") continue;
    const q = parameters.find((parameter) => parameter.startsWith("q="))?.slice(2);
    if (q === undefined) members.push({ name, weight: 1 });
    else if (/^(?:0(?:\.\d{0,3})?|1(?:\.0{0,3})?)$/.test(q)) members.push({ name, weight: Number(q) });
  }
  return members;
}

/**
 * Chooses the codec of a response by the weights in `Accept`. If the header is missing or accepts any type, the request's codec is used.
 * @returns undefined for JSON, even if the header names nothing that is known
 */
export function codecFor(
  codecs: Codecs,
  accept: string | null,
  ofRequest: ChosenCodec | undefined,
): ChosenCodec | undefined {
  if (accept === null) return ofRequest;
  let best: ChosenCodec | undefined;
  let bestWeight = 0;
  for (const { name, weight } of weighted(accept)) {
    const found = isAnyType(name) ? ofRequest : codecs.get(name);
    if (weight <= bestWeight || (found === undefined && !isAnyType(name) && name !== "application/json")) continue;
    best = found;
    bestWeight = weight;
  }
  return best;
}

export function isAnyType(range: string): boolean {
  return range === "*/*" || range === "application/*";
}
