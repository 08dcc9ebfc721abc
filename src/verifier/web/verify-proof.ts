import {
  PROOF_FAULTS,
  type ProofExpectation,
  type ProofResult,
  readProof,
  refuseProof,
} from "../../platform/dpop/proof.ts";
import { type ProofKey, thumbprintInput } from "../../platform/dpop/proof-key.ts";
import { findKeyFault } from "../../platform/jws/public-key.ts";

const EC = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const RSA = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" } as const;
const ED = { name: "Ed25519" } as const;
const ALGORITHMS = { ES256: EC, RS256: RSA, EdDSA: ED, Ed25519: ED } as const;

const encoder = new TextEncoder();

/** Verifies a DPoP proof like `verifyProof` for Node (src/platform/dpop/verify-proof.ts), but with the WebCrypto of the runtime. */
export async function verifyProof(text: string, expected: ProofExpectation): Promise<ProofResult> {
  const read = readProof(text, expected);
  if (!read.ok) return read;
  const { key, jws, jti, ath } = read;
  const { accessToken } = expected;
  if (accessToken !== undefined && ath !== (await sha256(accessToken))) return refuseProof("proof_wrong_token");
  const fault = findKeyFault(key.members);
  if (fault !== undefined) return refuseProof(PROOF_FAULTS[fault]);
  const imported = await importProofKey(key);
  if (imported === undefined) return refuseProof("proof_bad_key");
  const input = encoder.encode(jws.input);
  const isAuthentic = await crypto.subtle.verify(ALGORITHMS[key.algorithm], imported, jws.signature, input);
  if (!isAuthentic) return refuseProof("proof_forged");
  const thumbprint = await sha256(thumbprintInput(key));
  return { ok: true, thumbprint, id: await sha256(`${thumbprint}.${jti}`) };
}

async function importProofKey({ algorithm, members }: ProofKey): Promise<CryptoKey | undefined> {
  try {
    return await crypto.subtle.importKey("jwk", { ...members }, ALGORITHMS[algorithm], false, ["verify"]);
  } catch {
    return undefined;
  }
}

async function sha256(text: string): Promise<string> {
  const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text)));
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
