import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT } from "jose";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseSessionId } from "../../src/session/model.ts";
import { generateRing } from "../../src/tokens/generate-key.ts";
import { readyKeys } from "../../src/tokens/keys.ts";
import { createVerifier, type Refusal, type Verifier } from "../../src/verifier/index.ts";
import { parseObject } from "../../src/verifier/strict-json.ts";
import { AUDIENCE, follow, ISSUER, startIssuer } from "./support.ts";

/** What is published about attacks on JWT verifiers (RFC 8725, CVE lists, public cheat sheets), tried with our own key. */
const ring = generateRing("ES256", Date.now());
const { kid, jwk = {} } = ring.signing[0] ?? { kid: "" };
const privateKey = createPrivateKey({ key: jwk, format: "jwk" });
const publicKey = createPublicKey({
  key: { kty: "EC", crv: "P-256", x: jwk.x, y: jwk.y } as typeof jwk,
  format: "jwk",
});
const attacker = generateKeyPairSync("ec", { namedCurve: "P-256" });

const now = Math.floor(Date.now() / 1000);
const claims = {
  iss: ISSUER,
  sub: "user-1",
  aud: AUDIENCE,
  exp: now + 600,
  iat: now,
  jti: "j1",
  sid: "AAECAwQFBgcICQoLDA0ODxA",
  client_id: "app",
};
const head = { typ: "at+jwt", alg: "ES256", kid };
const json = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
const raw = (text: string | Buffer) => Buffer.from(text).toString("base64url");

