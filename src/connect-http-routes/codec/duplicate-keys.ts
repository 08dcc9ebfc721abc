/** Finds duplicate keys, which JSON.parse silently drops. */

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/** Returns the first key that occurs twice in one object of a valid JSON text; undefined if there is none. */
export function duplicateKey(text: string): string | undefined {
  /** The keys of each enclosing object. The entry of an enclosing array is undefined. */
  const outer: (Set<string> | undefined)[] = [];
  let keys: Set<string> | undefined;
  let expectKey = false;
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case OPEN_BRACE:
      case OPEN_BRACKET:
        outer.push(keys);
        expectKey = text.charCodeAt(at) === OPEN_BRACE;
        keys = expectKey ? new Set() : undefined;
        break;
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        keys = outer.pop();
        expectKey = false;
        break;
      case COMMA:
        expectKey = keys !== undefined;
        break;
      case QUOTE: {
        const end = endOfString(text, at);
        if (expectKey) {
          const key = keyOf(text.slice(at, end + 1));
          if (keys?.has(key)) return key;
          keys?.add(key);
          expectKey = false;
        }
        at = end;
      }
    }
  }
  return undefined;
}

/** Returns the position of the closing quote of the string that starts at `start`. */
export function endOfString(text: string, start: number): number {
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
