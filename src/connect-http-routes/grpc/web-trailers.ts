import { toUtf8 } from "../codec/bytes.ts";

/** The flag of the envelope that holds the trailers (PROTOCOL-WEB.md). */
export const TRAILERS_FLAG = 0b1000_0000;

/** Encodes trailers as an envelope. @param lines names and values, alternating */
export function encodeTrailers(lines: readonly string[]): Uint8Array {
  const fields: { readonly name: string; readonly text: string }[] = [];
  for (let i = 0; i < lines.length; i += 2) {
    const name = lines[i] as string;
    fields.push({ name, text: `${name}: ${lines[i + 1]}\r\n` });
  }
  // The fields have the order in which connect-es sends them.
  fields.sort((a, b) => (a.name < b.name ? -1 : Number(a.name > b.name)));
  return toUtf8(fields.map(({ text }) => text).join(""));
}
