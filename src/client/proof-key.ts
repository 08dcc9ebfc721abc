/** The key that a client proves with each request (DPoP, RFC 9449): a P-256 key of WebCrypto, or one that cannot leave its keychain. */

/** A key in the form in which a store keeps it: a private JWK (RFC 7517). */
export type StoredKey = {
  readonly kty: "EC";
  readonly crv: "P-256";
  readonly x: string;
  readonly y: string;
  readonly d: string;
};

type PublicKey = Omit<StoredKey, "d">;

/** Signs with a P-256 key. Implement it for a key that stays in a keychain or a security chip. */
export interface ProofKey {
  /** The public JWK. It must have no members except those of this type. */
  readonly publicKey: PublicKey;
  /** Returns the ES256 signature of the bytes: 64 bytes, r ‖ s (RFC 7518 section 3.4). */
  sign(input: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>>;
}

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING = { name: "ECDSA", hash: "SHA-256" } as const;

const encoder = new TextEncoder();

/** Creates a key. `start` of a session stores it together with the refresh token. */
export async function generateProofKey(): Promise<StoredKey> {
  const { privateKey } = await crypto.subtle.generateKey(ALGORITHM, true, ["sign"]);
  const { x = "", y = "", d = "" } = await crypto.subtle.exportKey("jwk", privateKey);
  return { kty: "EC", crv: "P-256", x, y, d };
}

/** Returns the thumbprint (RFC 7638) with which a login binds the new session to a key: `dpop_jkt` of CreateSession. */
export async function proofKeyThumbprint({ crv, kty, x, y }: PublicKey): Promise<string> {
  return sha256(JSON.stringify({ crv, kty, x, y }));
}

export async function importProofKey({ kty, crv, x, y, d }: StoredKey): Promise<ProofKey> {
  const key = await crypto.subtle.importKey("jwk", { kty, crv, x, y, d }, ALGORITHM, false, ["sign"]);
  return {
    publicKey: { kty, crv, x, y },
    sign: async (input) => new Uint8Array(await crypto.subtle.sign(SIGNING, key, input)),
  };
}

/** Returns the hash of a text, base64url. */
export async function sha256(text: string): Promise<string> {
  return base64url(new Uint8Array(await crypto.subtle.digest("SHA-256", encoder.encode(text))));
}

export function base64url(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}
