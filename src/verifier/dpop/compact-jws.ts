import { parseObject } from "../strict-json.ts";
import { decodeBytes, decodeText } from "../web/segment.ts";

type JsonObject = Readonly<Record<string, unknown>>;

export type CompactJws = {
  /** Parses the header. Returns undefined unless it is a JSON object without members that would change what is signed. */
  readonly readHeader: () => JsonObject | undefined;
  /** Parses the payload. Returns undefined unless it is a JSON object. */
  readonly readPayload: () => JsonObject | undefined;
  readonly headerSegment: string;
  readonly input: string;
  readonly signature: Uint8Array<ArrayBuffer>;
};

const SEGMENTS = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)$/;

/** Header members that would change what is signed or how it is read (RFC 7515 section 4.1.11, RFC 7797). */
const REFUSED_MEMBERS = ["crit", "b64"] as const;

/**
 * Parses a compact JWS (RFC 7515 section 7.1) strictly. Returns undefined for any other text, and for one that is longer than `maxLength`.
 */
export function readCompactJws(text: string, maxLength: number): CompactJws | undefined {
  const segments = text.length > maxLength ? null : SEGMENTS.exec(text);
  if (segments === null) return undefined;
  const [, first = "", second = "", third = ""] = segments;
  const signature = decodeBytes(third);
  if (signature === undefined) return undefined;
  const input = `${first}.${second}`;
  return {
    signature,
    input,
    headerSegment: first,
    readHeader: () => parseHeader(first),
    readPayload: () => parseSegment(second),
  };
}

function parseHeader(segment: string): JsonObject | undefined {
  const header = parseSegment(segment);
  return header && REFUSED_MEMBERS.some((name) => Object.hasOwn(header, name)) ? undefined : header;
}

function parseSegment(segment: string): JsonObject | undefined {
  const text = decodeText(segment);
  return text === undefined ? undefined : parseObject(text);
}
