/** Makes texts from outside (a client's User-Agent, a subject) safe for a terminal. */

/** Writes control characters, and those that reorder or hide text, as visible escapes. */
export function printable(text: string): string {
  return text.replaceAll(
    /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu,
    (found) => `\\u{${(found.codePointAt(0) ?? 0).toString(16)}}`,
  );
}
