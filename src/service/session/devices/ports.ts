/** The interfaces that device binding needs: proofs of possession, challenges and device cookies. Their implementations do no I/O. */

import type { SessionId } from "../model.ts";
import type { StoreMs } from "../time.ts";
import type { DeviceKey } from "./key.ts";

/** The key that a proof must be made with. At registration it is the key that the proof contains, at renewal the session's key. */
export type DeviceProofExpectation =
  | { readonly kind: "registration" }
  | { readonly kind: "renewal"; readonly key: DeviceKey };

/**
 * Why a proof of possession is refused.
 *
 * - `malformed`: the proof is not a JWS of the required form, is too long, or has members that are refused.
 * - `wrong_type`, `wrong_algorithm`: the `typ` or `alg` of the proof is not allowed here.
 * - `bad_key`: a registration lacks the key, or its key is not on the curve or of a size that is not accepted.
 * - `other_key`: a renewal names another key than the session's.
 * - `forged`: the signature was not made with the key.
 */
export type DeviceProofRefusal = "malformed" | "wrong_type" | "wrong_algorithm" | "bad_key" | "other_key" | "forged";

/** Why the proof of a request is refused (RFC 9449 section 4.3); platform/dpop/proof.ts explains them. */
export type KeyProofRefusal =
  | "proof_absent"
  | "proof_ambiguous"
  | "proof_malformed"
  | "proof_wrong_type"
  | "proof_wrong_algorithm"
  | "proof_bad_key"
  | "proof_wrong_method"
  | "proof_wrong_url"
  | "proof_wrong_token"
  | "proof_forged"
  | "proof_replayed"
  | "proof_other_key";

export type DeviceProofResult =
  | {
      readonly ok: true;
      readonly key: DeviceKey;
      /** The challenge of the proof, which the caller must check. */
      readonly challenge: string;
    }
  | { readonly ok: false; readonly reason: DeviceProofRefusal };

/** `expired` also means that the challenge is from the future by more than the maximum age. */
export type DeviceChallengeCheck =
  | { readonly ok: true }
  | { readonly ok: false; readonly reason: "malformed" | "unknown_key" | "forged" | "other_session" | "expired" };

export interface DeviceChallenges {
  /** Returns a new challenge for a session, 92 characters of base64url. */
  issue(sid: SessionId, now: StoreMs): string;
  check(challenge: string, sid: SessionId, now: StoreMs): DeviceChallengeCheck;
}

type DeviceCookieResult =
  | {
      readonly ok: true;
      readonly sid: SessionId;
      /** The thumbprint of the key that the cookie was issued for, 32 bytes. */
      readonly thumbprint: Uint8Array;
      /** When the cookie was issued. A stale cookie still shows that the request came from the browser profile that was bound. */
      readonly issuedAtMs: StoreMs;
    }
  | { readonly ok: false; readonly reason: "malformed" | "unknown_key" | "forged" };

export interface DeviceCookies {
  /** Returns a new cookie value, 124 characters of base64url. */
  issue(sid: SessionId, thumbprint: Uint8Array, now: StoreMs): string;
  read(value: string): DeviceCookieResult;
}
