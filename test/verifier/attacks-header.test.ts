/** Attacks that change the header of a token. */
import { createHmac } from "node:crypto";
import { afterAll, describe, expect, test } from "vitest";
import type { Refusal } from "../../src/verifier/index.ts";
import { attacker, claims, head, json, kid, publicKey, token } from "../support/verifier/forge.ts";
import { startTarget } from "../support/verifier/target.ts";

const target = await startTarget();
const { verdictOf } = target;
afterAll(() => target.close());

describe("every attack is rejected with a closed reason", () => {
  const payload = json(claims);
  const hmac = (key: string | Buffer) => {
    const input = `${json({ ...head, alg: "HS256" })}.${payload}`;
    return `${input}.${createHmac("sha256", key).update(input).digest("base64url")}`;
  };
  const { x, y } = attacker.publicKey.export({ format: "jwk" });

  test.each<[string, string, Refusal]>([
    ["alg none without a signature", `${json({ ...head, alg: "none" })}.${payload}.`, "malformed"],
    ["alg none with a signature", token({ alg: "none" }), "wrong_algorithm"],
    ...["None", "NONE", "nOnE", "none ", "\0none", "", "null"].map((alg): [string, string, Refusal] => [
      `alg ${JSON.stringify(alg)}`,
      token({ alg }),
      "wrong_algorithm",
    ]),
    ["alg null", token({ alg: null }), "wrong_algorithm"],
    ["no alg", token({ alg: undefined }), "wrong_algorithm"],
    ["alg a list", token({ alg: ["ES256"] }), "wrong_algorithm"],
    ["alg in another case", token({ alg: "es256" }), "wrong_algorithm"],
    ["an HMAC under the public key (PEM)", hmac(publicKey.export({ type: "spki", format: "pem" })), "malformed"],
    ["an HMAC under the public key (DER)", hmac(publicKey.export({ type: "spki", format: "der" })), "malformed"],
    ["an HMAC under an empty key", hmac(""), "malformed"],
    ["HS256 with a long signature", token({ alg: "HS256" }), "wrong_algorithm"],
    ["RS256 for ES256", token({ alg: "RS256" }), "wrong_algorithm"],
    ["PS256 for ES256", token({ alg: "PS256" }), "wrong_algorithm"],
    ["ES384 for ES256", token({ alg: "ES384" }), "wrong_algorithm"],
    ["ES256K for ES256", token({ alg: "ES256K" }), "wrong_algorithm"],
    ["EdDSA for a key of ES256", token({ alg: "EdDSA" }), "wrong_algorithm"],
    ["another key under the issuer's kid", token({}, {}, attacker.privateKey), "forged"],
    ["an embedded jwk", token({ jwk: { kty: "EC", crv: "P-256", x, y } }, {}, attacker.privateKey), "malformed"],
    [
      "an embedded jwk and no kid",
      token({ jwk: { kty: "EC", x, y }, kid: undefined }, {}, attacker.privateKey),
      "malformed",
    ],
    ["jku", token({ jku: "https://evil.example/jwks.json" }), "malformed"],
    ["x5u", token({ x5u: "https://evil.example/cert.pem" }), "malformed"],
    ["x5c", token({ x5c: ["MIIB"] }), "malformed"],
    ["crit with a known name", token({ crit: ["exp"] }), "malformed"],
    ["crit with an unknown name", token({ crit: ["x"], x: 1 }), "malformed"],
    ["an empty crit", token({ crit: [] }), "malformed"],
    ["b64 false", token({ b64: false, crit: ["b64"] }), "malformed"],
    ["zip", token({ zip: "DEF" }), "malformed"],
    ["an encrypted token's header", token({ enc: "A128GCM", alg: "dir" }), "malformed"],
    ["a kid that is a path", token({ kid: "../../../../dev/null" }), "unknown_key"],
    ["a kid that is a query", token({ kid: "x' UNION SELECT 'key" }), "unknown_key"],
    ["a kid that is a command", token({ kid: "key|/usr/bin/id" }), "unknown_key"],
    ["a kid that every object has", token({ kid: "__proto__" }), "unknown_key"],
    ["another kid that every object has", token({ kid: "constructor" }), "unknown_key"],
    ["an empty kid", token({ kid: "" }), "unknown_key"],
    ["a kid that is an object", token({ kid: { toString: kid } }), "malformed"],
    ["a kid that is a list", token({ kid: [kid] }), "malformed"],
    ["no kid", token({ kid: undefined }), "malformed"],
    ["typ JWT", token({ typ: "JWT" }), "wrong_type"],
    ["an id token's typ", token({ typ: "id+jwt" }), "wrong_type"],
    ["typ with an ending", token({ typ: "at+jwt; x" }), "wrong_type"],
    ["no typ", token({ typ: undefined }), "wrong_type"],
  ])("%s", async (_, attack, reason) => {
    expect(await verdictOf(attack)).toBe(reason);
  });
});
