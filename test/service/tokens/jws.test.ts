import { generateKeyPairSync, verify } from "node:crypto";
import { expect, test } from "vitest";
import { createSigner } from "../../../src/service/tokens/jws.ts";
import { createClaimsSigner } from "../../../src/service/tokens/signed-claims.ts";
import { someKeys } from "../../support/tokens.ts";

test.each([
  ["ES256", "sha256", generateKeyPairSync("ec", { namedCurve: "P-256" })],
  ["EdDSA", null, generateKeyPairSync("ed25519")],
] as const)("%s signs in the form of JWS", (alg, digest, { privateKey, publicKey }) => {
  const signature = Buffer.from(createSigner(alg, privateKey)("text"), "base64url");
  expect(signature.length).toBe(64);
  const key = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
  expect(verify(digest, Buffer.from("text"), key, signature)).toBe(true);
});

test("claims of another type are signed by the current key, under a header that no access token has", () => {
  const keys = someKeys();
  const token = createClaimsSigner({ current: keys.current })("secevent+jwt", { iss: "https://auth.example", n: 1 });
  const [header = "", payload = "", signature = ""] = token.split(".");
  const text = (segment: string) => JSON.parse(Buffer.from(segment, "base64url").toString());
  expect(text(header)).toEqual({ typ: "secevent+jwt", alg: "ES256", kid: keys.current.signing.kid });
  expect(text(payload)).toEqual({ iss: "https://auth.example", n: 1 });
  const check = [...keys.current.checks.values()][0];
  expect(check?.({ input: `${header}.${payload}`, signature: Buffer.from(signature, "base64url") })).toBe(true);
});
