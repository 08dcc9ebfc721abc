/** Makes proofs of possession in the form that browsers with Device Bound Session Credentials use. */
import type { KeyPair } from "./keys.ts";

const encode = (bytes: Uint8Array): string =>
  btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");

const segment = (value: unknown): string => encode(new TextEncoder().encode(JSON.stringify(value)));

/** @param registers whether the proof contains its public key */
export async function proofOf(
  { subtle }: Pick<Crypto, "subtle">,
  { privateKey, publicKey }: KeyPair,
  challenge: string,
  registers = false,
): Promise<string> {
  const header: Record<string, unknown> = { alg: "ES256", typ: "dbsc+jwt" };
  if (registers) {
    const { kty, crv, x, y } = await subtle.exportKey("jwk", publicKey);
    header.jwk = { kty, crv, x, y };
  }
  const input = `${segment(header)}.${segment({ jti: challenge })}`;
  const signature = await subtle.sign({ name: "ECDSA", hash: "SHA-256" }, privateKey, new TextEncoder().encode(input));
  return `${input}.${encode(new Uint8Array(signature))}`;
}
