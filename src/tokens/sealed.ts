import { timingSafeEqual } from "node:crypto";
import type { SessionId } from "../session/model.ts";
import { type StoreMs, storeMs } from "../session/time.ts";
import type { Mac } from "./hmac.ts";
import { FORGED, MALFORMED, type MacKey, type MacKeys, UNKNOWN_KEY } from "./refresh-token.ts";

// The layout: kind ‖ version ‖ key id ‖ session id ‖ issued at ‖ content ‖ HMAC-SHA-256 of everything before.
const VERSION = 1;
const VERSION_AT = 1;
const KEY_ID = 2;
const SID = 6;
const ISSUED_AT = 23;
const CONTENT = 29;
const MAC_LENGTH = 32;

/**
 * Describes a kind of authenticated text that the service issues for a session and verifies later. Each kind has its own `kind` byte and
 * its own key, so that a text of one kind is never accepted as another.
 */
type SealedKind = {
  readonly kind: number;
  /**
   * How many bytes the content has. The text has 61 other bytes. The sum must be a multiple of 3, so that the encoding has no spare bits.
   */
  readonly contentLength: number;
  /** Creates the MAC of this kind from a key of the ring. */
  readonly macOf: (key: MacKey) => Mac;
};

type Opened =
  | { readonly ok: true; readonly sid: SessionId; readonly issuedAtMs: StoreMs; readonly content: Uint8Array }
  | { readonly ok: false; readonly reason: "malformed" | "unknown_key" | "forged" };

interface Sealed {
  seal(sid: SessionId, issuedAtMs: StoreMs, content: Uint8Array): string;
  /** Parses and verifies a text. The content is a copy. */
  open(text: string): Opened;
}

/** Returns how many of the first bytes of a sealed text are authenticated. */
export function sealedBodyLength(contentLength: number): number {
  return CONTENT + contentLength;
}

/** Creates the two functions for one kind of text. Both use one scratch buffer, which is safe because they are synchronous. */
export function createSealed(keys: MacKeys, { kind, contentLength, macOf }: SealedKind): Sealed {
  const macAt = sealedBodyLength(contentLength);
  const length = macAt + MAC_LENGTH;
  if (length % 3 !== 0) throw new RangeError("its encoding would have spare bits");
  const bytes = Buffer.alloc(length);
  const body = bytes.subarray(0, macAt);
  const presented = bytes.subarray(macAt);
  const expected = Buffer.alloc(MAC_LENGTH);
  const shape = new RegExp(`^[A-Za-z0-9_-]{${(length / 3) * 4}}$`);

  return {
    seal(sid, issuedAtMs, content) {
      if (content.length !== contentLength) throw new RangeError(`the content must have ${contentLength} bytes`);
      const key = keys.current.mac;
      bytes[0] = kind;
      bytes[VERSION_AT] = VERSION;
      bytes.writeUInt32BE(key.id, KEY_ID);
      if (bytes.write(sid, SID, ISSUED_AT - SID, "base64url") !== ISSUED_AT - SID) {
        throw new RangeError("a session id of the wrong length");
      }
      bytes.writeUIntBE(issuedAtMs, ISSUED_AT, CONTENT - ISSUED_AT);
      bytes.set(content, CONTENT);
      bytes.write(macOf(key)(body), macAt, "latin1");
      return bytes.toString("base64url");
    },

    open(text) {
      if (!shape.test(text)) return MALFORMED;
      bytes.write(text, "base64url");
      if (bytes[0] !== kind || bytes[VERSION_AT] !== VERSION) return MALFORMED;
      const key = keys.current.macs.get(bytes.readUInt32BE(KEY_ID));
      if (key === undefined) return UNKNOWN_KEY;
      expected.write(macOf(key)(body), 0, "latin1");
      if (!timingSafeEqual(expected, presented)) return FORGED;
      return {
        ok: true,
        sid: bytes.toString("base64url", SID, ISSUED_AT) as SessionId, // The encoding of these 17 bytes is canonical.
        issuedAtMs: storeMs(bytes.readUIntBE(ISSUED_AT, CONTENT - ISSUED_AT)),
        content: new Uint8Array(bytes.subarray(CONTENT, macAt)),
      };
    },
  };
}
