import { verify } from "node:crypto";
import { importPublicKey } from "./dpop/verify-proof.ts";
import { type Algorithm, type PublishedKey, readJwk } from "./jwk.ts";

const DIGESTS = { ES256: "sha256", EdDSA: null } as const satisfies Record<Algorithm, string | null>;

/** A key with which Node verifies within one turn of the event loop. */
export type Key = Omit<PublishedKey, "verifies"> & {
  readonly verifies: (input: Uint8Array, signature: Uint8Array) => boolean;
};

/** Imports a JWK (RFC 7517). Returns undefined if its use, type or curve is not that of a key for access tokens. */
export function importKey(jwk: unknown): Key | undefined {
  const read = readJwk(jwk);
  const key = read && importPublicKey(read.members);
  if (read === undefined || key === undefined) return undefined;
  const { kid, alg, members } = read;
  const options = { key, dsaEncoding: "ieee-p1363" } as const; // The signature is r ‖ s (RFC 7518 section 3.4).
  const digest = DIGESTS[alg];
  const verifies: Key["verifies"] = (input, signature) => verify(digest, input, options, signature);
  return { kid, alg, material: JSON.stringify(members), withdrawn: false, verifies };
}
