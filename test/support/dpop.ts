/** The key of a client and its DPoP proofs, and the forgeries that an attacker may make. */
import { generateKeyPairSync, hash, type KeyObject, randomUUID, sign } from "node:crypto";

type Alg = "ES256" | "RS256" | "EdDSA" | "Ed25519";
export type ClientKey = {
  readonly alg: Alg;
  readonly privateKey: KeyObject;
  readonly jwk: Readonly<Record<string, unknown>>;
  readonly thumbprint: string;
};

const MEMBERS = { EC: ["crv", "kty", "x", "y"], RSA: ["e", "kty", "n"], OKP: ["crv", "kty", "x"] };

const pairOf = (alg: Alg, bits: number) => {
  if (alg === "ES256") return generateKeyPairSync("ec", { namedCurve: "P-256" });
  return alg === "RS256" ? generateKeyPairSync("rsa", { modulusLength: bits }) : generateKeyPairSync("ed25519");
};

export function clientKey(alg: Alg = "ES256", bits = 2048): ClientKey {
  const { privateKey, publicKey } = pairOf(alg, bits);
  const jwk = publicKey.export({ format: "jwk" }) as Record<string, unknown>;
  const members = MEMBERS[jwk.kty as keyof typeof MEMBERS].map((name) => [name, jwk[name]]);
  const thumbprint = hash("sha256", JSON.stringify(Object.fromEntries(members)), "base64url");
  return { alg, privateKey, jwk, thumbprint };
}

export const segment = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");

export const signed = ({ alg, privateKey }: ClientKey, input: string) => {
  const digest = alg === "ES256" || alg === "RS256" ? "sha256" : null;
  const signature = sign(digest, Buffer.from(input), { key: privateKey, dsaEncoding: "ieee-p1363" });
  return `${input}.${signature.toString("base64url")}`;
};

export type Change = { readonly header?: object; readonly claims?: object; readonly accessToken?: string };

/** Returns a proof for a POST request to a URL. */
export function dpop(key: ClientKey, url: string, { header = {}, claims = {}, accessToken }: Change = {}): string {
  const ath = accessToken === undefined ? {} : { ath: hash("sha256", accessToken, "base64url") };
  const payload = { htm: "POST", htu: url, iat: Math.floor(Date.now() / 1000), jti: randomUUID(), ...ath, ...claims };
  return signed(key, `${segment({ typ: "dpop+jwt", alg: key.alg, jwk: key.jwk, ...header })}.${segment(payload)}`);
}
