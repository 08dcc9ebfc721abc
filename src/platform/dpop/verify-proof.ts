import { createPublicKey, hash, type KeyObject, verify } from "node:crypto";
import { RecentlyUsed } from "../caches/recently-used.ts";
import type { CompactJws } from "../jws/compact-jws.ts";
import { findKeyFault, type PublicMembers } from "../jws/public-key.ts";
import { PROOF_FAULTS, type ProofExpectation, type ProofResult, readProof, refuseProof } from "./proof.ts";
import { type ProofAlgorithm, type ProofKey, thumbprintInput } from "./proof-key.ts";

const DIGESTS = { ES256: "sha256", RS256: "sha256", EdDSA: null, Ed25519: null } as const satisfies Record<
  ProofAlgorithm,
  string | null
>;

/** A key whose possession was proven. Reading and importing it again would take a third of the time of a signature check. */
type KnownKey = { readonly key: ProofKey; readonly object: KeyObject; readonly thumbprint: string };

/** The known keys by the header of their proofs, which is the same in all proofs of a client. An entry takes about 4 kB. */
const known = new RecentlyUsed<KnownKey>(4096);
/** A longer header is not remembered. The header with an RSA key of 4,096 bits is shorter. */
const MAX_HEADER_LENGTH = 1024;

/** What is signed, and the signature, as r ‖ s under ES256 (RFC 7518 section 3.4). */
export type Signed = Pick<CompactJws, "input" | "signature">;

/** Verifies a DPoP proof within one turn of the event loop. The caller must check whether the proof is presented for the first time. */
export function verifyProof(text: string, expected: ProofExpectation): ProofResult {
  let recent: KnownKey | undefined;
  const read = readProof(text, expected, (header) => {
    recent = known.get(header);
    return recent?.key;
  });
  if (!read.ok) return read;
  const { key, jws, jti, ath } = read;
  const { accessToken } = expected;
  if (accessToken !== undefined && ath !== sha256(accessToken)) return refuseProof("proof_wrong_token");
  const fault = recent === undefined ? findKeyFault(key.members) : undefined;
  if (fault !== undefined) return refuseProof(PROOF_FAULTS[fault]);
  const object = recent?.object ?? importPublicKey(key.members);
  if (object === undefined) return refuseProof("proof_bad_key");
  if (!isSignedBy(object, key.algorithm, jws)) return refuseProof("proof_forged");
  const thumbprint = recent?.thumbprint ?? sha256(thumbprintInput(key));
  if (recent === undefined && jws.header.length <= MAX_HEADER_LENGTH) {
    known.set(jws.header, { key, object, thumbprint });
  }
  return { ok: true, thumbprint, id: sha256(`${thumbprint}.${jti}`) };
}

/** Imports the members of a public JWK. Returns undefined if they are not a valid key. */
export function importPublicKey(members: PublicMembers): KeyObject | undefined {
  try {
    return createPublicKey({ key: { ...members }, format: "jwk" });
  } catch {
    return undefined;
  }
}

export function isSignedBy(key: KeyObject, algorithm: ProofAlgorithm, { input, signature }: Signed): boolean {
  return verify(DIGESTS[algorithm], Buffer.from(input, "latin1"), { key, dsaEncoding: "ieee-p1363" }, signature);
}

function sha256(text: string): string {
  return hash("sha256", text, "base64url");
}
