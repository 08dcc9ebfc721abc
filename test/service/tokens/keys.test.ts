/** The import of a ring's keys, and which of them is used for what. */
import { createHmac } from "node:crypto";
import { describe, expect, test } from "vitest";
import { generateMacKey, generateRing, generateSigningKey } from "../../../src/service/tokens/generate-key.ts";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { MAC_AT } from "../../../src/service/tokens/refresh-token.ts";
import type { RingKey } from "../../../src/service/tokens/ring.ts";
import { NOW } from "../../support/tokens.ts";

const signingKey = (state: RingKey["state"]): RingKey => ({ ...generateSigningKey("ES256", NOW), state });
const macKey = (state: RingKey["state"]): RingKey => ({ ...generateMacKey(NOW), state });
const withoutSecret = ({ jwk: _, ...key }: RingKey): RingKey => ({ ...key, state: "revoked" });

test("the keys in state signing sign, wherever they are, and all others that have a secret verify", () => {
  const signing = [signingKey("published"), signingKey("signing"), withoutSecret(signingKey("retired"))];
  const mac = [macKey("published"), macKey("signing"), withoutSecret(macKey("retired"))];
  const keys = readyKeys({ signing, mac });
  expect(keys.signing.kid).toBe(signing[1]?.kid);
  expect(keys.mac.id).toBe(Number.parseInt(mac[1]?.kid ?? "", 16));
  expect([...keys.macs.keys()]).toEqual(mac.slice(0, 2).map(({ kid }) => Number.parseInt(kid, 16)));
  expect(keys.jwks.keys.map(({ kid }) => kid)).toEqual(signing.slice(0, 2).map(({ kid }) => kid));
  expect(keys.checks.size).toBe(2);
  expect(keys.revokedKids).toEqual([signing[2]?.kid]);
});

test("the states of all keys are known without their secrets", () => {
  const ring = generateRing("ES256", NOW);
  const state = (kind: "signing" | "mac") => ring[kind].map(({ jwk: _, ...key }) => ({ kind, ...key }));
  expect(readyKeys(ring).states).toEqual([...state("signing"), ...state("mac")]);
});

test("the secret of a MAC key authenticates", () => {
  const key = macKey("signing");
  const body = Buffer.alloc(MAC_AT, 1);
  const secret = Buffer.from(key.jwk?.k ?? "", "base64url");
  const mac = readyKeys({ signing: [signingKey("signing")], mac: [key] }).mac.mac(body);
  expect(mac).toBe(createHmac("sha256", secret).update(body).digest("latin1"));
});

describe("a ring is refused", () => {
  test("if no key signs, of either kind", () => {
    const [signing, mac] = [[signingKey("signing")], [macKey("signing")]];
    expect(() => readyKeys({ signing: [signingKey("published")], mac })).toThrow("no key in state signing");
    expect(() => readyKeys({ signing, mac: [macKey("retired")] })).toThrow("no key in state signing");
  });

  test("if a key cannot sign, or is not one pair", () => {
    const mac = [macKey("signing")];
    const { jwk } = generateMacKey(NOW);
    const symmetric: RingKey = { ...signingKey("signing"), alg: "HS256", ...(jwk && { jwk }) };
    expect(() => readyKeys({ signing: [symmetric], mac })).toThrow("cannot sign");
    const [one, other] = [signingKey("signing"), signingKey("signing")];
    const mixed = { ...one, jwk: { ...one.jwk, d: other.jwk?.d } } as RingKey;
    expect(() => readyKeys({ signing: [mixed], mac })).toThrow("not a working pair");
    const [ed, otherEd] = [generateSigningKey("EdDSA", NOW), generateSigningKey("EdDSA", NOW)];
    const halves: RingKey = { ...ed, state: "signing", jwk: { ...ed.jwk, kty: "OKP", x: otherEd.jwk?.x ?? "" } };
    expect(() => readyKeys({ signing: [halves], mac })).toThrow("not a working pair");
  });
});
