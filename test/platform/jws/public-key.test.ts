/** Which public keys are accepted, at the limits of each member. */
import { generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import {
  findKeyFault,
  isPoint,
  isSignature,
  type KeyAlgorithm,
  readPublicMembers,
} from "../../../src/platform/jws/public-key.ts";
import { readJwk } from "../../../src/verifier/keys/jwk.ts";

type Jwk = Readonly<Record<string, unknown>>;
const jwkOf = ({ publicKey }: { publicKey: { export(options: { format: "jwk" }): object } }) =>
  publicKey.export({ format: "jwk" }) as Record<string, string>;
const EC = jwkOf(generateKeyPairSync("ec", { namedCurve: "P-256" }));
const ED = jwkOf(generateKeyPairSync("ed25519"));

/** Returns the base64url of a number in this many bytes, with the first byte first. */
const number = (value: bigint, bytes: number) =>
  Buffer.from(value.toString(16).padStart(2 * bytes, "0"), "hex").toString("base64url");
/** Returns an RSA key with an odd modulus of this many bits, which is no product of primes. */
const rsa = (bits: number): Jwk => ({
  kty: "RSA",
  e: "AQAB",
  n: number(2n ** BigInt(bits - 1) + 1n, Math.ceil(bits / 8)),
});
const RSA = rsa(2048);
const EVEN = number(2n ** 2047n, 256);
const SHORT = Buffer.alloc(31, 1).toString("base64url");

test.each<[what: string, algorithm: KeyAlgorithm, jwk: Jwk, isRead: boolean]>([
  ["P-256", "ES256", EC, true],
  ["of another type than EC", "ES256", { ...EC, kty: "OKP" }, false],
  ["of another curve than P-256", "ES256", { ...EC, crv: "Ed25519" }, false],
  ["with a short x", "ES256", { ...EC, x: SHORT }, false],
  ["with a short y", "ES256", { ...EC, y: SHORT }, false],
  ["without y", "ES256", { ...EC, y: undefined }, false],
  ["with a number as x", "ES256", { ...EC, x: 1 }, false],
  ["with an x that is no base64url", "ES256", { ...EC, x: "*".repeat(43) }, false],
  ["Ed25519", "EdDSA", ED, true],
  ["of another type than OKP", "EdDSA", { ...ED, kty: "EC" }, false],
  ["of another curve than Ed25519", "EdDSA", { ...ED, crv: "X25519" }, false],
  ["of 2,048 bits", "RS256", RSA, true],
  ["of 2,047 bits", "RS256", rsa(2047), false],
  ["of 4,096 bits", "RS256", rsa(4096), true],
  ["of 4,097 bits", "RS256", rsa(4097), false],
  ["of another type than RSA", "RS256", { ...RSA, kty: "EC" }, false],
  ["with another exponent", "RS256", { ...RSA, e: "Aw" }, false],
  ["with an even modulus", "RS256", { ...RSA, n: EVEN }, false],
  ["with an empty modulus", "RS256", { ...RSA, n: "" }, false],
  ["without a modulus", "RS256", { ...RSA, n: undefined }, false],
  ["with a modulus that is no base64url", "RS256", { ...RSA, n: "*" }, false],
  ["with leading zeros", "RS256", { ...RSA, n: number(2n ** 2047n + 1n, 257) }, false],
])("a key %s (%s)", (_, algorithm, jwk, isRead) => {
  expect(readPublicMembers(algorithm, jwk) !== undefined).toBe(isRead);
});

const P = 2n ** 256n - 2n ** 224n + 2n ** 192n + 2n ** 96n - 1n;
/** The y of the point with x = 0: the square root of the curve's constant. */
const Y0 = 0x66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4n;
const ZERO = number(0n, 32);

test.each<[what: string, x: unknown, y: unknown, isOn: boolean]>([
  ["of a key", EC.x, EC.y, true],
  ["with x and y exchanged", EC.y, EC.x, false],
  ["with x = 0", ZERO, number(Y0, 32), true],
  ["whose x is the prime", number(P, 32), number(Y0, 32), false],
  ["without x", undefined, EC.y, false],
  ["without y", EC.x, undefined, false],
  ["with a short x", SHORT, EC.y, false],
  ["with an x that is no base64url", "*".repeat(43), EC.y, false],
])("a point %s", (_, x, y, isOn) => {
  expect(isPoint(x, y)).toBe(isOn);
});

/** Returns the base64url of an Ed25519 point by its y, with the last byte first, and by the sign of its x. */
const edPoint = (y: bigint, sign: 0 | 1 = 0) => {
  const bytes = Buffer.from(number(y, 32), "base64url").reverse();
  bytes[31] = (bytes[31] as number) | (sign << 7);
  return bytes.toString("base64url");
};
const P25519 = 2n ** 255n - 19n;
const Y8 = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n;

test.each<[what: string, members: Jwk, fault: string | undefined]>([
  ["a point of P-256", EC, undefined],
  ["a pair that is no point of P-256", { ...EC, y: EC.x }, "off_curve"],
  ["a point of Ed25519", ED, undefined],
  ...[0n, 1n, Y8, P25519 - Y8, P25519 - 1n, P25519, P25519 + 1n].flatMap((y) =>
    ([0, 1] as const).map((sign): [string, Jwk, string] => [
      ...([`y = ${y} with the sign ${sign}`, { ...ED, x: edPoint(y, sign) }, "small_order"] as [string, Jwk, string]),
    ]),
  ),
  ["y = 2", { ...ED, x: edPoint(2n) }, undefined],
  ["the members of an RSA key", RSA, undefined],
  ["an x of small order without its curve", { x: edPoint(1n) }, undefined],
])("%s has the fault that is expected", (_, members, fault) => {
  expect(findKeyFault(members as Record<string, string>)).toBe(fault);
});

test.each([
  [63, false],
  [64, true],
  [65, false],
  [255, false],
  [256, true],
  [512, true],
  [513, false],
])("a signature of %i bytes", (length, isOne) => {
  expect(isSignature(new Uint8Array(length))).toBe(isOne);
});

test.each<[what: string, jwk: unknown, alg: string | undefined]>([
  ["a key without an algorithm", { ...EC, kid: "k" }, "ES256"],
  ["a key with its algorithm", { ...ED, kid: "k", alg: "EdDSA" }, "EdDSA"],
  ["a key with another algorithm", { ...EC, kid: "k", alg: "EdDSA" }, undefined],
  ["a key with a fault", { ...EC, kid: "k", y: EC.x }, undefined],
  ["null", null, undefined],
  ["a text", "key", undefined],
  ["a key without an id", EC, undefined],
  ["a key for encryption", { ...EC, kid: "k", use: "enc" }, undefined],
  ["a key that verifies, too", { ...EC, kid: "k", key_ops: ["sign", "verify"] }, "ES256"],
  ["a key that signs", { ...EC, kid: "k", key_ops: ["sign"] }, undefined],
  ["operations that are no list", { ...EC, kid: "k", key_ops: "verify" }, undefined],
  ["a key of these tokens", { ...EC, kid: "k", token_types: ["at+jwt"] }, "ES256"],
  ["a key of other tokens", { ...EC, kid: "k", token_types: ["secevent+jwt"] }, undefined],
  ["types of tokens that are no list", { ...EC, kid: "k", token_types: "at+jwt" }, undefined],
])("%s is read with its algorithm, or not at all", (_, jwk, alg) => {
  expect(readJwk(jwk)?.alg).toBe(alg);
});
