import { PROOF_ALGORITHMS } from "./proof-key.ts";

/** Returns the value of `WWW-Authenticate` for a request with the scheme DPoP, or one whose proof is refused (RFC 9449 section 7.1). */
export function dpopChallenge(error: "invalid_token" | "invalid_dpop_proof" | "use_dpop_nonce"): string {
  return `DPoP error="${error}", algs="${PROOF_ALGORITHMS.join(" ")}"`;
}
