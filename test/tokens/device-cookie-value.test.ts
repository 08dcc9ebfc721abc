import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { SessionId } from "../../src/session/model.ts";
import { storeMs } from "../../src/session/time.ts";
import { generateMacKey } from "../../src/tokens/generate-key.ts";
import { readyKeys } from "../../src/tokens/keys.ts";
import { createDeviceCookies } from "../../src/tokens/sealed.ts";
import { NOW, SID, someKeys } from "../support/tokens.ts";

const THUMBPRINT = Uint8Array.from({ length: 32 }, (_, index) => index);
const keys = someKeys();
const cookiesUnder = (current: typeof keys.current) => createDeviceCookies({ current });
const cookies = cookiesUnder(keys.current);

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
