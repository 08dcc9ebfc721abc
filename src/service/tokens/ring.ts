import type { webcrypto } from "node:crypto";
import {
  findKeyFault,
  type KeyFault,
  RSA_BITS,
  RSA_EXPONENT,
  readPublicMembers,
} from "../../platform/jws/public-key.ts";
import { isSigningAlg, SIGNING_ALGS, type SigningAlg } from "./jws.ts";
import { requireMembers } from "./members.ts";

/**
 * The state of a key. `published`: verifiers may load it, so that they know the key before its first token. `signing`: it signs; each
 * kind has exactly one such key. `retired`: it only verifies what it signed, and is then removed. `revoked`: it is compromised; only its
 * name stays, so that verifiers reject its tokens.
 */
const KEY_STATES = ["published", "signing", "retired", "revoked"] as const;
type KeyState = (typeof KEY_STATES)[number];

export type Jwk = webcrypto.JsonWebKey;

export type RingKey = {
  readonly kid: string;
  readonly alg: SigningAlg | "HS256";
  readonly state: KeyState;
  /** When the key came into this state, in ms since the epoch. */
  readonly since: number;
  /** The secret, as a private JWK. A revoked key has none. */
  readonly jwk?: Jwk;
};

/** The two kinds of keys: `signing` keys sign access tokens, `mac` keys authenticate refresh tokens. */
export const KEY_KINDS = ["signing", "mac"] as const;
export type KeyKind = (typeof KEY_KINDS)[number];

export type Ring = { readonly [kind in KeyKind]: readonly RingKey[] };

/** The key ring cannot be used. The message names the fault and never contains bytes of a key. */
export class KeyRingFault extends Error {
  override readonly name = "KeyRingFault";
  readonly absent: boolean;
  constructor(message: string, absent = false) {
    super(message);
    this.absent = absent;
  }
}

/**
 * The required members of a JWK by its algorithm (RFC 7517, 7518 §6, 8037 §2): those with a fixed value, those of 32 bytes, and numbers.
 */
const JWK_FORM = {
  ES256: { fixed: { kty: "EC", crv: "P-256" }, bytes: ["x", "y", "d"], numbers: [] },
  EdDSA: { fixed: { kty: "OKP", crv: "Ed25519" }, bytes: ["x", "d"], numbers: [] },
  RS256: { fixed: { kty: "RSA", e: RSA_EXPONENT }, bytes: [], numbers: ["n", "d", "p", "q", "dp", "dq", "qi"] },
  HS256: { fixed: { kty: "oct" }, bytes: ["k"], numbers: [] },
} as const;

const KID = { signing: /^[A-Za-z0-9_-]{1,64}$/, mac: /^[0-9a-f]{8}$/ };
const BYTES_32 = /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/;
/** Matches a number of at most 4,096 bits in base64url. */
const NUMBER = /^[A-Za-z0-9_-]{1,683}$/;

export function writeRing(ring: Ring): string {
  const out = (keys: readonly RingKey[]) => keys.map((key) => ({ ...key, since: new Date(key.since).toISOString() }));
  return `${JSON.stringify({ version: 1, signing: out(ring.signing), mac: out(ring.mac) }, null, 2)}\n`;
}

/** Parses a ring. No member may be missing or unknown. @throws KeyRingFault */
export function parseRing(text: string): Ring {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new KeyRingFault("not JSON"); // The parser's own message is left out, because it quotes the text.
  }
  const root = requireMembers(KeyRingFault, "the ring", value, ["version", "signing", "mac"]);
  if (root.version !== 1) throw new KeyRingFault("version: this service reads version 1");
  const ring = { signing: parseKeys("signing", root.signing), mac: parseKeys("mac", root.mac) };
  const kids = [...ring.signing, ...ring.mac].map((key) => key.kid);
  const twice = kids.find((kid, index) => kids.indexOf(kid) !== index);
  if (twice !== undefined) throw new KeyRingFault(`kid ${twice} is there twice`);
  return ring;
}

function parseKeys(kind: KeyKind, value: unknown): RingKey[] {
  if (!Array.isArray(value)) throw new KeyRingFault(`${kind}: not a list`);
  const keys = value.map((each, index) => parseKey(kind, `${kind}[${index}]`, each));
  const signing = keys.filter((key) => key.state === "signing").length;
  if (signing !== 1) throw new KeyRingFault(`${kind}: ${signing} keys are in state signing, it must be 1`);
  return keys;
}

function parseKey(kind: KeyKind, at: string, value: unknown): RingKey {
  const key = requireMembers(KeyRingFault, at, value, ["kid", "alg", "state", "since"], ["jwk"]);
  const { kid, alg, jwk } = key;
  const state = KEY_STATES.find((each) => each === key.state);
  const since = typeof key.since === "string" ? Date.parse(key.since) : Number.NaN;
  if (typeof kid !== "string" || !KID[kind].test(kid)) throw new KeyRingFault(`${at}.kid: must match ${KID[kind]}`);
  if (kind === "mac" ? alg !== "HS256" : !isSigningAlg(alg)) {
    throw new KeyRingFault(`${at}.alg: must be ${kind === "mac" ? "HS256" : `one of ${SIGNING_ALGS.join(", ")}`}`);
  }
  if (state === undefined) throw new KeyRingFault(`${at}.state: must be one of ${KEY_STATES.join(", ")}`);
  if (Number.isNaN(since)) throw new KeyRingFault(`${at}.since: not a time`);
  if ((state === "revoked") !== (jwk === undefined)) {
    throw new KeyRingFault(`${at}.jwk: ${state === "revoked" ? "a revoked key may not have one" : "missing"}`);
  }
  const named = { kid, alg: alg as RingKey["alg"], state, since };
  return jwk === undefined ? named : { ...named, jwk: parseJwk(`${at}.jwk`, named.alg, jwk) };
}

function parseJwk(at: string, alg: RingKey["alg"], value: unknown): Jwk {
  const { fixed, bytes, numbers } = JWK_FORM[alg];
  const jwk = requireMembers(KeyRingFault, at, value, [...Object.keys(fixed), ...bytes, ...numbers]);
  for (const [name, must] of Object.entries(fixed)) {
    if (jwk[name] !== must) throw new KeyRingFault(`${at}.${name}: must be ${must}`);
  }
  for (const name of bytes) {
    const text = jwk[name];
    if (typeof text !== "string" || !BYTES_32.test(text)) {
      throw new KeyRingFault(`${at}.${name}: not 32 bytes of base64url`);
    }
  }
  for (const name of numbers) {
    const text = jwk[name];
    if (typeof text !== "string" || !NUMBER.test(text))
      throw new KeyRingFault(`${at}.${name}: not a number in base64url`);
  }
  if (alg !== "HS256") requireStrong(at, alg, jwk);
  return jwk as Jwk;
}

function requireStrong(at: string, alg: SigningAlg, jwk: Record<string, unknown>): void {
  const read = readPublicMembers(alg, jwk);
  // The other members have been checked before, so only a modulus can be wrong.
  if (read === undefined) throw new KeyRingFault(`${at}.n: not a modulus of ${RSA_BITS.min} to ${RSA_BITS.max} bits`);
  const fault = findKeyFault(read);
  if (fault !== undefined) throw new KeyRingFault(`${at}: ${FAULTS[fault]}`);
}

const FAULTS: Record<KeyFault, string> = {
  off_curve: "not a point of its curve",
  small_order: "a point of small order",
};
