/** The verifier against jose, an independent implementation: it accepts nothing that jose rejects. */
import fc from "fast-check";
import { calculateJwkThumbprint, createLocalJWKSet, importJWK, jwtVerify } from "jose";
import { afterAll, expect, test } from "vitest";
import { generateRing, generateSigningKey } from "../../src/service/tokens/generate-key.ts";
import { SIGNING_ALGS } from "../../src/service/tokens/jws.ts";
import { readyKeys } from "../../src/service/tokens/keys.ts";
import { importKey } from "../../src/verifier/token.ts";
import { claims, now, ring, token } from "../support/verifier/forge.ts";
import { AUDIENCE, ISSUER } from "../support/verifier/issuer.ts";
import { startTarget } from "../support/verifier/target.ts";

const target = await startTarget();
afterAll(() => target.close());

const jwks = createLocalJWKSet(readyKeys(ring).jwks as Parameters<typeof createLocalJWKSet>[0]);
const accepts = async (text: string) => (await target.verdictOf(text)) === "ok";

async function joseAccepts(text: string): Promise<boolean> {
  const options = {
    issuer: ISSUER,
    audience: AUDIENCE,
    typ: "at+jwt",
    algorithms: [...SIGNING_ALGS],
    requiredClaims: ["exp", "iat", "sub", "jti", "sid", "client_id"],
  };
  return jwtVerify(text, jwks, options).then(
    () => true,
    () => false,
  );
}

const claim = fc.constantFrom(...Object.keys(claims), "nbf", "cnf", "role");
const value = fc.oneof(
  fc.constantFrom<unknown>(ISSUER, AUDIENCE, "", null, undefined, now, now + 600, now - 600, -1, [AUDIENCE], [ISSUER]),
  fc.string({ maxLength: 5 }),
  fc.integer({ min: now - 1000, max: now + 1000 }),
);
const header = fc.constantFrom<object>(
  {},
  {},
  { typ: "application/at+jwt" },
  { typ: "JWT" },
  { alg: "EdDSA" },
  { kid: "x" },
);

test("with any claim replaced, in any combination", async () => {
  const changes = fc.array(fc.tuple(claim, value), { maxLength: 3 }).map((entries) => Object.fromEntries(entries));
  await fc.assert(
    fc.asyncProperty(header, changes, async (head, changed) => {
      const text = token(head, changed);
      if (await accepts(text)) expect(await joseAccepts(text)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

test("with any character replaced, inserted or removed", async () => {
  const good = token();
  expect(await joseAccepts(good)).toBe(true);
  expect(await accepts(good)).toBe(true);
  const at = fc.integer({ min: 0, max: good.length - 1 });
  const inserted = fc.oneof(fc.constantFrom("", ".", "=", "A", "_", "%", "é"), fc.string({ maxLength: 2 }));
  await fc.assert(
    fc.asyncProperty(at, fc.integer({ min: 0, max: 1 }), inserted, async (position, removed, text) => {
      const changed = good.slice(0, position) + text + good.slice(position + removed);
      if (await accepts(changed)) expect(await joseAccepts(changed)).toBe(true);
    }),
    { numRuns: 300 },
  );
});

test("valid tokens are accepted by both, whatever else they carry", async () => {
  const extra = fc.dictionary(
    fc.string({ minLength: 1, maxLength: 8 }).map((name) => `x_${name}`),
    fc.jsonValue(),
    {
      maxKeys: 4,
    },
  );
  await fc.assert(
    fc.asyncProperty(extra, async (more) => {
      const text = token({}, more);
      expect([await accepts(text), await joseAccepts(text)]).toEqual([true, true]);
    }),
    { numRuns: 100 },
  );
});

test.each(SIGNING_ALGS)("%s keys are imported as jose imports them, under their thumbprint", async (alg) => {
  const { jwks: published } = readyKeys(generateRing(alg, Date.now()));
  for (const jwk of published.keys) {
    const members = Object.fromEntries(Object.entries(jwk)) as Record<string, string>;
    expect(importKey(jwk)).toMatchObject({ kid: await calculateJwkThumbprint(members), alg });
    await expect(importJWK(members, alg)).resolves.toBeDefined();
  }
});

test.each<[what: string, change: Record<string, unknown>]>([
  ["a point off the curve", { x: "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" }],
  ["a coordinate that is too short", { x: "AAAA" }],
  ["a coordinate that is missing", { y: undefined }],
  ["a coordinate that is a number", { x: 1 }],
])("a JWK with %s is imported by neither", async (_, change) => {
  const { d: _private, ...jwk } = { ...generateSigningKey("ES256", 0).jwk, kid: "k", ...change } as Record<
    string,
    unknown
  >;
  expect(importKey(jwk)).toBeUndefined();
  await expect(importJWK(jwk as Record<string, string>, "ES256")).rejects.toThrow();
});
