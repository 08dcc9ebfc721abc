/** Makes tokens with any header, claims and signature. */
import { createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { generateRing } from "../../../src/service/tokens/generate-key.ts";
import { AUDIENCE, ISSUER } from "./issuer.ts";

/** The key ring of the issuer. Some attacks also present tokens that were signed with its keys. */
export const ring = generateRing("ES256", Date.now());
export const { kid, jwk = {} } = ring.signing[0] ?? { kid: "" };
export const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
export const publicKey = createPublicKey({
  key: { kty: "EC", crv: "P-256", x: jwk.x, y: jwk.y } as typeof jwk,
  format: "jwk",
});
export const attacker = generateKeyPairSync("ec", { namedCurve: "P-256" });

export const now = Math.floor(Date.now() / 1000);
export const claims = {
  iss: ISSUER,
  sub: "user-1",
  aud: AUDIENCE,
  exp: now + 86_400,
  iat: now,
  jti: "j1",
  sid: "AAECAwQFBgcICQoLDA0ODxA",
  client_id: "app",
};
export const head = { typ: "at+jwt", alg: "ES256", kid };
export const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
export const raw = (text: string | Buffer) => Buffer.from(text).toString("base64url");

/** Signs any header and payload segments. */
export function signed(header: string, payload: string, key = privateKey): string {
  const input = `${header}.${payload}`;
  return `${input}.${sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}
export const token = (header: object = {}, payload: object = {}, key = privateKey) =>
  signed(json({ ...head, ...header }), json({ ...claims, ...payload }), key);
