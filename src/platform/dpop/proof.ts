/** The rules of a DPoP proof (RFC 9449 section 4.3), except its signature and its hashes, which each runtime checks itself. */

import { type CompactJws, readCompactJws, readHeader, readPayload } from "../jws/compact-jws.ts";
import type { KeyFault } from "../jws/public-key.ts";
import { PROOF_ALGORITHMS, type ProofAlgorithm, type ProofKey, readProofKey } from "./proof-key.ts";
import { proofUrl } from "./proof-url.ts";

/**
 * Why a proof is refused, as a closed list.
 *
 * - `proof_absent`: a bound token came without a proof. `proof_ambiguous`: there is more than one proof.
 * - `proof_malformed`: it is not a JWS of the required form, is too long, has members that are refused, or lacks a required claim.
 * - `proof_wrong_type`, `proof_wrong_algorithm`: its `typ` or `alg` is not allowed.
 * - `proof_bad_key`: its key is private, of a size that is not accepted, or not on its curve.
 * - `proof_wrong_method`, `proof_wrong_url`, `proof_wrong_token`: it was made for another request, or for another access token.
 * - `proof_stale`: it was made too long ago, or in the future. `proof_nonce`: it has no fresh nonce of the service.
 * - `proof_forged`: the signature was not made with its key. `proof_replayed`: it was presented before.
 * - `proof_other_key`: the token is bound to another key.
 */
export const PROOF_REFUSALS = [
  "proof_absent",
  "proof_ambiguous",
  "proof_malformed",
  "proof_wrong_type",
  "proof_wrong_algorithm",
  "proof_bad_key",
  "proof_wrong_method",
  "proof_wrong_url",
  "proof_wrong_token",
  "proof_stale",
  "proof_nonce",
  "proof_forged",
  "proof_replayed",
  "proof_other_key",
] as const;
export type ProofRefusal = (typeof PROOF_REFUSALS)[number];
/** Why a proof under a key with a fault is refused. For a point of small order anybody can sign, so that no signature proves anything. */
export const PROOF_FAULTS = {
  off_curve: "proof_bad_key",
  small_order: "proof_forged",
} as const satisfies Record<KeyFault, ProofRefusal>;
export type ProofRefused = { readonly ok: false; readonly reason: ProofRefusal };

export type ProofExpectation = {
  readonly method: string;
  /** The URLs to which the request may have been sent, as `proofUrl` returns them. */
  readonly urls: readonly string[];
  /** The wall clock, in ms since the epoch. */
  readonly nowMs: number;
  readonly accessToken?: string | undefined;
  /** Returns whether the service has issued this nonce recently. Absent if the service issues none; nonces in proofs are then ignored. */
  readonly isFreshNonce?: (nonce: string) => boolean;
  readonly requiresNonce?: boolean;
};

/** A proof whose signature and hashes have not been checked yet. */
type ReadProof = {
  readonly ok: true;
  readonly key: ProofKey;
  /** It contains the key in its header. */
  readonly jws: CompactJws;
  readonly jti: string;
  readonly ath: string | undefined;
};

export type ProofResult =
  | {
      readonly ok: true;
      /** The SHA-256 thumbprint of the key (RFC 7638), base64url. */
      readonly thumbprint: string;
      /** Identifies the proof: the hash of the thumbprint and of `jti`. */
      readonly id: string;
    }
  | ProofRefused;

/** How far `iat` may be from the time of the service, in ms. */
export const PROOF_TOLERANCE_MS = 60_000;

/** How long a used proof must be remembered so that it is not accepted again, in ms. No nonce is valid for longer. */
export const PROOF_LIFE_MS = 2 * PROOF_TOLERANCE_MS;

/** A longer text is not a proof: even with an RSA key of 4,096 bits and a URL of 2,000 characters, a proof is shorter. */
const MAX_LENGTH = 8192;
const MAX_JTI_LENGTH = 256;
const TYPE = "dpop+jwt";

const isAlgorithm = (value: unknown): value is ProofAlgorithm =>
  (PROOF_ALGORITHMS as readonly unknown[]).includes(value);

/**
 * Reads a proof.
 * @param text the value of the `DPoP` header; several headers are joined with commas
 * @param knownKey returns the key of a header segment that was read earlier
 */
export function readProof(
  text: string,
  expected: ProofExpectation,
  knownKey: (header: string) => ProofKey | undefined = () => undefined,
): ReadProof | ProofRefused {
  if (text.includes(",")) return refuseProof("proof_ambiguous");
  const jws = readCompactJws(text, MAX_LENGTH);
  if (jws === undefined || jws.payload === "") return refuseProof("proof_malformed");
  const key = knownKey(jws.header) ?? readKey(jws);
  if (typeof key === "string") return refuseProof(key);
  const claims = readPayload(jws);
  if (claims === undefined) return refuseProof("proof_malformed");
  const { jti, ath } = claims;
  if (typeof jti !== "string" || jti === "" || jti.length > MAX_JTI_LENGTH) return refuseProof("proof_malformed");
  if (ath !== undefined && typeof ath !== "string") return refuseProof("proof_malformed");
  const fault = findFault(claims, expected);
  if (fault !== undefined) return refuseProof(fault);
  return { ok: true, key, jws, jti, ath };
}

function readKey(jws: CompactJws): ProofKey | ProofRefusal {
  const header = readHeader(jws);
  if (header === undefined) return "proof_malformed";
  const { typ, alg, jwk } = header;
  if (typ !== TYPE) return "proof_wrong_type";
  if (!isAlgorithm(alg)) return "proof_wrong_algorithm";
  return readProofKey(alg, jwk) ?? "proof_bad_key";
}

function findFault(
  { htm, htu, iat, nonce }: Readonly<Record<string, unknown>>,
  { method, urls, nowMs, isFreshNonce, requiresNonce = false }: ProofExpectation,
): ProofRefusal | undefined {
  if (typeof htm !== "string" || typeof htu !== "string" || !Number.isFinite(iat)) return "proof_malformed";
  if (nonce !== undefined && typeof nonce !== "string") return "proof_malformed";
  if (htm !== method) return "proof_wrong_method";
  // The URL is first compared without normalization, because nearly every client writes it in its normal form.
  if (!urls.includes(htu) && !urls.includes(proofUrl(htu) ?? "")) return "proof_wrong_url";
  // A nonce contains the service's own time, so that a client whose clock is wrong can still prove its key (section 4.3, item 11).
  if (nonce !== undefined && isFreshNonce !== undefined) return isFreshNonce(nonce) ? undefined : "proof_nonce";
  if (requiresNonce) return "proof_nonce";
  return Math.abs(nowMs - (iat as number) * 1000) > PROOF_TOLERANCE_MS ? "proof_stale" : undefined;
}

export function refuseProof(reason: ProofRefusal): ProofRefused {
  return { ok: false, reason };
}

/** Returns the value of `WWW-Authenticate` for a request with the scheme DPoP, or one whose proof is refused (RFC 9449 section 7.1). */
export function dpopChallenge(error: "invalid_token" | "invalid_dpop_proof" | "use_dpop_nonce"): string {
  return `DPoP error="${error}", algs="${PROOF_ALGORITHMS.join(" ")}"`;
}
