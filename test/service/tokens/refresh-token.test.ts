import { createHmac, hash } from "node:crypto";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { parseSessionId, type SessionId } from "../../../src/service/session/model.ts";
import type { RefreshToken } from "../../../src/service/session/ports.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import { generateMacKey } from "../../../src/service/tokens/generate-key.ts";
import { readyKeys } from "../../../src/service/tokens/keys.ts";
import { createRandom, sessionIdFrom, systemEntropy } from "../../../src/service/tokens/random.ts";
import { createMac, createRefreshTokens, decodeRefreshToken } from "../../../src/service/tokens/refresh-token.ts";
import { NOW, SID, someKeys } from "../../support/tokens.ts";

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const text = (length: number) => bytes(length).map((b) => Buffer.from(b).toString("base64url"));

const refreshToken: fc.Arbitrary<RefreshToken> = fc.record({
  sid: text(17).map((sid) => sid as SessionId),
  generation: fc.integer({ min: 0, max: 2 ** 32 - 1 }),
  nonce: text(8),
  issuedAt: fc.integer({ min: 0, max: 2 ** 48 - 1 }).map(storeMs),
});

const keys = someKeys();
const tokens = createRefreshTokens(keys);
const example: RefreshToken = { sid: SID, generation: 7, nonce: "AQIDBAUGBwg", issuedAt: NOW };

describe("the wire form of refresh tokens", () => {
  test("gives back what was minted", () => {
    fc.assert(
      fc.property(refreshToken, (token) => {
        expect(tokens.parse(tokens.mint(token))).toEqual({ ok: true, token });
      }),
    );
  });

  test("is 96 characters that a cookie can hold, and says nothing twice", () => {
    const minted = tokens.mint(example);
    expect(minted).toMatch(/^[A-Za-z0-9_-]{96}$/);
    expect(tokens.mint(example)).toBe(minted);
  });

  test("is the documented layout under HMAC-SHA-256", () => {
    const raw = Buffer.from(tokens.mint(example), "base64url");
    const [mac] = keys.ring.mac.filter((key) => key.state === "signing");
    expect(raw.subarray(0, 5).toString("hex")).toBe(`01${mac?.kid}`);
    expect(raw.subarray(5, 22).toString("base64url")).toBe(SID);
    expect(raw.readUInt32BE(22)).toBe(7);
    expect(raw.subarray(26, 34).toString("base64url")).toBe("AQIDBAUGBwg");
    expect(raw.readUIntBE(34, 6)).toBe(NOW);
    const secret = Buffer.from(mac?.jwk?.k ?? "", "base64url");
    expect(raw.subarray(40)).toEqual(createHmac("sha256", secret).update(raw.subarray(0, 40)).digest());
  });

  test("refuses to mint what it could not carry", () => {
    expect(() => tokens.mint({ ...example, generation: 2 ** 32 })).toThrow(RangeError);
    expect(() => tokens.mint({ ...example, generation: -1 })).toThrow(RangeError);
    expect(() => tokens.mint({ ...example, issuedAt: storeMs(2 ** 48) })).toThrow(RangeError);
    expect(() => tokens.mint({ ...example, nonce: "short" })).toThrow(RangeError);
    expect(() => tokens.mint({ ...example, nonce: "AQIDBAUGBwgJ" })).toThrow(RangeError);
    expect(() => tokens.mint({ ...example, sid: "short" as SessionId })).toThrow(RangeError);
  });
});

test("people can read what a refresh token contains, without its key", () => {
  const foreign = createRefreshTokens({ current: keys.foreign }).mint(example);
  const kid = keys.foreign.mac.id.toString(16).padStart(8, "0");
  expect(decodeRefreshToken(foreign)).toEqual({ kid, sid: SID, generation: 7, issuedAt: NOW });
  for (const other of ["", `${foreign}A`, foreign.slice(1), `B${foreign.slice(1)}`]) {
    expect(decodeRefreshToken(other)).toBeUndefined();
  }
});

