/** The RSA keys of SIGNALS_RSA_KEY_FILE, which sign security event tokens by RS256 (RFC 7518 section 3.3). */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { thumbprint } from "./generate-key.ts";
import type { PublicJwk } from "./keys.ts";
import type { Jwk } from "./ring.ts";
import { signingInput } from "./signed-claims.ts";

/** 2048 is what the CAEP interoperability profile requires; a larger key than 4096 costs too much. */
const RSA_BITS = { min: 2048, max: 4096 } as const;
/** One that signs, its successor and its predecessor, and one to spare. */
const MAX_KEYS = 4;
const PEM_BLOCK = /-----BEGIN ([A-Z ]*)PRIVATE KEY-----[^-]+-----END \1PRIVATE KEY-----/g;

export type EventKeys = {
  /** All keys of the file, for receivers to verify with. */
  readonly jwks: readonly PublicJwk[];
  /** Signs by the first key, outside of the event loop's thread: a signature takes some 0.4 ms of a processor. */
  readonly sign: (typ: string, claims: Readonly<Record<string, unknown>>) => Promise<string>;
};

/** The file cannot be used. The message never quotes it. */
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

/** `sign` pads by PKCS #1 v1.5, as RS256 does. */
const signInBackground = promisify<string, Buffer, KeyObject, Buffer>(sign);

function importKey(pem: string): { readonly key: KeyObject; readonly jwk: PublicJwk } {
  let key: KeyObject;
  try {
    key = createPrivateKey(pem);
  } catch {
    throw new EventKeysFault("holds a private key that cannot be read");
  }
  const bits = key.asymmetricKeyDetails?.modulusLength ?? 0;
  if (key.asymmetricKeyType !== "rsa" || bits < RSA_BITS.min || bits > RSA_BITS.max) {
    throw new EventKeysFault(`holds a key that is not RSA of ${RSA_BITS.min} to ${RSA_BITS.max} bits`);
  }
  const jwk: Jwk = createPublicKey(key).export({ format: "jwk" });
  return { key, jwk: { ...jwk, kid: thumbprint(jwk), alg: "RS256", use: "sig" } };
}
