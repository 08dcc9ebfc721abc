import { createHmac, createPrivateKey, createPublicKey, sign } from "node:crypto";
import fc from "fast-check";
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, importJWK, jwtVerify, SignJWT } from "jose";
import { describe, expect, test } from "vitest";
import type { Authentication } from "../../../src/service/session/model.ts";
import type { AccessClaims, AccessTokenResult } from "../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../src/service/session/time.ts";
import { createAccessTokens } from "../../../src/service/tokens/access-token.ts";
import { generateRing, generateSigningKey } from "../../../src/service/tokens/generate-key.ts";
import { SIGNING_ALGS, type SignatureCheck } from "../../../src/service/tokens/jws.ts";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { countingEntropy, ISSUER, NOW, SID, someKeys, someSession, timeAt } from "../../support/tokens.ts";

const TTL = 300_000;
const keys = someKeys();

function tokensOf(options: Partial<Parameters<typeof createAccessTokens>[0]> = {}) {
  return createAccessTokens({
    keys,
    issuer: ISSUER,
    ttlMs: TTL,
    entropy: countingEntropy(),
    time: timeAt(() => NOW),
    ...options,
  });
}

function privateJwk() {
  const signing = keys.ring.signing.find((key) => key.state === "signing");
  if (signing?.jwk === undefined) throw new Error("no signing key");
  return { kid: signing.kid, jwk: signing.jwk };
}

const segment = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Signs any header and payload with the service's own key. */
function forge(header: string, payload: string): string {
  const key = createPrivateKey({ key: privateJwk().jwk, format: "jwk" });
  const input = `${header}.${payload}`;
  return `${input}.${sign("sha256", Buffer.from(input), { key, dsaEncoding: "ieee-p1363" }).toString("base64url")}`;
}

function claimsOf(verified: AccessTokenResult): AccessClaims {
  if (!verified.ok) throw new Error(verified.reason);
  return verified.claims;
}

function reasonOf(verified: AccessTokenResult): string {
  return verified.ok ? "none" : verified.reason;
}

describe.each(SIGNING_ALGS)("access tokens under %s", (alg) => {
  const own = someKeys(alg);
  const tokens = tokensOf({ keys: own });

  test("are accepted by an independent implementation that has the JWKS alone", async () => {
    const { token } = tokens.issue(someSession(), NOW);
    const { payload, protectedHeader } = await jwtVerify(
      token,
      createLocalJWKSet({ keys: [...own.current.jwks.keys] }),
      {
        issuer: ISSUER,
        audience: "https://api.example",
        typ: "at+jwt",
        algorithms: [alg],
        currentDate: new Date(NOW),
      },
    );
    expect(protectedHeader).toEqual({ typ: "at+jwt", alg, kid: own.current.signing.kid });
    expect(payload).toMatchObject({ sub: "user-1", sid: SID, client_id: "app", iat: Math.floor(NOW / 1000) });
  });

  test("are verified by the issuer itself", () => {
    const { token, expiresAt } = tokens.issue(someSession({ claims: '{"role":"admin"}' }), NOW);
    expect(claimsOf(tokens.verify(token))).toMatchObject({
      sid: SID,
      sub: "user-1",
      exp: expiresAt / 1000,
      all: { role: "admin" },
    });
  });

  test("that the other algorithm or another key signed are refused", () => {
    const { token } = tokensOf({ keys: someKeys(alg) }).issue(someSession(), NOW);
    expect(tokens.verify(token)).toEqual({ ok: false, reason: "unknown_key" });
    const [, payload, signature] = token.split(".");
    const [header] = tokens.issue(someSession(), NOW).token.split(".");
    expect(tokens.verify(`${header}.${payload}.${signature}`)).toEqual({ ok: false, reason: "forged" });
  });
});

