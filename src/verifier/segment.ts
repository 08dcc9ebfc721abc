import { isUtf8 } from "node:buffer";

/**
 * Segments are decoded into this buffer, one at a time. Allocating a new buffer for each segment would be the greatest cost of decoding.
 */
let scratch = Buffer.alloc(4096);

/**
 * Returns the text of a base64url segment. Returns undefined unless the segment is canonical (alphabet, no padding, no spare bits: RFC
 * 4648 section 3.5; encoding the text again gives the same segment) and its bytes are UTF-8.
 */
export function decodeText(segment: string): string | undefined {
  if (scratch.length < segment.length) scratch = Buffer.alloc(segment.length);
  const length = scratch.write(segment, "base64url");
  if (scratch.toString("base64url", 0, length) !== segment) return undefined;
  const text = scratch.toString("utf8", 0, length);
  // Bytes that are not UTF-8 decode to U+FFFD, which a valid text may contain too.
  return text.includes("\ufffd") && !isUtf8(scratch.subarray(0, length)) ? undefined : text;
}
