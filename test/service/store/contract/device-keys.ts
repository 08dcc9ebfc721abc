/** Tests that every store has to pass: the key of a device is registered, used for the first time, and removed. */
import { describe, expect, test } from "vitest";
import { wallMs } from "../../../../src/service/session/time.ts";
import type { Context } from "../../../support/store/context.ts";
import { boundSession, present, someKey, WITHOUT, withCookie } from "../../../support/store/device.ts";
import { nonce, REUSE_INTERVAL, SECOND, sidOf, subject } from "../../../support/store/sessions.ts";

const R = REUSE_INTERVAL;

export function deviceKeysContract(context: () => Context): void {
  describe.each(["ES256", "RS256"] as const)("an %s key", (algorithm) => {
    test("is kept as it was registered, beside all else that a session has, and taken away again", async () => {
      const { store, backend, login } = context();
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
      const { store } = context();
      const { sid, key, since } = await boundSession(context(), someKey(algorithm));
      expect(await store.find(sid)).toMatchObject({ session: { device: { key, state: "bound", since } } });
    });

    test("is used for the first time once, also by two requests at the same moment", async () => {
      const { store, backend, login } = context();
      const key = someKey(algorithm);
      const { sid, first } = await login(subject());
      await store.registerKey(sid, first, key);
      const refresh = () => store.rotate(sid, first, nonce(), withCookie(key, backend.now()));
      const served = [await refresh(), await refresh()];
      expect(served).toMatchObject([{ device: "first_use" }, { device: "proven" }]);
    });
  });

  test("a session without claims and one with an authentication that begins with the bytes of a key stay apart", async () => {
    const { store, login } = context();
    const key = someKey();
    // The key begins with the byte 1. In the stored record of a session, the data of an authentication begin with the same byte, and the
    // store must not confuse the two.
    const bytes = Uint8Array.from(key.bytes).fill(1, 0, 1);
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
      const { store, backend, login } = context();
      const { sid, first } = await login(subject());
      await store.registerKey(sid, first, someKey());
      await backend.advance(10 * R);
      expect(await present(context().store, sid, first, WITHOUT)).toBe("rotate");
    });

    test("stays for 2 R, and then another one takes its place", async () => {
      const { store, backend, login } = context();
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

    test("gives its place to another one, too, if its time is to come, because the clock was set back", async () => {
      const { store, backend, login } = context();
      const [one, other] = [someKey(), someKey()];
      await backend.advance(3 * R);
      const { sid, first } = await login(subject());
      await store.registerKey(sid, first, one);
      await backend.advance(-2 * R);
      expect(await store.registerKey(sid, first, other)).toEqual({ ok: false, reason: "other_key" });
      await backend.advance(-1);
      expect(await store.registerKey(sid, first, other)).toMatchObject({ ok: true });
      await backend.advance(2 * R + 1);
    });

    test("is not bound by a token that ends the session", async () => {
      const { store, backend } = context();
      const { sid, first, key } = await boundSession(context());
      await store.unbind(sid);
      await backend.advance(3 * R);
      const { rotation } = (await store.find(sid)) as { rotation: { generation: number } };
      const stale = { ...first, generation: rotation.generation - 1 };
      await store.registerKey(sid, stale, key);
      expect(await present(context().store, sid, stale, withCookie(key, backend.now()))).toBe("reuse");
      expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
    });
  });

  test("a refresh token that was replaced twice registers nothing, and ends nothing", async () => {
    const { store, backend, login } = context();
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
    const { backend, login } = context();
    const stores = [await backend.open(), await backend.open()];
    const { sid, first } = await login(subject());
    const keys = Array.from({ length: 8 }, () => someKey());
    const results = await Promise.all(
      keys.map((key, at) => stores[at % 2]?.registerKey(sid, first, key).then(({ ok }) => ok)),
    );
    expect(results.filter((ok) => ok)).toHaveLength(1);
  });

  test("a session that has ended, and one that never was, take no key", async () => {
    const { store, login } = context();
    const { sid, first } = await login(subject());
    await store.end(sid, "logout");
    expect(await store.registerKey(sid, first, someKey())).toEqual({ ok: false, reason: "revoked" });
    expect(await store.unbind(sid)).toEqual({ ok: false, reason: "revoked" });
    const nobody = sidOf(subject());
    expect(await store.registerKey(nobody, first, someKey())).toEqual({ ok: false, reason: "unknown" });
    expect(await store.unbind(nobody)).toEqual({ ok: false, reason: "unknown" });
  });
}