describe("what is no refresh token of ours", () => {
  test("a token with any one bit flipped", () => {
    const raw = Buffer.from(tokens.mint(example), "base64url");
    for (let bit = 0; bit < raw.length * 8; bit += 1) {
      const forged = Buffer.from(raw);
      forged[bit >> 3] = (forged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const expected = bit < 8 ? "malformed" : bit < 40 ? "unknown_key" : "forged";
      expect(tokens.parse(forged.toString("base64url"))).toEqual({ ok: false, reason: expected });
    }
  });

  test("any text, without throwing", () => {
    const noise = fc.oneof(fc.string(), fc.string({ unit: "binary" }), text(72), text(71), text(73));
    fc.assert(
      fc.property(noise, (input) => {
        expect(tokens.parse(input)).toEqual({
          ok: false,
          reason: expect.stringMatching(/^(malformed|unknown_key|forged)$/),
        });
      }),
    );
  });

  test("a token cut short anywhere, or with anything before or after it", () => {
    const minted = tokens.mint(example);
    for (let length = 0; length < minted.length; length += 1) {
      expect(tokens.parse(minted.slice(0, length))).toEqual({ ok: false, reason: "malformed" });
    }
    for (const extra of ["A", "=", "==", " ", "\n", "\0", ".", minted]) {
      expect(tokens.parse(minted + extra)).toEqual({ ok: false, reason: "malformed" });
      expect(tokens.parse(extra + minted)).toEqual({ ok: false, reason: "malformed" });
    }
  });

  test("the same bytes in another alphabet", () => {
    const sample = fc.sample(refreshToken, 50).map((token) => tokens.mint(token));
    for (const minted of sample) {
      const standard = Buffer.from(minted, "base64url").toString("base64");
      if (standard !== minted) expect(tokens.parse(standard)).toEqual({ ok: false, reason: "malformed" });
      expect(tokens.parse(Buffer.from(minted, "base64url").toString("hex"))).toEqual({
        ok: false,
        reason: "malformed",
      });
    }
    expect(sample.some((minted) => /[-_]/.test(minted))).toBe(true);
  });

  test("a token of another service, even under the name of our key", () => {
    const foreign = createRefreshTokens({ current: keys.foreign });
    expect(tokens.parse(foreign.mint(example))).toEqual({ ok: false, reason: "unknown_key" });
    const raw = Buffer.from(foreign.mint(example), "base64url");
    Buffer.from(tokens.mint(example), "base64url").copy(raw, 0, 0, 5);
    expect(tokens.parse(raw.toString("base64url"))).toEqual({ ok: false, reason: "forged" });
  });
});

describe("MAC keys", () => {
  const now = NOW;
  const [old, next] = [generateMacKey(now), generateMacKey(now)];
  const { signing } = keys.ring;
  const tokensUnder = (...mac: Parameters<typeof readyKeys>[0]["mac"][number][]) =>
    createRefreshTokens({ current: readyKeys({ signing, mac }) });

  test("verify before they sign and after they have retired", () => {
    const before = tokensUnder({ ...old, state: "signing" }, next);
    const after = tokensUnder({ ...old, state: "retired" }, { ...next, state: "signing" });
    expect(before.parse(after.mint(example))).toEqual({ ok: true, token: example });
    expect(after.parse(before.mint(example))).toEqual({ ok: true, token: example });
  });

  test("are unknown once revoked or gone", () => {
    const minted = tokensUnder({ ...old, state: "signing" }).mint(example);
    const { jwk: _, ...name } = old;
    expect(tokensUnder({ ...next, state: "signing" }).parse(minted)).toEqual({ ok: false, reason: "unknown_key" });
    expect(tokensUnder({ ...next, state: "signing" }, { ...name, state: "revoked" }).parse(minted)).toEqual({
      ok: false,
      reason: "unknown_key",
    });
  });

  test("take effect when the ring changes, without a new instance", () => {
    const ring = { current: keys.current };
    const following = createRefreshTokens(ring);
    const minted = following.mint(example);
    ring.current = keys.foreign;
    expect(following.parse(minted)).toEqual({ ok: false, reason: "unknown_key" });
    expect(following.parse(following.mint(example))).toEqual({ ok: true, token: example });
  });
});

describe("HMAC-SHA-256 from one-shot hashes", () => {
  test("is the same as the platform's", () => {
    const input = fc.record({ key: fc.uint8Array({ maxLength: 64 }), message: fc.uint8Array({ maxLength: 200 }) });
    fc.assert(
      fc.property(input, ({ key, message }) => {
        const mac = createMac(key, message.length);
        const expected = createHmac("sha256", key).update(message).digest("hex");
        for (const round of [1, 2])
          expect([round, Buffer.from(mac(message), "latin1").toString("hex")]).toEqual([round, expected]);
      }),
    );
  });

  test("refuses a longer key and a message of another length", () => {
    expect(() => createMac(new Uint8Array(65), 4)).toThrow(RangeError);
    for (const length of [0, 3, 5]) {
      expect(() => createMac(new Uint8Array(32), 4)(new Uint8Array(length))).toThrow("must have 4 bytes");
    }
  });

  test("takes a key as long as a block", () => {
    const [key, message] = [new Uint8Array(64).fill(7), Buffer.from("text")];
    const expected = createHmac("sha256", key).update(message).digest("latin1");
    expect(createMac(key, 4)(message)).toBe(expected);
  });
});

describe("randomness", () => {
  test("puts a session into the partition of its subject, under an id of its own", () => {
    const random = createRandom();
    fc.assert(
      fc.property(fc.string({ minLength: 1 }), (subject) => {
        const sid = random.sessionId(subject);
        expect(parseSessionId(sid)).toBe(sid);
        expect(Buffer.from(sid, "base64url")[0]).toBe(hash("sha256", subject, "buffer")[0]);
        expect(random.sessionId(subject)).not.toBe(sid);
      }),
    );
  });

  test("makes the same id of the same text, in the partition of its subject", () => {
    const [id, byText, bySubject] = [sessionIdFrom("a", "1"), sessionIdFrom("a", "2"), sessionIdFrom("b", "1")];
    expect(parseSessionId(id)).toBe(id);
    expect(sessionIdFrom("a", "1")).toBe(id);
    expect(new Set([id, byText, bySubject].map((each) => each.slice(2))).size).toBe(3);
    for (const each of [id, byText]) {
      expect(Buffer.from(each, "base64url")[0]).toBe(hash("sha256", "a", "buffer")[0]);
    }
  });

  test("never hands out the same bytes twice, over many pages of the pool", () => {
    const random = createRandom();
    const nonces = new Set(Array.from({ length: 20_000 }, () => random.nonce()));
    expect(nonces.size).toBe(20_000);
    for (const nonce of nonces) expect(nonce).toMatch(/^[A-Za-z0-9_-]{10}[AEIMQUYcgkosw048]$/);
  });

  test("draws fractions from 0 up to 1", () => {
    const entropy = systemEntropy();
    const drawn = Array.from({ length: 5_000 }, () => entropy.fraction());
    expect(Math.min(...drawn)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...drawn)).toBeLessThan(1);
    expect(drawn.filter((x) => x < 0.5).length / drawn.length).toBeCloseTo(0.5, 1);
  });
});
