/** Reads a JSON text before it is parsed: parsing would already take the memory, and JSON.parse silently drops duplicate keys. */
import { type MessageLimits, tooDeep, tooManyElements } from "./message-limits.ts";

export const QUOTE = 0x22;
export const COMMA = 0x2c;
export const BACKSLASH = 0x5c;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;

/**
 * Returns the first key that occurs twice in one object; undefined if there is none. A text that is not JSON may pass.
 * @throws BadInput if the text exceeds a limit, SyntaxError for a malformed key
 */
export function scanJson(text: string, { maxElements, maxDepth }: MessageLimits): string | undefined {
  /** The keys of each enclosing object. The entry of an enclosing array is undefined. */
  const outer: (Set<string> | undefined)[] = [];
  let keys: Set<string> | undefined;
  let expectKey = false;
  let [elements, duplicate]: [number, string | undefined] = [0, undefined];
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (outer.push(keys) > maxDepth) throw tooDeep();
        if (++elements > maxElements) throw tooManyElements(maxElements);
        expectKey = text.charCodeAt(at) === OPEN_BRACE;
        keys = expectKey ? new Set() : undefined;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        keys = outer.pop();
        expectKey = false;
        break;
      case COMMA:
        if (++elements > maxElements) throw tooManyElements(maxElements);
        expectKey = keys !== undefined;
        break;
      case QUOTE: {
        const end = endOfString(text, at);
        if (expectKey) {
          const key = keyOf(text.slice(at, end + 1));
          if (keys?.has(key)) duplicate ??= key;
          keys?.add(key);
          expectKey = false;
        }
        at = end;
      }
    }
  }
  return duplicate;
}

/** Returns the position of the closing quote of the string that starts at `start`. */
function endOfString(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0;
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++;
    if (backslashes % 2 === 0) return end;
  }
  return text.length;
}

function keyOf(literal: string): string {
  return literal.includes("\\") ? (JSON.parse(literal) as string) : literal.slice(1, -1);
}
