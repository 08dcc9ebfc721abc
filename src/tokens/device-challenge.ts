import type { DeviceChallenges } from "../session/device-ports.ts";
import type { Entropy } from "./random.ts";
import type { MacKeys } from "./refresh-token.ts";
import { createSealed, sealedBodyLength } from "./sealed.ts";

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

/**
 * Creates and checks the nonces of DPoP proofs (RFC 9449 section 8). They work like challenges, but a nonce is never accepted as a
 * challenge, nor a challenge as a nonce.
 */
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
      // The time may be a little in the future, because the instance that created the challenge may have known the store's time less
      // exactly.
      return Math.abs(now - opened.issuedAtMs) < maxAgeMs ? FRESH : EXPIRED;
    },
  };
}