describe("the claims of an access token", () => {
  test("are those of RFC 9068 and the session, and no others", () => {
    const { token } = tokensOf().issue(someSession({ claims: '{"scope":"a b","n":[1,{"x":null}]}' }), NOW);
    expect(decodeJwt(token)).toEqual({
      iss: ISSUER,
      sub: "user-1",
      aud: "https://api.example",
      exp: Math.floor((NOW + TTL) / 1000),
      iat: Math.floor(NOW / 1000),
      jti: "AQEBAQEBAQEBAQEBAQEBAQ",
      sid: SID,
      sct: someSession().createdAt,
      client_id: "app",
      scope: "a b",
      n: [1, { x: null }],
    });
    expect(decodeProtectedHeader(token)).toEqual({ typ: "at+jwt", alg: "ES256", kid: keys.current.signing.kid });
  });

  test("say that a device key was proven only if the caller says so", () => {
    const key = { algorithm: "ES256", bytes: new Uint8Array(64), thumbprint: new Uint8Array(32) } as const;
    const session = someSession({ device: { key, state: "bound", since: NOW } });
    expect(decodeJwt(tokensOf().issue(session, NOW).token).device_bound).toBeUndefined();
    expect(decodeJwt(tokensOf().issue(session, NOW, true).token).device_bound).toBe(true);
  });

  test("say when and how the user authenticated, to the second, and that wins over claims of its own", () => {
    const claims = '{"acr":"silver","amr":["pwd"],"auth_time":1,"role":"user","sct":1}';
    const of = (authentication: Authentication) =>
      decodeJwt(tokensOf().issue(someSession({ claims, authentication }), NOW).token);
    expect(of({ time: wallMs(1_700_000_000_999), methods: ["otp"], contextClass: "gold" })).toMatchObject({
      auth_time: 1_700_000_000,
      amr: ["otp"],
      acr: "gold",
      role: "user",
      sct: someSession().createdAt,
    });
    expect(of({ time: wallMs(0), methods: [], contextClass: "gold" })).toMatchObject({
      auth_time: 1,
      amr: ["pwd"],
      acr: "gold",
    });
  });

  test("say who acts for the user of a session that was given it by hand, before the name was reserved", () => {
    const claims = '{"act":{"sub":"support-1"},"sv":9,"role":"user"}';
    const issued = decodeJwt(tokensOf().issue(someSession({ claims }), NOW).token);
    expect([issued.act, issued.sv, issued.role]).toEqual([{ sub: "support-1" }, undefined, "user"]);
  });

  test("have the authentication also of a session without claims of its own", () => {
    const authentication = { time: wallMs(1_700_000_000_000), methods: ["otp"], contextClass: "" };
    const { token } = tokensOf().issue(someSession({ claims: "{}", authentication }), NOW);
    expect(decodeJwt(token)).toMatchObject({ auth_time: 1_700_000_000, amr: ["otp"] });
  });

  test("carry any subject, client, audience and claims unchanged", () => {
    const text = fc.string({ unit: "grapheme", maxLength: 60 });
    const input = fc.record({
      subject: text,
      clientId: text,
      audience: text,
      more: fc.dictionary(text, fc.jsonValue()),
    });
    const tokens = tokensOf();
    const reserved = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "sid", "client_id", "cnf"];
    fc.assert(
      fc.property(input, ({ more, ...session }) => {
        const claims = JSON.stringify(more);
        const { all } = claimsOf(tokens.verify(tokens.issue(someSession({ ...session, claims }), NOW).token));
        expect(all).toMatchObject({ sub: session.subject, aud: session.audience, client_id: session.clientId });
        const own = Object.entries(JSON.parse(claims)).filter(([name]) => !reserved.includes(name));
        expect(new Map(Object.entries(all))).toEqual(new Map([...Object.entries(all), ...own]));
      }),
    );
  });

  test("are never overridden by the session's own", () => {
    const reserved = {
      iss: "x",
      sub: "x",
      aud: "x",
      exp: 9e9,
      nbf: 9e9,
      iat: 0,
      jti: "x",
      sid: "x",
      client_id: "x",
      cnf: {},
    };
    const plain = decodeJwt(tokensOf().issue(someSession(), NOW).token);
    const tokens = tokensOf();
    expect(decodeJwt(tokens.issue(someSession({ claims: JSON.stringify(reserved) }), NOW).token)).toEqual(plain);
    const twice = '{"sub":"x","\\u0073ub":"y","role":"r"}';
    const { token } = tokensOf().issue(someSession({ claims: twice }), NOW);
    expect(
      Buffer.from(token.split(".")[1] ?? "", "base64url")
        .toString()
        .match(/"sub"/g),
    ).toHaveLength(1);
    expect(decodeJwt(token)).toEqual({ ...plain, role: "r" });
  });

  test("have an id of their own each time", () => {
    const tokens = tokensOf();
    const jti = () => decodeJwt(tokens.issue(someSession(), NOW).token).jti;
    expect(jti()).not.toBe(jti());
  });
});

