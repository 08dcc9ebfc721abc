import { hkdfSync } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SessionId } from "../../../src/service/session/model.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import { generateMacKey } from "../../../src/service/tokens/generate-key.ts";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { systemEntropy } from "../../../src/service/tokens/random.ts";
import { createMac, createRefreshTokens } from "../../../src/service/tokens/refresh-token.ts";
import { createDeviceChallenges, createDeviceCookies, createProofNonces } from "../../../src/service/tokens/sealed.ts";
import { NOW, SID, someKeys } from "../../support/tokens.ts";

const MAX_AGE_MS = 600_000;
const THUMBPRINT = Uint8Array.from({ length: 32 }, (_, index) => index);
const OTHER_SID = "BAECAwQFBgcICQoLDA0ODxA" as SessionId;
const keys = someKeys();
const entropy = systemEntropy();
const challengesUnder = (current: typeof keys.current) =>
  createDeviceChallenges({ keys: { current }, maxAgeMs: MAX_AGE_MS, entropy });
const challenges = challengesUnder(keys.current);
const cookiesUnder = (current: typeof keys.current) => createDeviceCookies({ current });
const cookies = cookiesUnder(keys.current);

describe("a device challenge", () => {
  test("is accepted for its session until its maximum age", () => {
    const challenge = challenges.issue(SID, NOW);
    expect(challenge).toMatch(/^[A-Za-z0-9_-]{92}$/);
    for (const age of [0, 1, MAX_AGE_MS - 1])
      expect(challenges.check(challenge, SID, storeMs(NOW + age))).toEqual({ ok: true });
    for (const age of [MAX_AGE_MS, MAX_AGE_MS + 1, 1e11]) {
      expect(challenges.check(challenge, SID, storeMs(NOW + age))).toEqual({ ok: false, reason: "expired" });
    }
  });

  test("may be a little from the future, but not from a clock that was wrong by more", () => {
    const challenge = challenges.issue(SID, NOW);
    expect(challenges.check(challenge, SID, storeMs(NOW - MAX_AGE_MS + 1))).toEqual({ ok: true });
    expect(challenges.check(challenge, SID, storeMs(NOW - MAX_AGE_MS))).toEqual({ ok: false, reason: "expired" });
  });

  test("is refused for another session", () => {
    const challenge = challenges.issue(SID, NOW);
    expect(challenges.check(challenge, OTHER_SID, NOW)).toEqual({ ok: false, reason: "other_session" });
  });

  test("never repeats", () => {
    const issued = new Set(Array.from({ length: 5000 }, () => challenges.issue(SID, NOW)));
    expect(issued.size).toBe(5000);
  });

  test("is refused with any one bit flipped", () => {
    const raw = Buffer.from(challenges.issue(SID, NOW), "base64url");
    for (let bit = 0; bit < raw.length * 8; bit += 1) {
      const changed = Buffer.from(raw);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const reason = bit < 16 ? "malformed" : bit < 48 ? "unknown_key" : "forged";
      expect(challenges.check(changed.toString("base64url"), SID, NOW)).toEqual({ ok: false, reason });
    }
  });

  test("is no other text, whatever it is", () => {
    const bytes = fc.uint8Array({ minLength: 69, maxLength: 69 }).map((raw) => Buffer.from(raw).toString("base64url"));
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: "binary" }), bytes), (text) => {
        expect(challenges.check(text, SID, NOW)).toMatchObject({ ok: false });
      }),
    );
  });

  test("is not one of another service", () => {
    const foreign = challengesUnder(keys.foreign).issue(SID, NOW);
    expect(challenges.check(foreign, SID, NOW)).toEqual({ ok: false, reason: "unknown_key" });
    const raw = Buffer.from(foreign, "base64url");
    Buffer.from(challenges.issue(SID, NOW), "base64url").copy(raw, 0, 0, 6);
    expect(challenges.check(raw.toString("base64url"), SID, NOW)).toEqual({ ok: false, reason: "forged" });
  });

  test("stays valid while the keys rotate, and dies with a revoked key", () => {
    const [old, next] = [generateMacKey(NOW), generateMacKey(NOW)];
    const under = (...mac: Parameters<typeof readyKeys>[0]["mac"][number][]) =>
      challengesUnder(readyKeys({ signing: keys.ring.signing, mac }));
    const before = under({ ...old, state: "signing" }, next);
    const after = under({ ...old, state: "retired" }, { ...next, state: "signing" });
    expect(after.check(before.issue(SID, NOW), SID, NOW)).toEqual({ ok: true });
    expect(before.check(after.issue(SID, NOW), SID, NOW)).toEqual({ ok: true });
    const { jwk: _, ...name } = old;
    const revoked = under({ ...name, state: "revoked" }, { ...next, state: "signing" });
    expect(revoked.check(before.issue(SID, NOW), SID, NOW)).toEqual({ ok: false, reason: "unknown_key" });
  });
});

