/** The deepest accepted nesting, the same for the verifiers in all languages. The limits of their parsers are all higher. */
const MAX_DEPTH = 128;

/**
 * Parses a JSON object and freezes it deeply. Returns undefined for anything else, and for texts that two parsers could read differently:
 * an object with a duplicate member (RFC 7519 section 4, RFC 8725 section 2.4), an unpaired surrogate (RFC 7493 section 2.1), deeper
 * nesting than MAX_DEPTH.
 */
export function parseObject(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value !== "object" || value === null || Array.isArray(value)) return undefined;
    const object = value as Record<string, unknown>;
    return deepFreeze(object, 1) === countMembers(text) ? object : undefined;
  } catch {
    return undefined; // The text is not JSON, or deepFreeze has found a fault.
  }
}

/** Freezes a value deeply, and counts the members of all its objects. @throws RangeError if it is too deep, or has an unpaired surrogate */
function deepFreeze(value: Record<string, unknown> | readonly unknown[], depth: number): number {
  if (depth > MAX_DEPTH) throw new RangeError("too deep");
  const list = Array.isArray(value);
  const parts: readonly unknown[] = list ? value : Object.values(value);
  let members = 0;
  if (!list) for (const name of Object.keys(value)) members += requireWellFormed(name);
  for (const part of parts) {
    if (typeof part === "string") requireWellFormed(part);
    else if (typeof part === "object" && part !== null)
      members += deepFreeze(part as Record<string, unknown>, depth + 1);
  }
  Object.freeze(value);
  return members;
}

/** Checks a text. Returns 1, so that the names of members can be counted. @throws RangeError if it has half of a surrogate pair */
function requireWellFormed(text: string): 1 {
  if (!text.isWellFormed()) throw new RangeError("an unpaired surrogate");
  return 1;
}

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COLON = 0x3a;

/** Counts the members in a JSON text, by the colons outside of strings. If a name repeats, a parser keeps fewer members. */
function countMembers(json: string): number {
  let members = 0;
  let inString = false;
  for (let at = 0; at < json.length; at += 1) {
    const unit = json.charCodeAt(at);
    if (unit === QUOTE) inString = !inString;
    else if (unit === BACKSLASH) at += 1;
    else if (unit === COLON && !inString) members += 1;
  }
  return members;
}
