/** Makes texts that an attacker may have written safe for the log: bounded, without control or reordering characters (ASVS 5.0, 16.4.1). */

/** The greatest length of a field, in UTF-16 code units. An access token's `sid`, an address or a subject of 255 bytes fits. */
export const MAX_FIELD_LENGTH = 512;
const MAX_STACK_LINES = 16;

/** Matches C0, DEL and C1, line and paragraph separators, bidirectional marks, embeddings, overrides and isolates, and the BOM. */
const UNSAFE = /[\p{Cc}\u2028\u2029\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069\uFEFF]/gu;

/** Matches texts of printable ASCII, which nearly all are. Checking that costs less than searching for unsafe characters. */
const PRINTABLE_ASCII = /^[ -~]*$/;

/** Replaces every unsafe character and every lone surrogate by U+FFFD. A text that is too long is cut and marked as cut. */
export function safeText(text: string, maxLength: number = MAX_FIELD_LENGTH): string {
  if (text.length <= maxLength && PRINTABLE_ASCII.test(text)) return text;
  const cut = text.length > maxLength ? `${text.slice(0, maxLength)}… (${text.length} characters)` : text;
  return cut.toWellFormed().replace(UNSAFE, "\uFFFD");
}

/** Returns the frames of a stack trace without the message that V8 puts before them, because an attacker may have written it. */
export function safeStack(stack: string): string {
  const frames = stack.split("\n").filter((line) => /^\s+at /.test(line));
  return frames
    .slice(0, MAX_STACK_LINES)
    .map((line) => safeText(line))
    .join("\n");
}