test("a nonce for proofs works like a challenge, and neither is accepted as the other", () => {
  const nonces = createProofNonces({ keys: { current: keys.current }, maxAgeMs: MAX_AGE_MS, entropy });
  const nonce = nonces.issue(SID, NOW);
  expect(nonces.check(nonce, SID, NOW)).toEqual({ ok: true });
  expect(nonces.check(nonce, SID, storeMs(NOW + MAX_AGE_MS))).toEqual({ ok: false, reason: "expired" });
  expect(challenges.check(nonce, SID, NOW)).toEqual({ ok: false, reason: "malformed" });
  expect(nonces.check(challenges.issue(SID, NOW), SID, NOW)).toEqual({ ok: false, reason: "malformed" });
});

test("a challenge is not issued for a session id of another length", () => {
  for (const sid of [SID.slice(0, -2), `${SID}AA`]) {
    expect(() => challenges.issue(sid as SessionId, NOW)).toThrow(RangeError);
  }
});

describe("a device cookie", () => {
  test("gives back what it was issued for", () => {
    const input = fc.record({
      sid: fc
        .uint8Array({ minLength: 17, maxLength: 17 })
        .map((raw) => Buffer.from(raw).toString("base64url") as SessionId),
      thumbprint: fc.uint8Array({ minLength: 32, maxLength: 32 }),
      issuedAtMs: fc.integer({ min: 0, max: 2 ** 48 - 1 }),
    });
    fc.assert(
      fc.property(input, ({ sid, thumbprint, issuedAtMs }) => {
        const value = cookies.issue(sid, thumbprint, storeMs(issuedAtMs));
        expect(value).toMatch(/^[A-Za-z0-9_-]{124}$/);
        expect(cookies.read(value)).toEqual({ ok: true, sid, thumbprint, issuedAtMs });
      }),
    );
  });

  test("keeps its thumbprint while others are read", () => {
    const first = cookies.read(cookies.issue(SID, THUMBPRINT, NOW));
    cookies.read(cookies.issue(SID, new Uint8Array(32).fill(9), NOW));
    expect(first).toMatchObject({ thumbprint: THUMBPRINT });
  });

  test("is refused with any one bit flipped, cut, or longer", () => {
    const value = cookies.issue(SID, THUMBPRINT, NOW);
    const raw = Buffer.from(value, "base64url");
    for (let bit = 0; bit < raw.length * 8; bit += 1) {
      const changed = Buffer.from(raw);
      changed[bit >> 3] = (changed[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const reason = bit < 16 ? "malformed" : bit < 48 ? "unknown_key" : "forged";
      expect(cookies.read(changed.toString("base64url"))).toEqual({ ok: false, reason });
    }
    for (let length = 0; length < value.length; length += 1) {
      expect(cookies.read(value.slice(0, length))).toEqual({ ok: false, reason: "malformed" });
    }
    for (const extra of ["A", "=", " ", "\n", value]) {
      expect(cookies.read(value + extra)).toEqual({ ok: false, reason: "malformed" });
      expect(cookies.read(extra + value)).toEqual({ ok: false, reason: "malformed" });
    }
  });

  test("is no other text, whatever it is", () => {
    const bytes = fc.uint8Array({ minLength: 93, maxLength: 93 }).map((raw) => Buffer.from(raw).toString("base64url"));
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.string({ unit: "binary" }), bytes), (text) => {
        expect(cookies.read(text)).toMatchObject({ ok: false });
      }),
    );
  });

  test("is not issued for what it could not carry", () => {
    expect(() => cookies.issue("short" as SessionId, THUMBPRINT, NOW)).toThrow(RangeError);
    expect(() => cookies.issue(SID, THUMBPRINT.subarray(1), NOW)).toThrow(RangeError);
    expect(() => cookies.issue(SID, THUMBPRINT, storeMs(2 ** 48))).toThrow(RangeError);
    expect(() => cookies.issue(SID, THUMBPRINT, storeMs(-1))).toThrow(RangeError);
  });

  test("of another service is unknown", () => {
    const foreign = cookiesUnder(keys.foreign).issue(SID, THUMBPRINT, NOW);
    expect(cookies.read(foreign)).toEqual({ ok: false, reason: "unknown_key" });
  });

  test("stays valid while the keys rotate, in instances with the old ring and the new one", () => {
    const [old, next] = [generateMacKey(NOW), generateMacKey(NOW)];
    const under = (...mac: Parameters<typeof readyKeys>[0]["mac"][number][]) =>
      cookiesUnder(readyKeys({ signing: keys.ring.signing, mac }));
    const before = under({ ...old, state: "signing" }, next);
    const after = under({ ...old, state: "retired" }, { ...next, state: "signing" });
    expect(after.read(before.issue(SID, THUMBPRINT, NOW))).toMatchObject({ ok: true });
    expect(before.read(after.issue(SID, THUMBPRINT, NOW))).toMatchObject({ ok: true });
    const { jwk: _, ...name } = old;
    const revoked = under({ ...name, state: "revoked" }, { ...next, state: "signing" });
    expect(revoked.read(before.issue(SID, THUMBPRINT, NOW))).toEqual({ ok: false, reason: "unknown_key" });
  });
});

