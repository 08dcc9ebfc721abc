import type { StoreMs } from "../time.ts";

export type DeviceKey = {
  readonly algorithm: "ES256" | "RS256";
  /** The key as a session stores it: x ‖ y of a P-256 point (64 bytes), or the DER SPKI of an RSA key (more than 64). */
  readonly bytes: Uint8Array;
  /** The SHA-256 thumbprint of RFC 7638, 32 bytes. */
  readonly thumbprint: Uint8Array;
};

/** A key that the client proves with each request (DPoP, RFC 9449). Each proof contains the key, so only its thumbprint is stored. */
type ProofKey = { readonly algorithm: "DPoP"; readonly thumbprint: Uint8Array };

/** A proof of possession that came with a request and has been verified. */
export type KeyProof = {
  /** The SHA-256 thumbprint of the proof's key (RFC 7638), base64url. */
  readonly thumbprint: string;
};

/**
 * The key of a session: the key of a device, or a key that the session's client proves with each request (DPoP).
 *
 * A device key is `registered` until its first use, because the response to the registration may be lost. The browser would then not know
 * that it must use the key. It is `bound` from the first refresh that presents a device cookie of the key. A DPoP key is always bound.
 */
export type DeviceBinding = DeviceKeyBinding | ProofKeyBinding;

export type DeviceKeyBinding = {
  readonly key: DeviceKey;
  readonly state: "registered" | "bound";
  /** When the key was registered or first used. */
  readonly since: StoreMs;
};

type ProofKeyBinding = {
  readonly key: ProofKey;
  readonly state: "bound";
  /** When the key was bound. Tokens that were issued earlier may be held by somebody without the key. */
  readonly since: StoreMs;
};

export function isProofKey(binding: DeviceBinding): binding is ProofKeyBinding {
  return binding.key.algorithm === "DPoP";
}

/** Returns the thumbprint of the key that a token is bound to (RFC 9449 section 6.1); undefined for a bearer token. */
export function boundKeyOf({ cnf }: Readonly<Record<string, unknown>>): unknown {
  const { jkt } = { jkt: undefined, ...(cnf as object | undefined) };
  return jkt;
}

export function thumbprintOf({ key }: { readonly key: { readonly thumbprint: Uint8Array } }): string {
  return Buffer.from(key.thumbprint).toString("base64url");
}

/** Returns the bytes of a thumbprint that is written as base64url. */
export function thumbprintBytes(text: string): Uint8Array {
  return Uint8Array.from(Buffer.from(text, "base64url"));
}
