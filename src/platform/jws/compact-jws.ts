/** Reads tokens that are a compact JWS (RFC 7515 section 7.1), strictly: whoever reads such a token here reads the same. */
import { decodeBytes, decodeText } from "./segment.ts";
import { parseObject } from "./strict-json.ts";

type Members = Readonly<Record<string, unknown>>;

/** The parts of a compact JWS. Nothing of it is verified. */
export type CompactJws = {
  /** The segment of the header. */
  readonly header: string;
  /** The segment of the payload, which may be empty. */
  readonly payload: string;
  /** What is signed. */
  readonly input: string;
  readonly signature: Uint8Array<ArrayBuffer>;
};

const SEGMENTS = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]*)\.([A-Za-z0-9_-]+)$/;

/** Header members that would change what is signed or how it is read (RFC 7515 section 4.1.11, RFC 7797). */
const REFUSED_MEMBERS = ["crit", "b64"] as const;

/** Returns the parts of a compact JWS; undefined for any other text, and for one that is longer than `maxLength` characters. */
export function readCompactJws(text: string, maxLength: number): CompactJws | undefined {
  const segments = text.length > maxLength ? null : SEGMENTS.exec(text);
  if (segments === null) return undefined;
  const [, header = "", payload = "", last = ""] = segments;
  const signature = decodeBytes(last);
  return signature && { header, payload, input: `${header}.${payload}`, signature };
}

/** Returns the members of the header; undefined unless it is an object in strict JSON, without members that are refused. */
export function readHeader({ header }: CompactJws): Members | undefined {
  const members = readSegment(header);
  return members && REFUSED_MEMBERS.some((name) => Object.hasOwn(members, name)) ? undefined : members;
}

/** Returns the members of the payload; undefined unless it is an object in strict JSON. */
export function readPayload({ payload }: CompactJws): Members | undefined {
  return readSegment(payload);
}

/** Returns the members of a segment; undefined unless it is canonical base64url of an object in strict JSON. */
export function readSegment(segment: string): Members | undefined {
  const text = decodeText(segment);
  return text === undefined ? undefined : parseObject(text);
}