describe("what the ring's MAC keys authenticate", () => {
  test("is of one kind: no challenge, cookie or refresh token passes as another, not even with its first bytes changed", () => {
    const refreshTokens = createRefreshTokens(keys);
    const texts = {
      challenge: challenges.issue(SID, NOW),
      cookie: cookies.issue(SID, new Uint8Array(32), NOW),
      refresh: refreshTokens.mint({ sid: SID, generation: 1, nonce: "AQIDBAUGBwg", issuedAt: NOW }),
    };
    const verdicts = (text: string) => [
      challenges.check(text, SID, NOW).ok && "challenge",
      cookies.read(text).ok && "cookie",
      refreshTokens.parse(text).ok && "refresh",
    ];
    for (const [name, text] of Object.entries(texts)) {
      expect(verdicts(text).filter(Boolean)).toEqual([name]);
      for (const other of Object.values(texts)) {
        if (other === text) continue;
        // Combines the beginning of a text of one kind with the rest of a text of another kind, cut or padded to each length.
        for (const [start, length] of [6, 5, 2, 1].flatMap((at) => [69, 72, 93].map((size) => [at, size] as const))) {
          const raw = Buffer.alloc(length);
          Buffer.from(text, "base64url").copy(raw);
          Buffer.from(other, "base64url").copy(raw, 0, 0, start);
          expect(verdicts(raw.toString("base64url")).filter((verdict) => verdict && verdict !== name)).toEqual([]);
        }
      }
    }
  });

  test("has a key of its own for each purpose", () => {
    const { mac, deviceCookieMac, challengeMac } = keys.current.mac;
    const sameMessage = (length: number) => Buffer.alloc(length, 7);
    const macs = [mac(sameMessage(40)), deviceCookieMac(sameMessage(61)), challengeMac(sameMessage(37))];
    const secret = Buffer.from(keys.ring.mac.find(({ state }) => state === "signing")?.jwk?.k ?? "", "base64url");
    const underTheRingKey = [40, 61, 37].map((length) => createMac(secret, length)(sameMessage(length)));
    expect(macs.map((each, index) => each === underTheRingKey[index])).toEqual([true, false, false]);
    const derived = ["device cookie", "device challenge"].map((purpose) => hkdfSync("sha256", secret, "", purpose, 32));
    expect(derived.map((key) => createMac(new Uint8Array(key), 61)(sameMessage(61)))[0]).toBe(macs[1]);
    expect(derived.map((key) => createMac(new Uint8Array(key), 37)(sameMessage(37)))[1]).toBe(macs[2]);
  });
});
