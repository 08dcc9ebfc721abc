export const NO_BYTES = new Uint8Array();

/** Joins the parts. A single part is returned as it is. */
export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const [only] = parts;
  if (only !== undefined && parts.length === 1) return only as Uint8Array<ArrayBuffer>;
  const whole = new Uint8Array(parts.reduce((sum, { byteLength }) => sum + byteLength, 0));
  let offset = 0;
  for (const part of parts) {
    whole.set(part, offset);
    offset += part.byteLength;
  }
  return whole;
}

/** Returns the same bytes with the type that the interfaces of the web demand: their memory is not shared between threads. */
export function unshared(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  const { buffer, byteOffset, byteLength } = bytes;
  return buffer instanceof ArrayBuffer ? new Uint8Array(buffer, byteOffset, byteLength) : Uint8Array.from(bytes);
}

const encoder = new TextEncoder();

export const toUtf8 = (text: string): Uint8Array<ArrayBuffer> => encoder.encode(text);

/** Returns the number of bytes of a text in UTF-8. Node counts them without encoding the text. */
export const utf8Length: (text: string) => number =
  (globalThis as { readonly Buffer?: typeof Buffer }).Buffer?.byteLength ?? ((text) => toUtf8(text).byteLength);

/** Returns the number of bytes of content as it is sent. */
export function byteLength(content: string | Uint8Array): number {
  return typeof content === "string" ? utf8Length(content) : content.byteLength;
}