describe("the life of an access token", () => {
  test("is the configured one, shortened by up to a fifth and never lengthened", () => {
    const fraction = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fraction, fc.integer({ min: 1000, max: 86_400_000 }), (drawn, ttl) => {
        const { expiresAt } = tokensOf({ entropy: countingEntropy(drawn), ttlMs: ttl }).issue(someSession(), NOW);
        expect(expiresAt).toBeLessThanOrEqual(NOW + ttl);
        expect(expiresAt).toBeGreaterThan(NOW + ttl * 0.8 - 1000);
      }),
    );
    const { expiresAt } = tokensOf({ entropy: countingEntropy(0.5) }).issue(someSession(), NOW);
    expect(expiresAt).toBe(Math.floor((NOW + TTL * 0.9) / 1000) * 1000);
  });

  test("ends with the session's, whichever expiry comes first", () => {
    const left = fc.integer({ min: 0, max: 400_000 });
    const tokens = tokensOf();
    fc.assert(
      fc.property(left, left, (idle, absolute) => {
        const session = someSession({ idleExpiresAt: storeMs(NOW + idle), absoluteExpiresAt: storeMs(NOW + absolute) });
        const end = Math.min(NOW + TTL, NOW + idle, NOW + absolute);
        const { token, expiresAt } = tokens.issue(session, NOW);
        expect(expiresAt).toBe(Math.floor(end / 1000) * 1000);
        expect(decodeJwt(token).exp).toBe(expiresAt / 1000);
      }),
    );
  });

  test("of a session in its last second is over already", () => {
    const tokens = tokensOf();
    const { token } = tokens.issue(someSession({ idleExpiresAt: storeMs(NOW + 300) }), NOW); // `exp` is rounded down to 678 ms before NOW.
    expect(tokens.verify(token)).toMatchObject({ ok: false, reason: "expired", claims: { sid: SID } });
  });

  test("is stamped and checked by the wall clock, and matched with the end of all by the store's time", () => {
    const shiftMs = 3_600_000;
    let now: number = NOW;
    const tokens = tokensOf({ time: timeAt(() => now, shiftMs) });
    const { token, expiresAt } = tokens.issue(someSession(), NOW);
    const { iat, exp, sct } = decodeJwt(token);
    expect([iat, sct]).toEqual([Math.floor((NOW + shiftMs) / 1000), NOW]);
    expect(expiresAt).toBe((exp ?? 0) * 1000);
    now = expiresAt - shiftMs - 1;
    expect(tokens.verify(token)).toMatchObject({ ok: true });
    now = expiresAt - shiftMs;
    expect(tokens.verify(token)).toMatchObject({ ok: false, reason: "expired" });
  });

  test("ends at exp to the millisecond, without leeway", () => {
    let now: number = NOW;
    const tokens = tokensOf({ time: timeAt(() => now) });
    const { token, expiresAt } = tokens.issue(someSession(), NOW);
    now = expiresAt - 1;
    expect(tokens.verify(token)).toMatchObject({ ok: true, claims: { sid: SID } });
    now = expiresAt;
    expect(tokens.verify(token)).toMatchObject({ ok: false, reason: "expired", claims: { sid: SID } });
  });
});

