/**
 * The RSA keys of SIGNALS_RSA_KEY_FILE, which sign security event tokens with RS256 (RFC 7518 section 3.3). If the file changes while the
 * service runs, the new keys are used.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import type { Followed } from "../../platform/files/follow.ts";
import { loadProtected } from "../../platform/files/protected-file.ts";
import { RSA_BITS, readPublicMembers } from "../../platform/jws/public-key.ts";
import { thumbprint } from "./generate-key.ts";
import type { PublicJwk } from "./keys.ts";
import type { Jwk } from "./ring.ts";
import { signingInput } from "./signed-claims.ts";

/** How many keys a file may have: the one that signs, its successor, its predecessor, and one more. */
const MAX_KEYS = 4;
/** The tokens that these keys sign. They sign no access tokens. */
const TOKEN_TYPES = ["secevent+jwt", "logout+jwt"] as const;
const PEM_BLOCK = /-----BEGIN ([A-Z ]*)PRIVATE KEY-----[^-]+-----END \1PRIVATE KEY-----/g;

export type EventKeys = {
  /** The public parts of all keys of the file, with which receivers verify signatures. */
  readonly jwks: readonly PublicJwk[];
  /** Signs with the first key. It runs outside of the event loop's thread, because a signature takes some 0.4 ms. */
  readonly sign: (typ: string, claims: Readonly<Record<string, unknown>>) => Promise<string>;
};

/** The file cannot be used. The message never quotes its contents. */
export class EventKeysFault extends Error {
  override readonly name = "EventKeysFault";
}

/** Imports the private keys of a PEM file. @throws EventKeysFault */
export function parseEventKeys(pem: string): EventKeys {
  const keys = [...pem.matchAll(PEM_BLOCK)].map(([block]) => importKey(block));
  const [first] = keys;
  if (first === undefined) throw new EventKeysFault("holds no private key in PEM");
  if (keys.length > MAX_KEYS) throw new EventKeysFault(`holds more than ${MAX_KEYS} keys`);
  const kids = new Set(keys.map(({ jwk }) => jwk.kid));
  if (kids.size < keys.length) throw new EventKeysFault("holds a key twice");
  return {
    jwks: keys.map(({ jwk }) => jwk),
    async sign(typ, claims) {
      const input = signingInput({ typ, alg: "RS256", kid: first.jwk.kid }, claims);
      const signature = await signInBackground("sha256", Buffer.from(input), first.key);
      return `${input}.${signature.toString("base64url")}`;
    },
  };
}

/** `sign` uses the padding of PKCS #1 v1.5, as RS256 requires. */
const signInBackground = promisify<string, Buffer, KeyObject, Buffer>(sign);

function importKey(pem: string): { readonly key: KeyObject; readonly jwk: PublicJwk } {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    throw new EventKeysFault("holds a private key that cannot be read");
  }
  const jwk: Jwk = key.asymmetricKeyType === "rsa" ? createPublicKey(key).export({ format: "jwk" }) : {};
  if (readPublicMembers("RS256", { ...jwk }) === undefined) {
    throw new EventKeysFault(
      `holds a key that is not RSA of ${RSA_BITS.min} to ${RSA_BITS.max} bits with the exponent 65537`,
    );
  }
  return { key, jwk: { ...jwk, kid: thumbprint(jwk), alg: "RS256", use: "sig", token_types: TOKEN_TYPES } };
}

export type EventKeyFile = Followed<EventKeys, EventKeysFault>;

/** Reads the file. An operator who is root may read the file of the service's user. @throws EventKeysFault */
export function loadEventKeys(path: string, reader: "service" | "operator" = "service"): Promise<EventKeyFile> {
  const protection = { forbids: "read", mode: 0o600, rootUsesAny: reader === "operator" } as const;
  return loadProtected({ path, protection, parse: parseEventKeys, Fault: EventKeysFault });
}
