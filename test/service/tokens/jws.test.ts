/** The conversion of ECDSA signatures to the form of JWS, compared with Node's own conversion. */
import { generateKeyPairSync, sign, verify } from "node:crypto";
import { expect, test } from "vitest";
import { createSigner, isSignature, joinedText } from "../../../src/service/tokens/jws.ts";
import { createClaimsSigner } from "../../../src/service/tokens/signed-claims.ts";
import { someKeys } from "../../support/tokens.ts";

const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });

/** Encodes an integer in DER. */
function integer(value: bigint): Buffer {
  const hex = value.toString(16);
  const bytes = Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, "hex");
  const signed = (bytes[0] ?? 0) > 127 ? Buffer.concat([Buffer.of(0), bytes]) : bytes;
  return Buffer.concat([Buffer.of(2, signed.length), signed]);
}

const EDGES = [1n, 127n, 128n, 255n, 256n, 2n ** 247n, 2n ** 248n - 1n, 2n ** 255n - 1n, 2n ** 255n, 2n ** 256n - 1n];

test.each(EDGES.flatMap((r) => EDGES.map((s) => [r, s] as const)))("r = %d, s = %d", (r, s) => {
  const parts = Buffer.concat([integer(r), integer(s)]);
  const text = [r, s].map((part) => part.toString(16).padStart(64, "0")).join("");
  expect(joinedText(Buffer.concat([Buffer.of(48, parts.length), parts]))).toBe(
    Buffer.from(text, "hex").toString("base64url"),
  );
});

test("signatures of any length are valid", () => {
  const signer = createSigner("ES256", privateKey);
  const lengths = new Set<number>();
  for (let i = 0; i < 600; i++) {
    lengths.add(sign("sha256", Buffer.from(String(i)), privateKey).length);
    const signature = Buffer.from(signer(String(i)), "base64url");
    const key = { key: publicKey, dsaEncoding: "ieee-p1363" } as const;
    expect(verify("sha256", Buffer.from(String(i)), key, signature)).toBe(true);
  }
  expect(lengths.size).toBeGreaterThan(1);
});

test("EdDSA needs no conversion", () => {
  const own = generateKeyPairSync("ed25519");
  const signature = Buffer.from(createSigner("EdDSA", own.privateKey)("text"), "base64url");
  expect(verify(null, Buffer.from("text"), own.publicKey, signature)).toBe(true);
});

test("a signature has one encoding, whatever its length", () => {
  // 64 bytes of ES256 and EdDSA, and 256 of RS256 with a key of 2,048 bits: the last character has four spare bits.
  for (const rest of [85, 341]) {
    expect(isSignature(`${"A".repeat(rest)}A`)).toBe(true);
    expect(isSignature(`${"A".repeat(rest)}B`)).toBe(false);
  }
});

test("claims of another type are signed by the current key, under a header that no access token has", () => {
  const keys = someKeys();
  const token = createClaimsSigner({ current: keys.current })("secevent+jwt", { iss: "https://auth.example", n: 1 });
  const [header = "", payload = "", signature = ""] = token.split(".");
  const text = (segment: string) => JSON.parse(Buffer.from(segment, "base64url").toString());
  expect(text(header)).toEqual({ typ: "secevent+jwt", alg: "ES256", kid: keys.current.signing.kid });
  expect(text(payload)).toEqual({ iss: "https://auth.example", n: 1 });
  const check = [...keys.current.checks.values()][0];
  expect(check?.(`${header}.${payload}`, signature)).toBe(true);
});