describe("what is no access token of ours", () => {
  const tokens = tokensOf();
  const { token } = tokens.issue(someSession({ claims: '{"role":"user"}' }), NOW);
  const [header = "", payload = "", signature = ""] = token.split(".");
  const { kid, jwk } = privateJwk();

  test("a token with any one character changed", () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    for (let at = 0; at < token.length; at += 1) {
      const other = alphabet[(alphabet.indexOf(token[at] ?? "") + 1) % 64];
      expect(tokens.verify(token.slice(0, at) + other + token.slice(at + 1))).toMatchObject({ ok: false });
    }
  });

  test("a signature that decodes to the same bytes but is spelled otherwise", () => {
    const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    const last = alphabet.indexOf(signature.at(-1) ?? "");
    const bytes = Buffer.from(signature, "base64url");
    for (let spare = 1; spare < 16; spare += 1) {
      const twin = signature.slice(0, -1) + alphabet[last + spare];
      expect(Buffer.from(twin, "base64url")).toEqual(bytes);
      expect(tokens.verify(`${header}.${payload}.${twin}`)).toEqual({ ok: false, reason: "malformed" });
    }
    for (const twin of [`${signature}=`, `${signature}==`, `${signature}\n`, ` ${signature}`, `${signature}A`]) {
      expect(tokens.verify(`${header}.${payload}.${twin}`)).toEqual({ ok: false, reason: "malformed" });
    }
  });

  test("any text, without throwing", () => {
    const part = fc.oneof(fc.string(), fc.base64String(), fc.constantFrom(header, payload, signature, ""));
    fc.assert(
      fc.property(fc.array(part, { maxLength: 5 }), (parts) => {
        const input = parts.join(".");
        fc.pre(input !== token);
        expect(["malformed", "unknown_key", "forged", "expired"]).toContain(reasonOf(tokens.verify(input)));
      }),
    );
  });

  test("a token with more or fewer segments, or a longer one than we make", () => {
    for (const input of [
      "",
      ".",
      "..",
      header,
      `${header}.${payload}`,
      `${token}.`,
      `.${token}`,
      `${token}.${signature}`,
    ]) {
      expect(tokens.verify(input)).toEqual({ ok: false, reason: "malformed" });
    }
    const lengthOf = (pad: number) =>
      header.length + 2 + segment({ ...decodeJwt(token), pad: "x".repeat(pad) }).length + signature.length;
    const padded = (length: number) => forge(header, segment({ ...decodeJwt(token), pad: "x".repeat(length) }));
    expect(tokens.verify(padded(10_000))).toMatchObject({ ok: true, claims: { sid: SID } });
    expect(tokens.verify(padded(16_384))).toEqual({ ok: false, reason: "malformed" });
    const edge = Array.from({ length: 4_000 }, (_, more) => more + 9_000).find((pad) => lengthOf(pad) >= 16_384) ?? 0;
    expect(lengthOf(edge)).toBe(16_384);
    expect(tokens.verify(padded(edge))).toMatchObject({ ok: true });
    expect(tokens.verify(padded(edge + 1))).toEqual({ ok: false, reason: "malformed" });
  });

  test.each([
    ["no algorithm", { typ: "at+jwt", alg: "none", kid }],
    ["none, spelled otherwise", { typ: "at+jwt", alg: "nOnE", kid }],
    ["a symmetric algorithm", { typ: "at+jwt", alg: "HS256", kid }],
    ["another asymmetric algorithm", { typ: "at+jwt", alg: "EdDSA", kid }],
    ["another type", { typ: "JWT", alg: "ES256", kid }],
    ["the type in full", { typ: "application/at+jwt", alg: "ES256", kid }],
    ["no type", { alg: "ES256", kid }],
    ["no kid", { typ: "at+jwt", alg: "ES256" }],
    ["a path for a kid", { typ: "at+jwt", alg: "ES256", kid: "../../keys.json" }],
    ["a key of its own", { typ: "at+jwt", alg: "ES256", kid, jwk: { kty: "EC", crv: "P-256", x: jwk.x, y: jwk.y } }],
    ["a place to fetch keys from", { typ: "at+jwt", alg: "ES256", kid, jku: "https://evil.example/jwks" }],
    ["a certificate", { typ: "at+jwt", alg: "ES256", kid, x5u: "https://evil.example/c" }],
    ["critical extensions", { typ: "at+jwt", alg: "ES256", kid, crit: ["b64"], b64: false }],
    ["members in another order", { alg: "ES256", typ: "at+jwt", kid }],
  ])("a header with %s, though our key signed it", (_, other) => {
    expect(["malformed", "unknown_key"]).toContain(reasonOf(tokens.verify(forge(segment(other), payload))));
    expect(["malformed", "unknown_key"]).toContain(reasonOf(tokens.verify(`${segment(other)}.${payload}.`)));
  });

  test("a header of our form names an unknown key, any other is malformed", () => {
    const reason = (other: object) => reasonOf(tokens.verify(`${segment(other)}.${payload}.${signature}`));
    const ours = { typ: "at+jwt", alg: "ES256", kid: "a key that is gone" };
    expect(reason(ours)).toBe("unknown_key");
    const others = [
      { ...ours, kid: 1 },
      { ...ours, alg: "HS256" },
      { ...ours, typ: "jwt" },
      { ...ours, crit: [] },
      { ...ours, jku: "https://evil.example/jwks" },
      [ours],
    ];
    for (const other of others) expect(reason(other)).toBe("malformed");
  });

  test("an HMAC under our public key", () => {
    const spki = createPublicKey({ key: { kty: "EC", crv: "P-256", x: jwk.x, y: jwk.y } as never, format: "jwk" });
    const input = `${segment({ typ: "at+jwt", alg: "HS256", kid })}.${payload}`;
    const mac = createHmac("sha256", spki.export({ type: "spki", format: "pem" }))
      .update(input)
      .digest("base64url");
    expect(tokens.verify(`${input}.${mac}`)).toEqual({ ok: false, reason: "malformed" });
  });

  test("the null signature", () => {
    expect(tokens.verify(`${header}.${payload}.${Buffer.alloc(64).toString("base64url")}`)).toEqual({
      ok: false,
      reason: "forged",
    });
  });

  test("a payload that our key signed but that is none of ours", async () => {
    const good = decodeJwt(token);
    const otherwise = [
      [],
      null,
      "text",
      {},
      { ...good, sid: `${SID}=` },
      { ...good, sid: undefined },
      { ...good, sid: [SID] },
      { ...good, iss: undefined },
      { ...good, jti: undefined },
      { ...good, client_id: undefined },
      { ...good, exp: String(good.exp) },
      { ...good, exp: undefined },
      { ...good, sub: 1 },
      { ...good, aud: [] },
      { ...good, aud: ["https://api.example", 1] },
      { ...good, aud: undefined },
    ];
    for (const claims of otherwise)
      expect(tokens.verify(forge(header, segment(claims)))).toEqual({ ok: false, reason: "malformed" });
    expect(tokens.verify(forge(header, Buffer.from("{").toString("base64url")))).toEqual({
      ok: false,
      reason: "malformed",
    });
    const foreign = segment({ ...good, iss: "https://other.example" });
    expect(tokens.verify(forge(header, foreign))).toEqual({ ok: false, reason: "wrong_issuer" });
    expect(tokens.verify(forge(header, segment(good)))).toMatchObject({ ok: true, claims: { sid: SID } });
  });

  test("accepts what jose signs in our form: nothing of the form is private to our code", async () => {
    const key = await importJWK(jwk, "ES256");
    const signed = await new SignJWT(decodeJwt(token))
      .setProtectedHeader({ typ: "at+jwt", alg: "ES256", kid })
      .sign(key);
    expect(tokens.verify(signed)).toMatchObject({ ok: true, claims: { sid: SID } });
  });

  test("does not distinguish s from n − s: ECDSA signatures are malleable, so a session is revoked by its sid, never by token text", () => {
    const n = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
    const raw = Buffer.from(signature, "base64url");
    const s = n - BigInt(`0x${raw.subarray(32).toString("hex")}`);
    const twin = Buffer.concat([raw.subarray(0, 32), Buffer.from(s.toString(16).padStart(64, "0"), "hex")]);
    expect(twin).not.toEqual(raw);
    expect(tokens.verify(`${header}.${payload}.${twin.toString("base64url")}`)).toEqual(tokens.verify(token));
  });
});

