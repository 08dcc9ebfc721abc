/** The keys of the vectors. They are derived from fixed texts, so that they are the same in every run, and protect nothing. */
import { createECDH, createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import type { SigningAlg } from "../../src/service/tokens/jws.ts";
import { readyKeys } from "../../src/service/tokens/keys.ts";
import type { Jwk } from "../../src/service/tokens/ring.ts";
import { RSA_JWK } from "./rsa-key.ts";

export type VectorKey = {
  readonly kid: string;
  readonly alg: SigningAlg;
  readonly privateJwk: Jwk;
  readonly privateKey: KeyObject;
};

const derive = (text: string) => createHash("sha256").update(`a key of the vectors: ${text}`).digest();

export function createEcKey(kid: string): VectorKey {
  const pair = createECDH("prime256v1");
  const secret = derive(kid);
  pair.setPrivateKey(secret);
  const point = pair.getPublicKey();
  const [x, y, d] = [point.subarray(1, 33), point.subarray(33), secret].map((part) => part.toString("base64url"));
  const privateJwk = { kty: "EC", crv: "P-256", x, y, d } as Jwk;
  return { kid, alg: "ES256", privateJwk, privateKey: createPrivateKey({ key: privateJwk, format: "jwk" }) };
}

/** The first bytes of an Ed25519 key in PKCS #8 (RFC 8410 section 7), before the 32 bytes of the secret. */
const PKCS8_START = Buffer.from("302e020100300506032b657004220420", "hex");

export function createEdKey(kid: string): VectorKey {
  const der = Buffer.concat([PKCS8_START, derive(kid)]);
  const privateKey = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  return { kid, alg: "EdDSA", privateJwk: privateKey.export({ format: "jwk" }) as Jwk, privateKey };
}

/**
 * The key that signs by default. The other keys are its published successor, a key of another algorithm, and two keys outside the key set.
 */
export const MAIN = createEcKey("es256-signing");
export const NEXT = createEcKey("es256-next");
export const EDWARDS = createEdKey("eddsa");
export const UNPUBLISHED = createEcKey("es256-unpublished");
export const ATTACKER = createEcKey("es256-attacker");

/** A key of RSA. It is in the key sets of some cases only, because the key set of all cases stays the same in every version. */
export const RSA: VectorKey = {
  ...{ kid: "rs256", alg: "RS256", privateJwk: RSA_JWK },
  privateKey: createPrivateKey({ key: RSA_JWK, format: "jwk" }),
};

/** The key set, as the service publishes it. */
export const JWKS = readyKeys({
  signing: [MAIN, NEXT, EDWARDS].map(({ kid, alg, privateJwk }, index) => ({
    ...{ kid, alg, since: 0, jwk: privateJwk },
    state: index === 0 ? "signing" : "published",
  })),
  mac: [
    {
      kid: "00000001",
      alg: "HS256",
      state: "signing",
      since: 0,
      jwk: { kty: "oct", k: derive("mac").toString("hex") },
    },
  ],
}).jwks;

/** Returns the public part of a key in the form in which the service publishes it. */
export function publicJwk({ kid, alg, privateJwk }: VectorKey) {
  const { d, p, q, dp, dq, qi, ...members } = privateJwk;
  return { ...members, kid, alg, use: "sig" };
}

/** A key that signs a token or a proof. */
export type SigningKey = { readonly alg: string; readonly privateKey: KeyObject };
export type Sign = (input: string, key: SigningKey) => string;

/**
 * Returns a function that makes the signature segment for a signing input. ECDSA signatures are random. So that the generated file stays
 * the same, the function returns the signature that a known token or an earlier call already has for this input, if there is one.
 */
export function createSign(knownTokens: readonly string[]): Sign {
  const known = new Map<string, string[]>();
  for (const token of knownTokens) {
    const end = token.lastIndexOf(".");
    const input = token.slice(0, end);
    known.set(input, [...(known.get(input) ?? []), token.slice(end + 1)]);
  }
  return (input, { privateKey, alg }) => {
    if (alg === "RS256") return sign("sha256", Buffer.from(input), privateKey).toString("base64url"); // It is not random.
    const key = { key: privateKey, dsaEncoding: "ieee-p1363" } as const;
    const digest = alg.startsWith("Ed") ? null : "sha256";
    const isValid = (signature: string) => {
      const bytes = Buffer.from(signature, "base64url");
      const isCanonical = bytes.length === 64 && bytes.toString("base64url") === signature;
      return isCanonical && verify(digest, Buffer.from(input), { ...key, key: createPublicKey(privateKey) }, bytes);
    };
    const signatures = known.get(input) ?? [];
    const found = signatures.find(isValid);
    if (found !== undefined) return found;
    const made = sign(digest, Buffer.from(input), key).toString("base64url");
    known.set(input, [...signatures, made]);
    return made;
  };
}
