/** Authenticated texts that the service issues for sessions: challenges, nonces of proofs, and device cookies. */
import { timingSafeEqual } from "node:crypto";
import type { DeviceChallenges, DeviceCookies } from "../session/devices/ports.ts";
import type { SessionId } from "../session/model.ts";
import { type StoreMs, storeMs } from "../session/time.ts";
import type { Entropy } from "./random.ts";
import { FORGED, MALFORMED, type Mac, type MacKey, type MacKeys, UNKNOWN_KEY } from "./refresh-token.ts";

// The layout: kind ‖ version ‖ key id ‖ session id ‖ issued at ‖ content ‖ HMAC-SHA-256 of everything before.
const VERSION = 1;
const VERSION_AT = 1;
const KEY_ID = 2;
const SID = 6;
const ISSUED_AT = 23;
const CONTENT = 29;
const MAC_LENGTH = 32;

/** A kind of authenticated text that the service issues for a session. Its byte and its key differ from those of every other kind. */
type SealedKind = {
  readonly kind: number;
  /** The length of the content, in bytes. The whole text, 61 bytes longer, must be a multiple of 3, so that base64url has no spare bits. */
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
function sealedBodyLength(contentLength: number): number {
  return CONTENT + contentLength;
}

/** Creates the two functions for one kind of text. Both use one scratch buffer, which is safe because they are synchronous. */
function createSealed(keys: MacKeys, { kind, contentLength, macOf }: SealedKind): Sealed {
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
      if (bytes.write(sid, SID, "base64url") !== ISSUED_AT - SID) {
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

const NONCE_LENGTH = 8;

const CHALLENGE = 0xc1;
const PROOF_NONCE = 0xc2;

/** How many bytes at the beginning of a challenge are authenticated. The MAC follows them. */
export const CHALLENGE_MAC_AT = sealedBodyLength(NONCE_LENGTH);

type DeviceChallengesDeps = {
  readonly keys: MacKeys;
  readonly maxAgeMs: number;
  readonly entropy: Entropy;
};

const OTHER_SESSION = { ok: false, reason: "other_session" } as const;
const EXPIRED = { ok: false, reason: "expired" } as const;
const FRESH = { ok: true } as const;

/** Creates and checks challenges without storing them: each contains its session and its time, authenticated. */
export function createDeviceChallenges(deps: DeviceChallengesDeps): DeviceChallenges {
  return createChallenges(CHALLENGE, deps);
}

/** Creates and checks nonces of DPoP proofs (RFC 9449 section 8). They work like challenges, but neither is accepted as the other. */
export function createProofNonces(deps: DeviceChallengesDeps): DeviceChallenges {
  return createChallenges(PROOF_NONCE, deps);
}

function createChallenges(kind: number, { keys, maxAgeMs, entropy }: DeviceChallengesDeps): DeviceChallenges {
  const sealed = createSealed(keys, { kind, contentLength: NONCE_LENGTH, macOf: (key) => key.challengeMac });
  return {
    issue: (sid, now) => sealed.seal(sid, now, Buffer.from(entropy.text(NONCE_LENGTH), "base64url")),

    check(challenge, sid, now) {
      const opened = sealed.open(challenge);
      if (!opened.ok) return opened;
      if (opened.sid !== sid) return OTHER_SESSION;
      // The time may be a little in the future: the instance that made the challenge may have known the store's time less exactly.
      return Math.abs(now - opened.issuedAtMs) < maxAgeMs ? FRESH : EXPIRED;
    },
  };
}

const THUMBPRINT_LENGTH = 32;

/** How many bytes at the beginning of a device cookie are authenticated. The MAC follows them. */
export const DEVICE_COOKIE_MAC_AT = sealedBodyLength(THUMBPRINT_LENGTH);

/** Creates and checks device cookies. A device cookie contains a MAC, so checking it needs no access to the store. */
export function createDeviceCookies(keys: MacKeys): DeviceCookies {
  const sealed = createSealed(keys, {
    kind: 0xc0,
    contentLength: THUMBPRINT_LENGTH,
    macOf: (key) => key.deviceCookieMac,
  });
  return {
    issue: (sid, thumbprint, now) => sealed.seal(sid, now, thumbprint),

    read(value) {
      const opened = sealed.open(value);
      if (!opened.ok) return opened;
      const { sid, issuedAtMs, content } = opened;
      return { ok: true, sid, thumbprint: content, issuedAtMs };
    },
  };
}