describe("a ring that changes", () => {
  test("verifies under published and retired keys, and no longer under revoked ones", () => {
    const ring = generateRing("ES256", NOW);
    const [signing, published] = ring.signing;
    if (signing === undefined || published === undefined) throw new Error("two keys");
    const live = { current: readyKeys(ring) };
    const tokens = tokensOf({ keys: live });
    const before = tokens.issue(someSession(), NOW).token;
    live.current = readyKeys({
      ...ring,
      signing: [
        { ...published, state: "signing" },
        { ...signing, state: "retired" },
      ],
    });
    const after = tokens.issue(someSession(), NOW).token;
    expect(tokens.verify(before)).toMatchObject({ ok: true, claims: { sid: SID } });
    expect(tokens.verify(after)).toMatchObject({ ok: true, claims: { sid: SID } });
    live.current = readyKeys(ring);
    expect(tokens.verify(after)).toMatchObject({ ok: true, claims: { sid: SID } });
    const { jwk: _, ...name } = signing;
    live.current = readyKeys({
      ...ring,
      signing: [
        { ...published, state: "signing" },
        { ...name, state: "revoked" },
      ],
    });
    expect(tokens.verify(before)).toEqual({ ok: false, reason: "unknown_key" });
    expect(live.current.revokedKids).toEqual([signing.kid]);
    expect(live.current.jwks.keys.map((key) => key.kid)).toEqual([published.kid]);
  });

  test("may hold keys of both algorithms", () => {
    const next = { ...generateSigningKey("EdDSA", NOW) };
    const ring = { ...keys.ring, signing: [...keys.ring.signing, next] };
    const live = { current: readyKeys(ring) };
    const tokens = tokensOf({ keys: live });
    const before = tokens.issue(someSession(), NOW).token;
    const signing = ring.signing.map((key) => ({ ...key, state: key === next ? "signing" : "retired" }) as const);
    live.current = readyKeys({ ...ring, signing });
    expect(decodeProtectedHeader(tokens.issue(someSession(), NOW).token).alg).toBe("EdDSA");
    expect(tokens.verify(before)).toMatchObject({ ok: true, claims: { sid: SID } });
    expect(tokens.verify(tokens.issue(someSession(), NOW).token)).toMatchObject({ ok: true, claims: { sid: SID } });
  });
});

