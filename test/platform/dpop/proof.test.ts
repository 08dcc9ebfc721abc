/** The checks of a DPoP proof (RFC 9449 section 4.3), on Node and by WebCrypto. Every refusal has a reason from a closed list. */
import { createHmac, createPublicKey } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PROOF_REFUSALS, type ProofExpectation } from "../../../src/platform/dpop/proof.ts";
import { verifyProof } from "../../../src/platform/dpop/verify-proof.ts";
import { verifyProof as verifyOnTheWeb } from "../../../src/verifier/web/verify-proof.ts";
import { type Change, clientKey, dpop, segment, signed } from "../../support/dpop.ts";

const URL_OF_TOKENS = "https://auth.example/v1/oauth/token";
const NOW_S = 1_700_000_000;
const EXPECTED: ProofExpectation = { method: "POST", urls: [URL_OF_TOKENS], nowMs: NOW_S * 1000 };
const EC = clientKey();
const keys = [EC, clientKey("RS256"), clientKey("RS256", 4096), clientKey("EdDSA"), clientKey("Ed25519")];

const proof = ({ claims = {}, ...change }: Change = {}, key = EC) =>
  dpop(key, URL_OF_TOKENS, { ...change, claims: { iat: NOW_S, ...claims } });

/** Judges a proof in both runtimes, which must decide in the same way. */
async function judge(text: string, expected: Partial<ProofExpectation> = {}) {
  const result = verifyProof(text, { ...EXPECTED, ...expected });
  expect(await verifyOnTheWeb(text, { ...EXPECTED, ...expected })).toEqual(result);
  return result.ok ? result : result.reason;
}

test.each(keys.map((key) => [key.alg, key] as const))("a proof under %s names its key", async (_, key) => {
  const text = proof({ claims: { jti: "one" } }, key);
  const result = await judge(text);
  expect(result).toMatchObject({ ok: true, thumbprint: key.thumbprint });
  expect(await judge(proof({ claims: { jti: "two" } }, key))).not.toEqual(result);
});

const { x, y } = EC.jwk;
const RSA_2047 = clientKey("RS256", 2040);
test.each<[string, string, Change, ReturnType<typeof clientKey>?]>([
  ["another type", "proof_wrong_type", { header: { typ: "JWT" } }],
  ["the type of a device's proof", "proof_wrong_type", { header: { typ: "dbsc+jwt" } }],
  ["alg none", "proof_wrong_algorithm", { header: { alg: "none" } }],
  ["alg HS256", "proof_wrong_algorithm", { header: { alg: "HS256" } }],
  ["an algorithm of another key", "proof_bad_key", { header: { alg: "RS256" } }],
  ["no key", "proof_bad_key", { header: { jwk: undefined } }],
  ["a private key", "proof_bad_key", { header: { jwk: EC.privateKey.export({ format: "jwk" }) } }],
  ["a symmetric key", "proof_bad_key", { header: { jwk: { kty: "oct", k: "AAAA" } } }],
  ["a point that is not on the curve", "proof_bad_key", { header: { jwk: { ...EC.jwk, x: y, y: x } } }],
  ["another curve", "proof_bad_key", { header: { jwk: { ...EC.jwk, crv: "P-384" } } }],
  ["a key for another algorithm", "proof_bad_key", { header: { jwk: { ...EC.jwk, alg: "ES384" } } }],
  ["RSA-1024", "proof_bad_key", {}, clientKey("RS256", 1024)],
  ["RSA with less than 2,048 bits", "proof_bad_key", {}, RSA_2047],
  ["crit", "proof_malformed", { header: { crit: ["b64"] } }],
  ["b64", "proof_malformed", { header: { b64: false } }],
  ["another method", "proof_wrong_method", { claims: { htm: "GET" } }],
  ["the method in lower case", "proof_wrong_method", { claims: { htm: "post" } }],
  ["another path", "proof_wrong_url", { claims: { htu: "https://auth.example/v1/oauth/revoke" } }],
  ["another host", "proof_wrong_url", { claims: { htu: "https://other.example/v1/oauth/token" } }],
  ["another scheme", "proof_wrong_url", { claims: { htu: "http://auth.example/v1/oauth/token" } }],
  ["credentials in the URL", "proof_wrong_url", { claims: { htu: "https://a:b@auth.example/v1/oauth/token" } }],
  ["no URL", "proof_wrong_url", { claims: { htu: "/v1/oauth/token" } }],
  ["an old time", "proof_stale", { claims: { iat: NOW_S - 61 } }],
  ["a time in the future", "proof_stale", { claims: { iat: NOW_S + 61 } }],
  ["no time", "proof_malformed", { claims: { iat: undefined } }],
  ["a text as time", "proof_malformed", { claims: { iat: "1" } }],
  ["no method", "proof_malformed", { claims: { htm: undefined } }],
  ["no URL at all", "proof_malformed", { claims: { htu: undefined } }],
  ["no jti", "proof_malformed", { claims: { jti: undefined } }],
  ["an empty jti", "proof_malformed", { claims: { jti: "" } }],
  ["the hash of a token as a number", "proof_malformed", { claims: { ath: 1 } }],
  ["a long jti", "proof_malformed", { claims: { jti: "j".repeat(257) } }],
  ["a nonce that is no text", "proof_malformed", { claims: { nonce: 1 } }],
  ["an oversized proof", "proof_malformed", { claims: { more: "m".repeat(8192) } }],
])("%s is %s", async (_, reason, change, key) => {
  expect(await judge(proof(change, key))).toBe(reason);
});

