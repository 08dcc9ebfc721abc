/** Valid tokens, and published attacks on the signature (RFC 8725, CVE lists, cheat sheets). Some attacks use the issuer's own key. */
import { SignJWT } from "jose";
import { afterAll, describe, expect, test } from "vitest";
import { parseSessionId } from "../../src/service/session/model.ts";
import { generateRing } from "../../src/service/tokens/generate-key.ts";
import { until } from "../support/until.ts";
import { follow } from "../support/verifier/follow.ts";
import { claims, kid, privateKey, token } from "../support/verifier/forge.ts";
import { AUDIENCE, startIssuer } from "../support/verifier/issuer.ts";
import { startTarget } from "../support/verifier/target.ts";

const target = await startTarget();
const { verifier, verdictOf, fetched, jwksUrl } = target;
afterAll(() => target.close());

describe("a good token", () => {
  test("is accepted with its claims, which are frozen for all who share them", async () => {
    const verdict = await verifier.verify(token({}, { role: { admin: false } }));
    expect(verdict).toEqual({ ok: true, claims: { ...claims, role: { admin: false } }, deviceBound: false });
    if (!verdict.ok) return;
    expect(() => Object.assign(verdict.claims, { sub: "root" })).toThrow(TypeError);
    expect(() => Object.assign(verdict.claims.role as object, { admin: true })).toThrow(TypeError);
  });

  test("may come from another implementation (jose), with its header in any order", async () => {
    const made = await new SignJWT(claims).setProtectedHeader({ kid, alg: "ES256", typ: "at+jwt" }).sign(privateKey);
    expect(await verdictOf(made)).toBe("ok");
    const inFull = await new SignJWT(claims)
      .setProtectedHeader({ kid, alg: "ES256", typ: "application/at+jwt" })
      .sign(privateKey);
    expect(await verdictOf(inFull)).toBe("ok");
  });

  test("may carry claims of the greatest size, in any script", async () => {
    expect(await verdictOf(token({}, { large: "é\ufffd".repeat(1500) }))).toBe("ok");
  });

  test("may name the audience among several", async () => {
    expect(await verdictOf(token({}, { aud: ["https://other.example", AUDIENCE] }))).toBe("ok");
  });
});

describe("the key set", () => {
  test("is never fetched from an address in a token, and a thousand unknown kids cause at most one read", async () => {
    const before = fetched.length;
    const flood = Array.from({ length: 1000 }, (_, index) => verdictOf(token({ kid: `k${index}` })));
    expect(new Set(await Promise.all(flood))).toEqual(new Set(["unknown_key"]));
    expect(fetched.length - before).toBeLessThanOrEqual(1);
    expect(new Set(fetched)).toEqual(new Set([jwksUrl]));
  });
});

test("the mirrored signature (s → n − s) of a revoked session is rejected like the original", async () => {
  const issuer = await startIssuer();
  const { verifier: following, verdictOf: verdictNow } = follow(issuer);
  await following.ready;
  const { token: first, sid } = issuer.issue();
  const n = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const [header, payload, signature = ""] = first.split(".");
  const bytes = Buffer.from(signature, "base64url");
  const s = n - BigInt(`0x${bytes.subarray(32).toString("hex")}`);
  const mirrored = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, "0"), "hex")]);
  const second = `${header}.${payload}.${mirrored.toString("base64url")}`;
  expect(await verdictNow(first)).toBe("ok");
  expect(await verdictNow(second)).toBe("ok"); // The changed signature is also valid, because ECDSA signatures are malleable.
  expect(parseSessionId(sid)).toBe(sid);
  issuer.revoke(sid);
  await until(async () => expect(await verdictNow(first)).toBe("revoked"));
  expect(await verdictNow(second)).toBe("revoked");
});

test("an Ed25519 signature has one encoding: S + L is rejected", async () => {
  const issuer = await startIssuer();
  issuer.setRing(generateRing("EdDSA", Date.now()));
  const { verifier: following, verdictOf: verdictNow } = follow(issuer);
  await following.ready;
  const { token: good } = issuer.issue();
  const [header, payload, signature = ""] = good.split(".");
  const bytes = Buffer.from(signature, "base64url");
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString("hex")}`) + order;
  const other = Buffer.from(s.toString(16).padStart(64, "0"), "hex").reverse();
  expect(await verdictNow(good)).toBe("ok");
  const malleated = Buffer.concat([bytes.subarray(0, 32), other]).toString("base64url");
  expect(await verdictNow(`${header}.${payload}.${malleated}`)).toBe("forged");
});
