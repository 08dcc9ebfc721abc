const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Returns the bytes of a base64url segment. Undefined unless the segment is canonical (alphabet, no padding, no spare bits: RFC 4648
 * section 3.5; encoding the bytes again gives the same segment).
 */
export function decodeBytes(segment: string): Uint8Array<ArrayBuffer> | undefined {
  if (!/^[\w-]*$/.test(segment)) return undefined;
  try {
    const bytes = atob(segment.replaceAll("-", "+").replaceAll("_", "/"));
    const isCanonical = btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "") === segment;
    return isCanonical ? Uint8Array.from(bytes, (unit) => unit.charCodeAt(0)) : undefined;
  } catch {
    return undefined; // the segment has a length that no bytes have
  }
}

/** Returns the text of a base64url segment. Undefined unless the segment is canonical and its bytes are UTF-8. */
export function decodeText(segment: string): string | undefined {
  const bytes = decodeBytes(segment);
  try {
    return bytes && decoder.decode(bytes);
  } catch {
    return undefined; // the bytes are not UTF-8
  }
}
