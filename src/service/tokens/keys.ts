import { createPrivateKey, createPublicKey, hkdfSync } from "node:crypto";
import { isSignedBy } from "../../platform/dpop/verify-proof.ts";
import type { SigningKey, SigningKeys } from "./access-token.ts";
import { createSigner, headerSegment, type SignatureCheck } from "./jws.ts";
import { createMac, MAC_AT, type MacKey, type MacKeys } from "./refresh-token.ts";
import { type Jwk, KEY_KINDS, type KeyKind, KeyRingFault, type Ring, type RingKey } from "./ring.ts";
import { CHALLENGE_MAC_AT, DEVICE_COOKIE_MAC_AT } from "./sealed.ts";

/** The public keys that verify the access tokens of this service (RFC 7517 §5). */
type Jwks = { readonly keys: readonly PublicJwk[] };
export type PublicJwk = Jwk & {
  readonly kid: string;
  readonly alg: string;
  readonly use: "sig";
  /** The media types of the tokens that the key signs, where these are not all. The verifiers of this project refuse others. */
  readonly token_types?: readonly string[];
};

type KeySummary = Omit<RingKey, "jwk"> & { readonly kind: KeyKind };

/** A ring whose keys have been imported. It is immutable. */
export type Keys = SigningKeys["current"] &
  MacKeys["current"] & {
    readonly jwks: Jwks;
    /** The state of each key, without its secret. */
    readonly states: readonly KeySummary[];
    /** The ids of signing keys that were revoked in an emergency. No verifier may accept their tokens. */
    readonly revokedKids: readonly string[];
  };

/** Imports the keys of a ring. @throws KeyRingFault if a key does not work */
export function readyKeys(ring: Ring): Keys {
  const live = ring.signing.flatMap((key) => (key.jwk === undefined ? [] : [readySigningKey(key, key.jwk)]));
  const macs = ring.mac.flatMap((key) => (key.jwk === undefined ? [] : [readyMacKey(key, key.jwk)]));
  const [signing] = live.filter((key) => key.state === "signing");
  const [mac] = macs.filter((key) => key.state === "signing");
  if (signing === undefined || mac === undefined) throw new KeyRingFault("no key in state signing");
  return Object.freeze({
    signing,
    checks: new Map(live.map((key): [string, SignatureCheck] => [key.header, key.check])),
    mac,
    macs: new Map(macs.map((key): [number, MacKey] => [key.id, key])),
    jwks: { keys: live.map((key) => key.public) },
    states: KEY_KINDS.flatMap((kind) =>
      ring[kind].map(({ kid, alg, state, since }): KeySummary => ({ kind, kid, alg, state, since })),
    ),
    revokedKids: ring.signing.filter((key) => key.state === "revoked").map((key) => key.kid),
  });
}

type ReadySigningKey = SigningKey &
  Pick<RingKey, "state"> & { readonly check: SignatureCheck; readonly public: PublicJwk };

function readySigningKey({ kid, alg, state }: RingKey, jwk: Jwk): ReadySigningKey {
  if (alg === "HS256") throw new KeyRingFault(`key ${kid} cannot sign`);
  const shared = publicMembersOf(jwk);
  try {
    const sign = createSigner(alg, createPrivateKey({ key: jwk, format: "jwk" }));
    const publicKey = createPublicKey({ key: shared, format: "jwk" });
    const check: SignatureCheck = (signed) => isSignedBy(publicKey, alg, signed);
    if (!check({ input: "probe", signature: Buffer.from(sign("probe"), "base64url") }))
      throw new Error("its halves are not of one pair");
    return { kid, header: headerSegment(alg, kid), sign, check, state, public: { ...shared, kid, alg, use: "sig" } };
  } catch {
    throw new KeyRingFault(`signing key ${kid}: not a working pair of keys for ${alg}`);
  }
}

/** The members of public keys (RFC 7518 section 6, RFC 8037 section 2). All other members of a ring's keys are secret. */
const PUBLIC_MEMBERS: ReadonlySet<string> = new Set(["crv", "e", "kty", "n", "x", "y"]);

function publicMembersOf(jwk: Jwk): Jwk {
  return Object.fromEntries(Object.entries(jwk).filter(([name]) => PUBLIC_MEMBERS.has(name)));
}

function readyMacKey({ kid, state }: RingKey, jwk: Jwk): MacKey & Pick<RingKey, "state"> {
  const secret = Buffer.from(jwk.k ?? "", "base64url");
  return {
    id: Number.parseInt(kid, 16),
    mac: createMac(secret, MAC_AT),
    deviceCookieMac: createMac(derivedKey(secret, "device cookie"), DEVICE_COOKIE_MAC_AT),
    challengeMac: createMac(derivedKey(secret, "device challenge"), CHALLENGE_MAC_AT),
    sealingKey: derivedKey(secret, "secret of a receiver"),
    state,
  };
}

/** Derives a key for one purpose from the secret of a MAC key (HKDF, RFC 5869). */
function derivedKey(secret: Uint8Array, purpose: string): Uint8Array {
  return new Uint8Array(hkdfSync("sha256", secret, "", purpose, 32));
}