/** Signs any header and payload segments. */
function signed(header: string, payload: string, key = privateKey): string {
  const input = `${header}.${payload}`;
  return `${input}.${sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}
const token = (header: object = {}, payload: object = {}, key = privateKey) =>
  signed(json({ ...head, ...header }), json({ ...claims, ...payload }), key);

let verifier: Verifier;
const server = createServer((_, response) => response.end(JSON.stringify(readyKeys(ring).jwks)));
let fetches = 0;
const elsewhere: string[] = [];

beforeAll(async () => {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const jwksUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const spying: typeof fetch = (input, init) => {
    fetches += 1;
    if (String(input) !== jwksUrl) elsewhere.push(String(input));
    return fetch(input, init);
  };
  verifier = createVerifier({ jwksUrl, issuer: ISSUER, audience: AUDIENCE, fetch: spying });
  await verifier.ready;
});

afterAll(() => {
  verifier.close();
  server.close();
});

async function says(text: string): Promise<Refusal | "ok"> {
  const verdict = await verifier.verify(text);
  return verdict.ok ? "ok" : verdict.reason;
}

describe("a good token", () => {
  it("is accepted with its claims, which nobody can change for the next bearer", async () => {
    const verdict = await verifier.verify(token({}, { role: { admin: false } }));
    expect(verdict).toEqual({ ok: true, claims: { ...claims, role: { admin: false } } });
    if (!verdict.ok) return;
    expect(() => Object.assign(verdict.claims, { sub: "root" })).toThrow(TypeError);
    expect(() => Object.assign(verdict.claims.role as object, { admin: true })).toThrow(TypeError);
  });

  it("may be made by another implementation, with its header in any order", async () => {
    const made = await new SignJWT(claims).setProtectedHeader({ kid, alg: "ES256", typ: "at+jwt" }).sign(privateKey);
    expect(await says(made)).toBe("ok");
    const inFull = await new SignJWT(claims)
      .setProtectedHeader({ kid, alg: "ES256", typ: "application/at+jwt" })
      .sign(privateKey);
    expect(await says(inFull)).toBe("ok");
  });

  it("may carry claims as large as a session may have, in any script", async () => {
    expect(await says(token({}, { large: "é\ufffd".repeat(1500) }))).toBe("ok");
  });

  it("may name us among several audiences", async () => {
    expect(await says(token({}, { aud: ["https://other.example", AUDIENCE] }))).toBe("ok");
  });
});

describe("every attack is refused with a closed reason", () => {
  const payload = json(claims);
  const header = json(head);
  const hmac = (key: string | Buffer) => {
    const input = `${json({ ...head, alg: "HS256" })}.${payload}`;
    return `${input}.${createHmac("sha256", key).update(input).digest("base64url")}`;
  };
  const { x, y } = attacker.publicKey.export({ format: "jwk" });
  const good = signed(header, payload);
  const [, , goodSignature = ""] = good.split(".");

  it.each<[string, string, Refusal]>([
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
    ["an HMAC under our public key (PEM)", hmac(publicKey.export({ type: "spki", format: "pem" })), "malformed"],
    ["an HMAC under our public key (DER)", hmac(publicKey.export({ type: "spki", format: "der" })), "malformed"],
    ["an HMAC under nothing", hmac(""), "malformed"],
    ["HS256 with a long signature", token({ alg: "HS256" }), "wrong_algorithm"],
    ["RS256 for ES256", token({ alg: "RS256" }), "wrong_algorithm"],
    ["PS256 for ES256", token({ alg: "PS256" }), "wrong_algorithm"],
    ["ES384 for ES256", token({ alg: "ES384" }), "wrong_algorithm"],
    ["ES256K for ES256", token({ alg: "ES256K" }), "wrong_algorithm"],
    ["EdDSA for a key of ES256", token({ alg: "EdDSA" }), "wrong_algorithm"],
    ["a stranger's key under our kid", token({}, {}, attacker.privateKey), "forged"],
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
    ["the null signature", `${header}.${payload}.${raw(Buffer.alloc(64))}`, "forged"],
    [
      "r = s = n",
      `${header}.${payload}.${raw(Buffer.from("ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551".repeat(2), "hex"))}`,
      "forged",
    ],
    [
      "r = 0",
      `${header}.${payload}.${raw(Buffer.concat([Buffer.alloc(32), Buffer.from(goodSignature, "base64url").subarray(32)]))}`,
      "forged",
    ],
    [
      "s = 0",
      `${header}.${payload}.${raw(Buffer.concat([Buffer.from(goodSignature, "base64url").subarray(0, 32), Buffer.alloc(32)]))}`,
      "forged",
    ],
    [
      "r > n",
      `${header}.${payload}.${raw(Buffer.concat([Buffer.alloc(32, 0xff), Buffer.from(goodSignature, "base64url").subarray(32)]))}`,
      "forged",
    ],
    [
      "a signature in DER",
      `${header}.${payload}.${sign("sha256", Buffer.from(`${header}.${payload}`), privateKey).toString("base64url")}`,
      "malformed",
    ],
    ["no signature", `${header}.${payload}.`, "malformed"],
    ["no dots", raw(good), "malformed"],
    ["two segments", `${header}.${payload}`, "malformed"],
    ["four segments", `${good}.${goodSignature}`, "malformed"],
    ["five segments, as if encrypted", `${header}..${payload}.${payload}.${goodSignature}`, "malformed"],
    ["the JSON serialization", JSON.stringify({ payload, protected: header, signature: goodSignature }), "malformed"],
    ["padding after the signature", `${good}==`, "malformed"],
    ["padding after the header", `${header}=.${payload}.${goodSignature}`, "malformed"],
    ["another alphabet", good.replaceAll("-", "+").replaceAll("_", "/").concat("+"), "malformed"],
    ["a space before", ` ${good}`, "malformed"],
    ["a line break after", `${good}\n`, "malformed"],
    ["a NUL after", `${good}\0`, "malformed"],
    ["letters that look alike", good.replace("e", "е"), "malformed"],
    [
      "a name that is there twice in the header",
      signed(raw(`{"alg":"none",${JSON.stringify(head).slice(1)}`), payload),
      "malformed",
    ],
    [
      "a name that is there twice, escaped",
      signed(raw(`{"\\u0061lg":"none",${JSON.stringify(head).slice(1)}`), payload),
      "malformed",
    ],
    [
      "a name that is there twice in the claims",
      signed(header, raw(`{"sub":"root",${JSON.stringify(claims).slice(1)}`)),
      "malformed",
    ],
    [
      "a name that is there twice, deep in the claims",
      signed(header, raw(`{"a":[{"b":1,"b":2}],${JSON.stringify(claims).slice(1)}`)),
      "malformed",
    ],
    [
      "claims that are not UTF-8",
      signed(
        header,
        raw(Buffer.concat([Buffer.from(JSON.stringify(claims).slice(0, -1)), Buffer.from(',"x":"\xff"}', "latin1")])),
      ),
      "malformed",
    ],
    ["claims in UTF-16", signed(header, raw(Buffer.from(JSON.stringify(claims), "utf16le"))), "malformed"],
    ["claims after a byte order mark", signed(header, raw(`\ufeff${JSON.stringify(claims)}`)), "malformed"],
    ["claims that are a list", signed(header, json([claims])), "malformed"],
    ["claims that are null", signed(header, json(null)), "malformed"],
    ["claims that are not JSON", signed(header, raw("{sub:1}")), "malformed"],
    ["claims with something after them", signed(header, raw(`${JSON.stringify(claims)}{}`)), "malformed"],
    ["a header that is a list", signed(json([head]), payload), "malformed"],
    ["a header that is a string", signed(json("at+jwt"), payload), "malformed"],
    ["a huge token", token({}, { pad: "x".repeat(100_000) }), "malformed"],
    ["a hugely nested token", signed(header, raw(`${"[".repeat(5000)}${"]".repeat(5000)}`)), "malformed"],
    ["another issuer", token({}, { iss: "https://evil.example" }), "wrong_issuer"],
    ["an issuer with a slash more", token({}, { iss: `${ISSUER}/` }), "wrong_issuer"],
    ["a list of issuers", token({}, { iss: [ISSUER] }), "wrong_issuer"],
    ["no issuer", token({}, { iss: undefined }), "wrong_issuer"],
    ["another audience", token({}, { aud: "https://other.example" }), "wrong_audience"],
    ["no audience", token({}, { aud: undefined }), "malformed"],
    ["an empty list of audiences", token({}, { aud: [] }), "wrong_audience"],
    ["an audience that begins like ours", token({}, { aud: `${AUDIENCE}.evil.example` }), "wrong_audience"],
    ["an audience that is no text", token({}, { aud: [AUDIENCE, 1] }), "malformed"],
    [
      "a token bound to a key",
      token({}, { cnf: { jkt: "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I" } }),
      "not_bearer",
    ],
    ["a token bound to nothing", token({}, { cnf: null }), "not_bearer"],
    ["no exp", token({}, { exp: undefined }), "malformed"],
    ["exp as text", token({}, { exp: String(now + 600) }), "malformed"],
    ["exp null", token({}, { exp: null }), "malformed"],
    [
      "exp beyond all numbers",
      signed(header, raw(JSON.stringify(claims).replace(/"exp":\d+/, '"exp":1e999'))),
      "malformed",
    ],
    [
      "iat beyond all numbers",
      signed(header, raw(JSON.stringify(claims).replace(/"iat":\d+/, '"iat":1e999'))),
      "malformed",
    ],
    [
      "nbf before all numbers",
      signed(header, raw(`{"nbf":-1e999,${JSON.stringify(claims).slice(1)}`)),
      "not_yet_valid",
    ],
    ["exp before iat", token({}, { exp: now + 600, iat: now + 601 }), "malformed"],
    ["exp now", token({}, { exp: now }), "expired"],
    ["exp in the past", token({}, { exp: now - 1 }), "expired"],
    ["exp negative", token({}, { exp: -1 }), "expired"],
    ["nbf in the future", token({}, { nbf: now + 60 }), "not_yet_valid"],
    ["nbf as text", token({}, { nbf: "0" }), "not_yet_valid"],
    ["no iat", token({}, { iat: undefined }), "malformed"],
    ["no sub", token({}, { sub: undefined }), "malformed"],
    ["sub an object", token({}, { sub: { id: 1 } }), "malformed"],
    ["no sid, so that no revocation could match", token({}, { sid: undefined }), "malformed"],
    ["an empty sid", token({}, { sid: "" }), "malformed"],
    ["sid a list", token({}, { sid: [claims.sid] }), "malformed"],
    ["no jti", token({}, { jti: undefined }), "malformed"],
    ["no client_id", token({}, { client_id: undefined }), "malformed"],
    ["nothing", "", "malformed"],
  ])("%s", async (_, attack, reason) => {
    expect(await says(attack)).toBe(reason);
  });

  it("something that is no text", async () => {
    for (const value of [undefined, null, 1, {}, [good], Buffer.from(good)]) {
      expect(await says(value as string)).toBe("malformed");
    }
  });

  it("every other spelling of a good signature", async () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const last = alphabet.indexOf(good.at(-1) ?? "");
    for (let spare = 1; spare < 16; spare += 1)
      expect(await says(good.slice(0, -1) + alphabet[last + spare])).toBe("malformed");
    expect(await says(good)).toBe("ok");
  });

  it("a payload or header with spare bits set, even signed", async () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const odd = json({ ...claims, pad: "x".repeat((4 - (JSON.stringify(claims).length % 3)) % 3) });
    const spare =
      [odd, json({ ...claims, pad: "1" }), json({ ...claims, pad: "12" })].find((each) => each.length % 4 !== 0) ?? "";
    const twin = spare.slice(0, -1) + alphabet[alphabet.indexOf(spare.at(-1) ?? "") + 1];
    expect(Buffer.from(twin, "base64url")).toEqual(Buffer.from(spare, "base64url"));
    expect(await says(signed(header, spare))).toBe("ok");
    expect(await says(signed(header, twin))).toBe("malformed");
  });

  it("never asks an address that a token names, and a thousand unknown kids cost at most one reading of the keys", async () => {
    const before = fetches;
    const flood = Array.from({ length: 1000 }, (_, index) => says(token({ kid: `k${index}` })));
    expect(new Set(await Promise.all(flood))).toEqual(new Set(["unknown_key"]));
    expect(fetches - before).toBeLessThanOrEqual(1);
    expect(elsewhere).toEqual([]);
  });
});

it("the mirrored signature (s → n − s) of a revoked session is refused like the first one", async () => {
  const issuer = await startIssuer();
  const { verifier: following, says: sayNow } = follow(issuer);
  await following.ready;
  const { token: first, sid } = issuer.token();
  const n = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
  const [header, payload, signature = ""] = first.split(".");
  const bytes = Buffer.from(signature, "base64url");
  const s = n - BigInt(`0x${bytes.subarray(32).toString("hex")}`);
  const mirrored = Buffer.concat([bytes.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, "0"), "hex")]);
  const second = `${header}.${payload}.${mirrored.toString("base64url")}`;
  expect(await sayNow(first)).toBe("ok");
  expect(await sayNow(second)).toBe("ok"); // a signature as good as the other: ECDSA is malleable
  expect(parseSessionId(sid)).toBe(sid);
  issuer.revoke(sid);
  await expect.poll(() => sayNow(first)).toBe("revoked");
  expect(await sayNow(second)).toBe("revoked");
});

it("an Ed25519 signature has one spelling: S + L is refused", async () => {
  const issuer = await startIssuer();
  issuer.turn(generateRing("EdDSA", Date.now()));
  const { verifier: following, says: sayNow } = follow(issuer);
  await following.ready;
  const { token: good } = issuer.token();
  const [header, payload, signature = ""] = good.split(".");
  const bytes = Buffer.from(signature, "base64url");
  const order = 2n ** 252n + 27742317777372353535851937790883648493n;
  const s = BigInt(`0x${Buffer.from(bytes.subarray(32)).reverse().toString("hex")}`) + order;
  const other = Buffer.from(s.toString(16).padStart(64, "0"), "hex").reverse();
  expect(await sayNow(good)).toBe("ok");
  const malleated = Buffer.concat([bytes.subarray(0, 32), other]).toString("base64url");
  expect(await sayNow(`${header}.${payload}.${malleated}`)).toBe("forged");
});

describe("names that are there twice", () => {
  const parse = parseObject;

  it("are found at any depth and in any spelling", () => {
    for (const text of [
      '{"a":1,"a":1}',
      '{"a":{"b":[{"c":1,"c":2}]}}',
      '{"a":1,"\\u0061":1}',
      '{"__proto__":1,"__proto__":2}',
    ]) {
      expect(parse(text)).toBeUndefined();
    }
  });

  it("are not seen where none are", () => {
    const value = { "a:b": 'x":"y\\', '"': ":", "": { "\\": [{}, [], { a: ":" }] }, "1": 1, é: "\u2028" };
    expect(parse(JSON.stringify(value))).toEqual(value);
    expect(parse(JSON.stringify(value, null, 2))).toEqual(value);
    expect(Object.keys(parse('{"__proto__":{"a":1}}') ?? {})).toEqual(["__proto__"]);
  });
});
