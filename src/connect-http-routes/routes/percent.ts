// Percent-encoding (RFC 3986 section 2.1), decoded once and strictly. Unlike decodeURIComponent, it can leave chosen escapes undecoded.

import { ExpectedError } from "./expected-error.ts";

/** A percent-escape is malformed, or escapes are not UTF-8: a client error, 400. */
export class MalformedEscape extends ExpectedError {
  override readonly name = "MalformedEscape";
}

/** The escapes that stay as they are: those of a slash, or of the reserved characters of RFC 3986 section 2.2. */
const KEPT = {
  "except-slash": /%2[Ff]/,
  "except-reserved": /%(?:2[1346789ABCFabcf]|3[ABDFabdf]|40|5[BDbd])/,
} as const;

export function decodeAll(raw: string): string {
  if (!raw.includes("%")) return raw;
  try {
    return decodeURIComponent(raw);
  } catch {
    throw new MalformedEscape(`malformed percent-encoding in "${raw}"`);
  }
}

/** Decodes the value of a multi-segment variable (http.proto). */
export function decodeSegments(raw: string, decoding: keyof typeof KEPT | "all"): string {
  if (decoding === "all" || !raw.includes("%")) return decodeAll(raw);
  const kept = KEPT[decoding];
  let decoded = "";
  let rest = raw;
  for (let hit = kept.exec(rest); hit !== null; hit = kept.exec(rest)) {
    decoded += decodeAll(rest.slice(0, hit.index)) + hit[0];
    rest = rest.slice(hit.index + hit[0].length);
  }
  return decoded + decodeAll(rest);
}

/**
 * Returns the canonical spelling of a template literal, in which all characters with a meaning in templates are escaped (`*`, `:`, `/`).
 */
export function encodeLiteral(decoded: string): string {
  return encodeURIComponent(decoded)
    .replace(/[*]/g, "%2A")
    .replace(/%(?:21|24|26|27|28|29|2B|2C|3B|3D|40)/g, decodeAll);
}
