/** What every store owes device binding. */
import { describe, expect, test } from "vitest";
import type { DevicePresentation } from "../../src/session/device-binding.ts";
import type { DeviceKey } from "../../src/session/device-key.ts";
import type { NewSession, SessionId } from "../../src/session/model.ts";
import type { SessionStore } from "../../src/session/ports.ts";
import type { PresentedToken } from "../../src/session/rotation.ts";
import { storeMs, wallMs } from "../../src/session/time.ts";
import type { Backend } from "./backends.ts";
import { nonce, outcomeOf, REUSE_INTERVAL, SECOND, sidOf, subject } from "./sessions.ts";

type Parts = {
  readonly backend: Backend;
  readonly store: SessionStore;
  login(user: string, more?: Partial<NewSession>): Promise<{ sid: SessionId; first: PresentedToken }>;
};

const R = REUSE_INTERVAL;
/** The life of a device cookie. */
export const LIFE = 300 * SECOND;

/** A key of that many bytes; its thumbprint is distinct. */
export function someKey(algorithm: DeviceKey["algorithm"] = "ES256"): DeviceKey {
  const random = Buffer.from(nonce().repeat(64), "base64url");
  const bytes = Uint8Array.from(random.subarray(0, algorithm === "ES256" ? 64 : 294));
  return { algorithm, bytes, thumbprint: Uint8Array.from(Buffer.from(nonce().repeat(4), "base64url").subarray(0, 32)) };
}

export const WITHOUT: DevicePresentation = { lifeMs: LIFE, cookie: undefined, skipped: false };
export const SKIPPED: DevicePresentation = { ...WITHOUT, skipped: true };
export const withCookie = ({ thumbprint }: DeviceKey, issuedAtMs: number): DevicePresentation => ({
  ...WITHOUT,
  cookie: { thumbprint, issuedAtMs: storeMs(issuedAtMs) },
});

