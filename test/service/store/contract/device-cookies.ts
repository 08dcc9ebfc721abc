/** Tests that every store has to pass: which refreshes are served for a session that has a device key, or requires one. */
import { describe, expect, test } from "vitest";
import type { Context } from "../../../support/store/context.ts";
import { boundSession, LIFE, present, SKIPPED, someKey, WITHOUT, withCookie } from "../../../support/store/device.ts";
import { nonce, REUSE_INTERVAL, subject } from "../../../support/store/sessions.ts";

const R = REUSE_INTERVAL;

export function deviceCookiesContract(context: () => Context): void {
  describe("a bound key", () => {
    test("is the only one: another is refused, however late", async () => {
      const { store, backend } = context();
      const { sid, key, token } = await boundSession(context());
      await backend.advance(100 * R);
      expect(await store.registerKey(sid, token, someKey())).toEqual({ ok: false, reason: "other_key" });
      expect(await store.registerKey(sid, token, key)).toMatchObject({
        ok: true,
        session: { device: { state: "bound" } },
      });
    });

    test("serves a device cookie until its life is over, and not a millisecond longer", async () => {
      const { backend } = context();
      const { sid, key, token } = await boundSession(context());
      const issuedAt = backend.now();
      await backend.advance(LIFE);
      const { store } = context();
      const served = await store.rotate(sid, token, nonce(), withCookie(key, issuedAt));
      expect(served).toMatchObject({ ok: true, device: "proven" });
      await backend.advance(1);
      const child = served.ok ? served.child : token;
      const refused = await store.rotate(sid, child, nonce(), withCookie(key, issuedAt));
      expect(refused).toMatchObject({ ok: false, reason: "device_proof_missing", session: { device: { key } } });
      expect(await present(context().store, sid, child, withCookie(key, backend.now()))).toBe("repeat");
    });

    test("refuses a token from after its first use without a cookie, and changes nothing", async () => {
      const { store, backend } = context();
      const { sid, key, token } = await boundSession(context());
      await backend.advance(3 * R);
      const next = await store.rotate(sid, token, nonce(), withCookie(key, backend.now()));
      if (!next.ok) throw new Error(next.reason);
      await backend.advance(3 * R);
      const before = await store.find(sid);
      expect(await present(context().store, sid, next.child, WITHOUT)).toBe("device_proof_missing");
      expect(await present(context().store, sid, next.child, SKIPPED)).toBe("device_proof_missing");
      expect(await present(context().store, sid, next.child, withCookie(someKey(), backend.now()))).toBe(
        "device_proof_missing",
      );
      expect(await present(context().store, sid, next.child, withCookie(key, 0))).toBe("device_proof_missing");
      // This call has no device data, as from an instance that does not support device binding.
      expect(await present(context().store, sid, next.child)).toBe("device_proof_missing");
      expect({ ...(await store.find(sid)) }).toEqual(before);
    });

    test("serves what was in flight for 2 R, unproven", async () => {
      const { store, backend } = context();
      const { sid, first } = await boundSession(context());
      await backend.advance(2 * R);
      expect(await store.rotate(sid, first, nonce(), WITHOUT)).toMatchObject({ ok: true, device: "unproven" });
    });

    test("ends the session for a token from before without any cookie later", async () => {
      const { store, backend } = context();
      const { sid, first } = await boundSession(context());
      await backend.advance(2 * R + 1);
      expect(await present(context().store, sid, first, WITHOUT)).toBe("two_holders");
      expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
      const { revocations } = await store.revocations(undefined);
      expect(revocations.find((entry) => entry.sid === sid)).toMatchObject({ reason: "reuse" });
    });

    test("ends it for a token that was returned to one in flight, too", async () => {
      const { store, backend } = context();
      const { sid, first } = await boundSession(context());
      await backend.advance(1.5 * R);
      const inFlight = await store.rotate(sid, first, nonce(), WITHOUT);
      if (!inFlight.ok) throw new Error(inFlight.reason);
      expect(inFlight.child.issuedAt).toBe(backend.now());
      await backend.advance(2 * R);
      expect(await present(context().store, sid, inFlight.child, WITHOUT)).toBe("two_holders");
    });

    test("ends nothing for a browser that could not renew, nor for the mark of a copied profile", async () => {
      const { backend } = context();
      const { sid, first, key, token } = await boundSession(context());
      await backend.advance(3 * R);
      expect(await present(context().store, sid, first, SKIPPED)).toBe("device_proof_missing");
      expect(await present(context().store, sid, first, withCookie(key, 0))).toBe("device_proof_missing");
      expect(await present(context().store, sid, first, { ...withCookie(someKey(), 1), skipped: true })).toBe(
        "device_proof_missing",
      );
      expect(await present(context().store, sid, token, withCookie(key, backend.now()))).toBe("rotate");
    });

    test("slides no expiry by a refusal", async () => {
      const { store, backend } = context();
      const { sid, token } = await boundSession(context());
      const before = await store.find(sid);
      await backend.advance(3 * R);
      await present(context().store, sid, token, SKIPPED);
      expect(await store.find(sid)).toMatchObject({ session: before.ok && before.session });
    });
  });

  describe("a session that requires a key", () => {
    test("goes without one for as long as a device cookie lives, and no longer", async () => {
      const { store, backend, login } = context();
      const { sid, first } = await login(subject(), { deviceRequired: true });
      expect(await store.find(sid)).toMatchObject({ session: { deviceRequired: true } });
      await backend.advance(LIFE);
      const served = await store.rotate(sid, first, nonce(), WITHOUT);
      if (!served.ok) throw new Error(served.reason);
      await backend.advance(1);
      expect(await present(context().store, sid, served.child, WITHOUT)).toBe("device_required");
      expect(await present(context().store, sid, served.child, SKIPPED)).toBe("device_required");
      const key = someKey();
      await store.registerKey(sid, served.child, key);
      expect(await present(context().store, sid, served.child, WITHOUT)).toBe("device_required");
      expect(await present(context().store, sid, served.child, withCookie(key, backend.now()))).toBe("repeat");
      await store.unbind(sid);
      expect(await store.find(sid)).toMatchObject({ session: { deviceRequired: true } });
      expect(await present(context().store, sid, served.child, WITHOUT)).toBe("device_required");
      // This call has no device data, as from an instance on which device binding is switched off.
      expect(await present(context().store, sid, served.child)).toBe("repeat");
    });
  });
}