describe("a token that is presented again", () => {
  /** Returns keys that count the checks of signatures. */
  function counted(ring = someKeys()) {
    let checked = 0;
    const count =
      (check: SignatureCheck): SignatureCheck =>
      (signed) => {
        checked++;
        return check(signed);
      };
    const countedKeys = (from: typeof ring.current) => ({
      ...from,
      checks: new Map([...from.checks].map(([header, check]) => [header, count(check)])),
    });
    const keys = { current: countedKeys(ring.current) };
    const reload = () => {
      keys.current = countedKeys(ring.current);
    };
    return { keys, reload, checked: () => checked };
  }
  const spoilt = (token: string) => `${token.slice(0, -3)}${token.at(-3) === "A" ? "B" : "A"}${token.slice(-2)}`;

  test("is not verified again while it is refused: forged, or expired, or of another issuer", () => {
    const { keys, checked } = counted();
    const { token } = tokensOf({ keys }).issue(someSession(), NOW);
    const later = tokensOf({ keys, time: timeAt(() => NOW + TTL) });
    const foreign = tokensOf({ keys, issuer: "https://other.example" });
    for (const [tokens, text, reason] of [
      [later, spoilt(token), "forged"],
      [later, token, "expired"],
      [foreign, token, "wrong_issuer"],
    ] as const) {
      const before = checked();
      for (let times = 0; times < 5; times++) expect(reasonOf(tokens.verify(text))).toBe(reason);
      expect(checked()).toBe(before + 1);
    }
  });

  test("is accepted once nothing speaks against it: a clock that was set back, a key that has arrived", () => {
    let now: number = NOW + TTL;
    const own = someKeys();
    const keys = { current: { ...own.current, checks: new Map<string, SignatureCheck>() } };
    const tokens = tokensOf({ keys, time: timeAt(() => now) });
    const { token } = tokens.issue(someSession(), NOW);
    expect(reasonOf(tokens.verify(token))).toBe("unknown_key");
    keys.current = { ...own.current, checks: new Map(own.current.checks) };
    expect(reasonOf(tokens.verify(token))).toBe("expired");
    now = NOW;
    expect(reasonOf(tokens.verify(token))).toBe("none");
    keys.current = { ...own.current, checks: new Map() };
    expect(reasonOf(tokens.verify(token))).toBe("unknown_key");
  });

  test("is verified again under a ring that was read again", () => {
    const { keys, reload, checked } = counted();
    const tokens = tokensOf({ keys });
    const text = spoilt(tokens.issue(someSession(), NOW).token);
    for (let times = 1; times <= 3; times++, reload()) {
      expect(reasonOf(tokens.verify(text))).toBe("forged");
      expect(checked()).toBe(times);
    }
  });
});