test.each([
  ["the longest jti", { jti: "j".repeat(256) }],
  ["the oldest time", { iat: NOW_S - 60 }],
  ["the latest time", { iat: NOW_S + 60 }],
])("%s is accepted", async (_, claims) => {
  expect(await judge(proof({ claims }))).toMatchObject({ ok: true });
});

test("a signature by another key, or of another algorithm, is forged", async () => {
  const header = { jwk: EC.jwk };
  expect(await judge(proof({ header }, clientKey()))).toBe("proof_forged");
  const [first, second] = proof().split(".");
  const pem = createPublicKey(EC.privateKey).export({ format: "pem", type: "spki" });
  const confused = createHmac("sha256", pem).update(`${first}.${second}`).digest("base64url");
  expect(await judge(`${first}.${second}.${confused}`)).toBe("proof_forged");
});

test("two proofs are ambiguous, and other texts malformed", async () => {
  expect(await judge(`${proof()}, ${proof()}`)).toBe("proof_ambiguous");
  const [first, second, third] = proof().split(".");
  for (const text of ["", "x", "..", `${first}.${second}.`, `${first}..${third}`, `${proof()}=`, ` ${proof()}`]) {
    expect(await judge(text)).toBe("proof_malformed");
  }
  const twice = Buffer.from(`{"htm":"POST","htm":"POST"}`).toString("base64url");
  expect(await judge(signed(EC, `${first}.${twice}`))).toBe("proof_malformed");
  expect(await judge(signed(EC, `${first}.${segment([])}`))).toBe("proof_malformed");
});

test("query, fragment and notation of the URL do not matter", async () => {
  for (const htu of [
    `${URL_OF_TOKENS}?a=b#c`,
    "HTTPS://AUTH.example:443/v1/oauth/token",
    "https://auth.example/v1/x/../oauth/%74oken",
  ]) {
    expect(await judge(proof({ claims: { htu } }))).toMatchObject({ ok: true });
  }
});

describe("with an access token", () => {
  const accessToken = "a.b.c";
  test("the proof has its hash", async () => {
    expect(await judge(proof({ accessToken }), { accessToken })).toMatchObject({ ok: true });
    expect(await judge(proof(), { accessToken })).toBe("proof_wrong_token");
    expect(await judge(proof({ accessToken: "other" }), { accessToken })).toBe("proof_wrong_token");
  });
});

describe("with nonces", () => {
  const isFreshNonce = (nonce: string) => nonce === "fresh";
  test("a fresh nonce counts instead of the client's clock", async () => {
    const claims = { iat: NOW_S - 3600, nonce: "fresh" };
    expect(await judge(proof({ claims }), { isFreshNonce })).toMatchObject({ ok: true });
    expect(await judge(proof({ claims }))).toBe("proof_stale");
    expect(await judge(proof({ claims: { ...claims, nonce: "old" } }), { isFreshNonce })).toBe("proof_nonce");
  });
  test("one may be required", async () => {
    expect(await judge(proof(), { isFreshNonce })).toMatchObject({ ok: true });
    expect(await judge(proof(), { isFreshNonce, requiresNonce: true })).toBe("proof_nonce");
  });
});

test("any text and any change of a proof has a closed reason", async () => {
  const good = proof();
  const json = fc.json({ maxDepth: 2 }).map((text) => Buffer.from(text).toString("base64url"));
  const texts = fc.oneof(
    fc.string({ unit: "binary", maxLength: 300 }),
    fc.tuple(json, json, json).map((segments) => segments.join(".")),
    fc
      .tuple(fc.nat(good.length - 1), fc.string({ minLength: 1, maxLength: 1 }))
      .map(([at, unit]) => good.slice(0, at) + unit + good.slice(at + 1)),
    fc
      .record({ htm: fc.anything(), htu: fc.webUrl(), iat: fc.oneof(fc.double(), fc.anything()), jti: fc.string() })
      .map((claims) => dpop(EC, URL_OF_TOKENS, { claims })),
  );
  await fc.assert(
    fc.asyncProperty(texts, async (text) => {
      const result = await judge(text);
      if (text !== good) expect(PROOF_REFUSALS).toContain(result);
    }),
    { numRuns: 300 },
  );
});
