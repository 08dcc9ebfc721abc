/** Cases about the header of a token, and the key that it names. */
import { createHmac, createPublicKey } from "node:crypto";
import { CLAIMS, casesOf, type Forge, HEAD, json, type Row, raw, type VectorCase } from "./format.ts";
import { ATTACKER, EDWARDS, MAIN, NEXT, publicJwk, UNPUBLISHED } from "./keys.ts";

export function headerCases({ token, signed }: Forge): VectorCase[] {
  const payload = json(CLAIMS);
  const publicKey = createPublicKey(MAIN.privateKey);
  const hmac = (key: string | Uint8Array) => {
    const input = `${json({ ...HEAD, alg: "HS256" })}.${payload}`;
    return `${input}.${createHmac("sha256", key).update(input).digest("base64url")}`;
  };
  const { x, y } = publicJwk(ATTACKER);
  const strange = [null, true, 1, {}, ["ES256"], "", "none"];
  const rows: Row[] = [
    ["a valid token", token(), "accepted"],
    ["a token under the published successor", token({ kid: NEXT.kid }, {}, NEXT), "accepted"],
    ["a token under a key of Ed25519", token({ alg: "EdDSA", kid: EDWARDS.kid }, {}, EDWARDS), "accepted"],
    [
      "header members in another order",
      signed(raw(JSON.stringify({ kid: MAIN.kid, alg: "ES256", typ: "at+jwt" })), payload),
      "accepted",
    ],
    ["a header with spaces", signed(raw(JSON.stringify(HEAD, null, 2)), payload), "accepted"],
    [
      "a header with escapes",
      signed(raw(`{"typ":"at\\u002bjwt","\\u0061lg":"ES256","kid":"${MAIN.kid}"}`), payload),
      "accepted",
    ],
    ["alg none without a signature", `${json({ ...HEAD, alg: "none" })}.${payload}.`, "malformed"],
    ...[
      "None",
      "NONE",
      "nOnE",
      "none ",
      "\0none",
      "null",
      "es256",
      "ES256 ",
      "RS256",
      "PS256",
      "ES384",
      "ES512",
      "ES256K",
      "HS256",
      "Ed25519",
      "A128GCM",
    ].map((alg): Row => [`alg ${JSON.stringify(alg)}`, token({ alg }), "wrong_algorithm"]),
    ...strange.map((alg): Row => [`alg ${JSON.stringify(alg)} of any type`, token({ alg }), "wrong_algorithm"]),
    ["no alg", token({ alg: undefined }), "wrong_algorithm"],
    ["EdDSA for a key of ES256", token({ alg: "EdDSA" }), "wrong_algorithm"],
    ["ES256 for a key of EdDSA", token({ kid: EDWARDS.kid }, {}, EDWARDS), "wrong_algorithm"],
    ["an HMAC under the public key (PEM)", hmac(publicKey.export({ type: "spki", format: "pem" })), "malformed"],
    ["an HMAC under the public key (DER)", hmac(publicKey.export({ type: "spki", format: "der" })), "malformed"],
    ["an HMAC under an empty key", hmac(""), "malformed"],
    ["another key under the kid", token({}, {}, ATTACKER), "forged"],
    ["the successor's signature under the kid", token({}, {}, NEXT), "forged"],
    ["a signature of Ed25519 under a kid of ES256", token({}, {}, EDWARDS), "forged"],
    ["an embedded jwk", token({ jwk: { kty: "EC", crv: "P-256", x, y } }, {}, ATTACKER), "malformed"],
    ["an embedded jwk and no kid", token({ jwk: { kty: "EC", x, y }, kid: undefined }, {}, ATTACKER), "malformed"],
    ...Object.entries({
      jku: "https://evil.example/jwks.json",
      x5u: "https://evil.example/cert.pem",
      x5c: ["MIIB"],
      x5t: "AAAA",
      crit: ["exp"],
      b64: false,
      zip: "DEF",
      cty: "JWT",
      enc: "A128GCM",
      epk: {},
      nonce: "n",
      iss: CLAIMS.iss,
    }).map(([name, value]): Row => [`the header member ${name}`, token({ [name]: value }), "malformed"]),
    ["an empty crit", token({ crit: [] }), "malformed"],
    ["crit with b64", token({ b64: false, crit: ["b64"] }), "malformed"],
    ["crit with an unknown name", token({ crit: ["x"], x: 1 }), "malformed"],
    ["a header member with an empty name", token({ "": 1 }), "malformed"],
    ["a header member __proto__", signed(raw(`{"__proto__":1,${JSON.stringify(HEAD).slice(1)}`), payload), "malformed"],
    ...[
      "../../../../dev/null",
      "x' UNION SELECT 'key",
      "key|/usr/bin/id",
      "__proto__",
      "constructor",
      "toString",
      "",
      " ",
      "\0",
      MAIN.kid.toUpperCase(),
      `${MAIN.kid} `,
      "é",
      UNPUBLISHED.kid,
    ].map((kid): Row => [`the unknown kid ${JSON.stringify(kid)}`, token({ kid }, {}, UNPUBLISHED), "unknown_key"]),
    ...[null, true, 1, {}, { toString: MAIN.kid }, [MAIN.kid]].map(
      (kid): Row => [`the kid ${JSON.stringify(kid)}`, token({ kid }), "malformed"],
    ),
    ["no kid", token({ kid: undefined }), "malformed"],
    ...["at+JWT", "AT+JWT", "application/at+jwt", "Application/At+Jwt"].map(
      (typ): Row => [`typ ${typ}`, token({ typ }), "accepted"],
    ),
    ...[
      "JWT",
      "jwt",
      "id+jwt",
      "logout+jwt",
      "dpop+jwt",
      "at+jwt; x",
      "at+jwt ",
      " at+jwt",
      "at+jwt\n",
      "at-jwt",
      "atxjwt",
      "at jwt",
      "xapplication/at+jwt",
      "application/application/at+jwt",
      "applıcation/at+jwt",
      "application/",
      "",
    ].map((typ): Row => [`typ ${JSON.stringify(typ)}`, token({ typ }), "wrong_type"]),
    ...[null, true, 1, {}, ["at+jwt"]].map((typ): Row => [`typ ${JSON.stringify(typ)}`, token({ typ }), "wrong_type"]),
    ["no typ", token({ typ: undefined }), "wrong_type"],
    ["a header that is a list", signed(json([HEAD]), payload), "malformed"],
    ["a header that is a string", signed(json("at+jwt"), payload), "malformed"],
    ["a header that is null", signed(json(null), payload), "malformed"],
    ["an empty header", signed(json({}), payload), "malformed"],
    ["a header that is no JSON", signed(raw("typ=at+jwt"), payload), "malformed"],
    ["a header that is not UTF-8", signed(raw(Buffer.from([0x7b, 0xff, 0x7d])), payload), "malformed"],
    ["a duplicate header member", signed(raw(`{"alg":"none",${JSON.stringify(HEAD).slice(1)}`), payload), "malformed"],
    [
      "a duplicate header member, escaped",
      signed(raw(`{"\\u0061lg":"none",${JSON.stringify(HEAD).slice(1)}`), payload),
      "malformed",
    ],
  ];
  return casesOf(rows);
}
