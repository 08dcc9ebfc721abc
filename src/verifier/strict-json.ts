import { isUtf8 } from "node:buffer";

/** Segments are decoded here, one at a time: a buffer for each would be the dearest part of it. */
let scratch = Buffer.alloc(4096);

/**
 * The text in a base64url segment; undefined unless this is the one way to spell it (alphabet, no padding, no
 * spare bits: RFC 4648 §3.5; encoding it again tells) and the bytes are UTF-8.
 */
export function decodeText(segment: string): string | undefined {
  if (scratch.length < segment.length) scratch = Buffer.alloc(segment.length);
  const length = scratch.write(segment, "base64url");
  if (scratch.toString("base64url", 0, length) !== segment) return undefined;
  const text = scratch.toString("utf8", 0, length);
  // Bytes that are not UTF-8 become U+FFFD, which may also have been meant.
  return text.includes("\ufffd") && !isUtf8(scratch.subarray(0, length)) ? undefined : text;
}

/**
 * The JSON object in a text, frozen all the way down; undefined for anything else, and for one with a name that
 * is there twice, which two readers could take differently (RFC 7519 §4, RFC 8725 §2.4).
 */
export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const object = value as Record<string, unknown>;
    return freeze(object) === namesIn(text) ? object : undefined;
  } catch {
    return undefined; // not JSON, or nested too deep
  }
}

/** Freezes a value all the way down; how many members its objects have. */
function freeze(value: Record<string, unknown> | readonly unknown[]): number {
  const list = Array.isArray(value);
  const parts: readonly unknown[] = list ? value : Object.values(value);
  let members = list ? 0 : parts.length;
  for (const part of parts) {
    if (typeof part === "object" && part !== null) members += freeze(part as Record<string, unknown>);
  }
  Object.freeze(value);
  return members;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** How many members a JSON text spells out: its colons outside of strings. A parser keeps fewer when a name repeats. */
function namesIn(json: string): number {
  let names = 0;
  let inString = false;
  for (let at = 0; at < json.length; at += 1) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) inString = !inString;
    else if (unit === BACKSLASH) at += 1;
    else if (unit === COLON && !inString) names += 1;
  }
  return names;
}