describe("a token that is made of another one", () => {
  // The stores' clocks differ in what they are ahead of the wall clock, and a session belongs to one of them.
  const time = {
    ...timeAt(() => NOW),
    shiftMs: (place?: object) => (place && "sid" in place && place.sid === SID ? 7_000 : 0),
  };
  const tokens = tokensOf({ time });
  const session = someSession({ claims: '{"role":"editor","team":"a"}', version: 3 });
  const token = claimsOf(tokens.verify(tokens.issue(session, NOW).token));
  const narrowing = {
    ...{ audience: "orders", clientId: "gateway", claims: ["role"], endsAt: session.absoluteExpiresAt },
    ...{ act: undefined, cnf: undefined },
  };
  const narrowed = (change: object = {}): Readonly<Record<string, unknown>> => {
    const { token: text, expiresAt } = tokens.narrow(token, NOW, { ...narrowing, ...change });
    return { ...decodeJwt(text), expiresAt };
  };
  const wallSeconds = Math.floor((NOW + 7_000) / 1000);

  test("has the session, version and creation time of the other, and of its claims those that are named", () => {
    const { jti, ...rest } = narrowed();
    expect(rest).toEqual({
      ...{ iss: ISSUER, sub: "user-1", aud: "orders", sid: SID, sct: NOW, sv: 3, client_id: "gateway", role: "editor" },
      ...{ iat: wallSeconds, exp: token.exp, expiresAt: token.exp * 1000 },
    });
    expect(jti).not.toBe(token.jti);
  });

  test("ends with the other, or when it is said to end, in whole seconds by the wall clock", () => {
    expect(narrowed({ endsAt: storeMs(NOW + 30_999) }).exp).toBe(Math.floor((NOW + 37_999) / 1000));
    expect(narrowed({ endsAt: storeMs(NOW + 10 * TTL) }).exp).toBe(token.exp);
  });

  test("names who acts and the key, whatever claims are kept", () => {
    const own = { act: { sub: "agent" }, cnf: { jkt: "key" }, audience: ["a", "b"] };
    const names = [
      "iss",
      "sub",
      "aud",
      "exp",
      "iat",
      "jti",
      "sid",
      "client_id",
      "act",
      "cnf",
      "nbf",
      "absent",
      "__proto__",
    ];
    const { iss, aud, exp, client_id, act, cnf, ...rest } = narrowed({ ...own, claims: names });
    expect({ iss, aud, exp, client_id, act, cnf }).toEqual({
      ...{ iss: ISSUER, aud: ["a", "b"], exp: token.exp, client_id: "gateway", act: own.act, cnf: own.cnf },
    });
    expect(Object.keys(rest).sort()).toEqual(["expiresAt", "iat", "jti", "sct", "sid", "sub", "sv"]);
  });
});