export function deviceContract(parts: () => Parts): void {
  /** A session whose key was used: bound at this moment. */
  async function bound(key = someKey()) {
    const { store, backend, login } = parts();
    const { sid, first } = await login(subject());
    await store.registerKey(sid, first, key);
    const result = await store.rotate(sid, first, nonce(), withCookie(key, backend.now()));
    if (!result.ok) throw new Error(result.reason);
    return { sid, first, key, token: result.child, since: backend.now() };
  }

  async function present(sid: SessionId, token: PresentedToken, device?: DevicePresentation): Promise<string> {
    return outcomeOf(await parts().store.rotate(sid, token, nonce(), device));
  }

  describe.each(["ES256", "RS256"] as const)("an %s key", (algorithm) => {
    test("is kept as it was registered, beside all else that a session has, and taken away again", async () => {
      const { store, backend, login } = parts();
      const key = someKey(algorithm);
      const authentication = { time: wallMs(5 * SECOND), methods: ["otp"], contextClass: "" };
      const { sid, first } = await login(subject(), { claims: '{"a":1}', authentication });
      const before = await store.find(sid);
      if (!before.ok) throw new Error(before.reason);
      const device = { key, state: "registered", since: backend.now() };
      const session = { ...before.session, device };
      expect(await store.registerKey(sid, first, key)).toEqual({ ok: true, session, now: backend.now() });
      expect(await store.find(sid)).toEqual({ ...before, session });
      expect((await store.list(session.subject, 10, undefined)).sessions).toEqual([session]);
      const later = { ...authentication, time: wallMs(6 * SECOND) };
      expect(await store.elevate(sid, later)).toEqual({ ok: true, session: { ...session, authentication: later } });
      const unbound = { ...before.session, authentication: later };
      expect(await store.unbind(sid)).toEqual({ ok: true, session: unbound, hadKey: true });
      expect(await store.unbind(sid)).toEqual({ ok: true, session: unbound, hadKey: false });
      expect(await store.find(sid)).toEqual({ ...before, session: unbound });
    });

    test("is bound by its first use", async () => {
      const { store } = parts();
      const { sid, key, since } = await bound(someKey(algorithm));
      expect(await store.find(sid)).toMatchObject({ session: { device: { key, state: "bound", since } } });
    });

    test("is used for the first time once, also by two requests at the same moment", async () => {
      const { store, backend, login } = parts();
      const key = someKey(algorithm);
      const { sid, first } = await login(subject());
      await store.registerKey(sid, first, key);
      const refresh = () => store.rotate(sid, first, nonce(), withCookie(key, backend.now()));
      const served = [await refresh(), await refresh()];
      expect(served).toMatchObject([{ device: "first_use" }, { device: "proven" }]);
    });
  });

  test("a session without claims and one with an authentication that begins with the bytes of a key stay apart", async () => {
    const { store, login } = parts();
    const key = someKey();
    const bytes = Uint8Array.from(key.bytes).fill(1, 0, 1); // what an authentication begins with in a record
    const { sid, first } = await login(subject());
    await store.registerKey(sid, first, { ...key, bytes });
    const authentication = { time: wallMs(5 * SECOND), methods: ["otp"], contextClass: "" };
    const elevated = await store.elevate(sid, authentication);
    expect(elevated).toMatchObject({ ok: true, session: { authentication, claims: "{}", device: { key: { bytes } } } });
    expect(await store.find(sid)).toMatchObject({
      session: { authentication, claims: "{}", device: { key: { bytes } } },
    });
  });

  describe("a key that was registered and never used", () => {
    test("asks for nothing: the response that has its cookie may be lost", async () => {
      const { store, backend, login } = parts();
      const { sid, first } = await login(subject());
      await store.registerKey(sid, first, someKey());
      await backend.advance(10 * R);
      expect(await present(sid, first, WITHOUT)).toBe("rotate");
    });

    test("stays for 2 R, and then another one takes its place", async () => {
      const { store, backend, login } = parts();
      const [one, other] = [someKey(), someKey()];
      const { sid, first } = await login(subject());
      await store.registerKey(sid, first, one);
      expect(await store.registerKey(sid, first, one)).toMatchObject({ ok: true });
      await backend.advance(2 * R);
      expect(await store.registerKey(sid, first, other)).toEqual({ ok: false, reason: "other_key" });
      await backend.advance(1);
      expect(await store.registerKey(sid, first, other)).toMatchObject({
        ok: true,
        session: { device: { key: other } },
      });
    });

    test("is not bound by a token that ends the session", async () => {
      const { store, backend } = parts();
      const { sid, first, key } = await bound();
      await store.unbind(sid);
      await backend.advance(3 * R);
      const { rotation } = (await store.find(sid)) as { rotation: { generation: number } };
      const stale = { ...first, generation: rotation.generation - 1 };
      await store.registerKey(sid, stale, key);
      expect(await present(sid, stale, withCookie(key, backend.now()))).toBe("reuse");
      expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
    });
  });

  describe("a bound key", () => {
    test("is the only one: another is refused, however late", async () => {
      const { store, backend } = parts();
      const { sid, key, token } = await bound();
      await backend.advance(100 * R);
      expect(await store.registerKey(sid, token, someKey())).toEqual({ ok: false, reason: "other_key" });
      expect(await store.registerKey(sid, token, key)).toMatchObject({
        ok: true,
        session: { device: { state: "bound" } },
      });
    });

    test("serves a device cookie until its life is over, and not a millisecond longer", async () => {
      const { backend } = parts();
      const { sid, key, token } = await bound();
      const issuedAt = backend.now();
      await backend.advance(LIFE);
      const { store } = parts();
      const served = await store.rotate(sid, token, nonce(), withCookie(key, issuedAt));
      expect(served).toMatchObject({ ok: true, device: "proven" });
      await backend.advance(1);
      const child = served.ok ? served.child : token;
      const refused = await store.rotate(sid, child, nonce(), withCookie(key, issuedAt));
      expect(refused).toMatchObject({ ok: false, reason: "device_proof_missing", session: { device: { key } } });
      expect(await present(sid, child, withCookie(key, backend.now()))).toBe("repeat");
    });

    test("refuses a token from after its first use without a cookie, and changes nothing", async () => {
      const { store, backend } = parts();
      const { sid, key, token } = await bound();
      await backend.advance(3 * R);
      const next = await store.rotate(sid, token, nonce(), withCookie(key, backend.now()));
      if (!next.ok) throw new Error(next.reason);
      await backend.advance(3 * R);
      const before = await store.find(sid);
      expect(await present(sid, next.child, WITHOUT)).toBe("device_proof_missing");
      expect(await present(sid, next.child, SKIPPED)).toBe("device_proof_missing");
      expect(await present(sid, next.child, withCookie(someKey(), backend.now()))).toBe("device_proof_missing");
      expect(await present(sid, next.child, withCookie(key, 0))).toBe("device_proof_missing");
      expect(await present(sid, next.child)).toBe("device_proof_missing"); // a caller that knows nothing of device binding
      expect({ ...(await store.find(sid)) }).toEqual(before);
    });

    test("serves what was in flight for 2 R, unproven", async () => {
      const { store, backend } = parts();
      const { sid, first } = await bound();
      await backend.advance(2 * R);
      expect(await store.rotate(sid, first, nonce(), WITHOUT)).toMatchObject({ ok: true, device: "unproven" });
    });

    test("ends the session for a token from before without any cookie later", async () => {
      const { store, backend } = parts();
      const { sid, first } = await bound();
      await backend.advance(2 * R + 1);
      expect(await present(sid, first, WITHOUT)).toBe("two_holders");
      expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
      const { revocations } = await store.revocations(undefined);
      expect(revocations.find((entry) => entry.sid === sid)).toMatchObject({ reason: "reuse" });
    });

    test("ends it for a token that was returned to one in flight, too", async () => {
      const { store, backend } = parts();
      const { sid, first } = await bound();
      await backend.advance(1.5 * R);
      const inFlight = await store.rotate(sid, first, nonce(), WITHOUT);
      if (!inFlight.ok) throw new Error(inFlight.reason);
      expect(inFlight.child.issuedAt).toBe(backend.now());
      await backend.advance(2 * R);
      expect(await present(sid, inFlight.child, WITHOUT)).toBe("two_holders");
    });

    test("ends nothing for a browser that could not renew, nor for the mark of a copied profile", async () => {
      const { backend } = parts();
      const { sid, first, key, token } = await bound();
      await backend.advance(3 * R);
      expect(await present(sid, first, SKIPPED)).toBe("device_proof_missing");
      expect(await present(sid, first, withCookie(key, 0))).toBe("device_proof_missing");
      expect(await present(sid, first, { ...withCookie(someKey(), 1), skipped: true })).toBe("device_proof_missing");
      expect(await present(sid, token, withCookie(key, backend.now()))).toBe("rotate");
    });

    test("slides no expiry by a refusal", async () => {
      const { store, backend } = parts();
      const { sid, token } = await bound();
      const before = await store.find(sid);
      await backend.advance(3 * R);
      await present(sid, token, SKIPPED);
      expect(await store.find(sid)).toMatchObject({ session: before.ok && before.session });
    });
  });

  describe("a session that requires a key", () => {
    test("goes without one for as long as a device cookie lives, and no longer", async () => {
      const { store, backend, login } = parts();
      const { sid, first } = await login(subject(), { deviceRequired: true });
      expect(await store.find(sid)).toMatchObject({ session: { deviceRequired: true } });
      await backend.advance(LIFE);
      const served = await store.rotate(sid, first, nonce(), WITHOUT);
      if (!served.ok) throw new Error(served.reason);
      await backend.advance(1);
      expect(await present(sid, served.child, WITHOUT)).toBe("device_required");
      expect(await present(sid, served.child, SKIPPED)).toBe("device_required");
      const key = someKey();
      await store.registerKey(sid, served.child, key);
      expect(await present(sid, served.child, WITHOUT)).toBe("device_required");
      expect(await present(sid, served.child, withCookie(key, backend.now()))).toBe("repeat");
      await store.unbind(sid);
      expect(await store.find(sid)).toMatchObject({ session: { deviceRequired: true } });
      expect(await present(sid, served.child, WITHOUT)).toBe("device_required");
      expect(await present(sid, served.child)).toBe("repeat"); // where device binding is off
    });
  });

  test("a refresh token that was replaced twice registers nothing, and ends nothing", async () => {
    const { store, backend, login } = parts();
    const { sid, first } = await login(subject());
    let token = first;
    for (let at = 0; at < 3; at++) {
      await backend.advance(2 * R);
      const next = await store.rotate(sid, token, nonce());
      if (!next.ok) throw new Error(next.reason);
      token = next.child;
    }
    expect(await store.registerKey(sid, first, someKey())).toEqual({ ok: false, reason: "outdated" });
    expect(await store.registerKey(sid, token, someKey())).toMatchObject({ ok: true });
  });

  test("of keys that are registered at once, one wins", async () => {
    const { backend, login } = parts();
    const stores = [await backend.open(), await backend.open()];
    const { sid, first } = await login(subject());
    const keys = Array.from({ length: 8 }, () => someKey());
    const results = await Promise.all(
      keys.map((key, at) => stores[at % 2]?.registerKey(sid, first, key).then(({ ok }) => ok)),
    );
    expect(results.filter((ok) => ok)).toHaveLength(1);
  });

  test("a session that has ended, and one that never was, take no key", async () => {
    const { store, login } = parts();
    const { sid, first } = await login(subject());
    await store.end(sid, "logout");
    expect(await store.registerKey(sid, first, someKey())).toEqual({ ok: false, reason: "revoked" });
    expect(await store.unbind(sid)).toEqual({ ok: false, reason: "revoked" });
    const nobody = sidOf(subject());
    expect(await store.registerKey(nobody, first, someKey())).toEqual({ ok: false, reason: "unknown" });
    expect(await store.unbind(nobody)).toEqual({ ok: false, reason: "unknown" });
  });
}
