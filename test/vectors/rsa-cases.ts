/** Cases about tokens of RS256 (RFC 7518 section 3.3), and RSA keys in the key set. */
import { createHash, sign } from "node:crypto";
import { CLAIMS, type Forge, HEAD, json, NOW_MS, raw, type VectorCase } from "./format.ts";
import { MAIN, publicJwk, RSA } from "./keys.ts";

/** Returns an odd number with this many bits. As a modulus it has the right form, but belongs to no real key. */
export function fakeModulus(bits: number): string {
  const bytes = Buffer.concat(Array.from({ length: 17 }, (_, at) => createHash("sha256").update(`${at}`).digest()));
  const kept = bytes.subarray(0, Math.ceil(bits / 8));
  const top = (bits - 1) % 8;
  kept[0] = ((kept[0] ?? 0) & ((1 << top) - 1)) | (1 << top);
  kept[kept.length - 1] = (kept.at(-1) ?? 0) | 1;
  return raw(kept);
}

export const exponent = (value: number) =>
  raw(Buffer.from(value.toString(16).padStart(8, "0"), "hex").subarray(value < 2 ** 24 ? 1 : 0));

const bytesOf = (text = "") => Buffer.from(text, "base64url");

export function rsaCases({ token, signed }: Forge): VectorCase[] {
  const head = { alg: "RS256", kid: RSA.kid };
  const good = token(head, {}, RSA);
  const es256 = token();
  const jwk = publicJwk(RSA);
  const [main, modulus] = [publicJwk(MAIN), bytesOf(jwk.n)];
  const of = (name: string, text: string, verdict: VectorCase["verdict"], key: object = jwk): VectorCase => ({
    ...{ name: `RS256: ${name}`, token: text, nowMs: NOW_MS, keys: { keys: [main, key] }, verdict },
  });
  const withKey = (name: string, changes: object, verdict: VectorCase["verdict"] = "unknown_key") =>
    of(`a key ${name}`, good, verdict, { ...jwk, ...changes });
  const withSignature = (text: string, signature: Uint8Array | string) =>
    text.slice(0, text.lastIndexOf(".") + 1) + (typeof signature === "string" ? signature : raw(signature));
  const own = bytesOf(good.slice(good.lastIndexOf(".") + 1));
  const input = `${json({ ...HEAD, ...head })}.${json(CLAIMS)}`;
  const ofLength = (length: number) => Buffer.concat([own, own, own]).subarray(0, length);
  return [
    of("a valid token", good, "accepted"),
    of("a token of ES256 beside a key of RSA", es256, "accepted"),
    of("another type", token({ ...head, typ: "logout+jwt" }, {}, RSA), "wrong_type"),
    of("an expired token", token(head, { exp: CLAIMS.iat }, RSA), "expired"),
    of("ES256 for a key of RSA", token({ kid: RSA.kid }, {}, RSA), "wrong_algorithm"),
    of("EdDSA for a key of RSA", token({ alg: "EdDSA", kid: RSA.kid }, {}, RSA), "wrong_algorithm"),
    of("RS256 for a key of ES256", token({ alg: "RS256" }, {}, RSA), "wrong_algorithm"),
    ...["RS384", "RS512", "PS256", "rs256", "RSA"].map((alg) =>
      of(`alg ${alg}`, token({ ...head, alg }, {}, RSA), "wrong_algorithm"),
    ),
    of("signed by SHA-512", withSignature(good, sign("sha512", Buffer.from(input), RSA.privateKey)), "forged"),
    of("other claims", `${json({ ...HEAD, ...head })}.${json({ ...CLAIMS, sub: "root" })}.${raw(own)}`, "forged"),
    of("a signature of zeros", withSignature(good, Buffer.alloc(256)), "forged"),
    of("the signature 1", withSignature(good, Buffer.alloc(256).fill(1, 255)), "forged"),
    of("a signature beyond the modulus", withSignature(good, Buffer.alloc(256, 255)), "forged"),
    ...[1, 63, 65, 128, 255, 513].map((length) =>
      of(`a signature of ${length} bytes`, withSignature(good, ofLength(length)), "malformed"),
    ),
    ...[64, 257, 384, 512].map((length) =>
      of(`a signature of ${length} bytes`, withSignature(good, ofLength(length)), "forged"),
    ),
    of("a signature with a spare bit", withSignature(good, `${raw(own).slice(0, -1)}B`), "malformed"),
    of("a signature with padding", `${good}==`, "malformed"),
    of("a token of ES256 with a signature of 256 bytes", signed(json(HEAD), json(CLAIMS), RSA), "forged"),
    withKey("without alg", { alg: undefined }, "accepted"),
    withKey("with its private members", { d: "AAAA", p: "AAAA", q: "AAAA" }, "accepted"),
    ...["ES256", "RS512", "PS256", "EdDSA", ""].map((alg) => withKey(`with alg ${alg}`, { alg })),
    withKey("for encryption", { use: "enc" }),
    withKey("of another type", { kty: "EC" }),
    ...[1024, 2040, 2047, 4097, 4104].map((bits) => withKey(`of ${bits} bits`, { n: fakeModulus(bits) })),
    ...[2048, 3072, 4096].map((bits) => withKey(`of ${bits} bits, another`, { n: fakeModulus(bits) }, "forged")),
    ...[1, 3, 17, 65_535, 65_539].map((e) => withKey(`with e ${e}`, { e: exponent(e) })),
    withKey("with a leading zero in e", { e: raw(Buffer.from([0, 1, 0, 1])) }),
    withKey("with a leading zero in n", { n: raw(Buffer.concat([Buffer.alloc(1), modulus])) }),
    withKey("with an even modulus", { n: raw(Buffer.concat([modulus.subarray(0, 255), Buffer.alloc(1)])) }),
    ...[null, "", undefined, 1].map((n) => withKey(`with n ${JSON.stringify(n)}`, { n })),
    ...[null, 65_537, "", "AQAB=", undefined].map((e) => withKey(`with e ${JSON.stringify(e)} of any type`, { e })),
  ];
}
