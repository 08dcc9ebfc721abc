import { isUtf8 } from "node:buffer";

/** The one way to spell bytes in base64url: no padding, and no spare bits set (RFC 4648 §3.5). */
export function isCanonical(segment: string): boolean {
  const last = segment.slice(-1);
  switch (segment.length % 4) {
    case 0:
      return true;
    case 2:
      return "AQgw".includes(last);
    case 3:
      return "AEIMQUYcgkosw048".includes(last);
    default:
      return false;
  }
}

/** Texts are decoded here, one at a time: a buffer for each would be the dearest part of it. */
let scratch = Buffer.alloc(4096);

/**
 * The JSON object in a base64url segment, frozen; undefined for anything that two readers could take
 * differently: bytes that are not UTF-8, a name that is there twice (RFC 8725 §2.4, RFC 7519 §4).
 */
export function parseObject(segment: string): Readonly<Record<string, unknown>> | undefined {
  if (!isCanonical(segment)) return undefined;
  if (scratch.length < segment.length) scratch = Buffer.alloc(segment.length);
  const length = scratch.write(segment, "base64url");
  if (!isUtf8(scratch.subarray(0, length))) return undefined;
  const text = scratch.toString("utf8", 0, length);
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    return freeze(value) === namesIn(text) ? (value as Readonly<Record<string, unknown>>) : undefined;
  } catch {
    return undefined; // not JSON, or nested too deep
  }
}

/** Freezes a value all the way down; how many members its objects have. */
function freeze(value: object): number {
  let members = Array.isArray(value) ? 0 : Object.keys(value).length;
  for (const each of Object.values(value)) {
    if (typeof each === "object" && each !== null) members += freeze(each);
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
