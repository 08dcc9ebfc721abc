/** Tests that every store has to pass: which requests may refresh or end a session that is bound to a key which each request proves. */
import { describe, expect, test } from "vitest";
import type { DevicePresentation } from "../../../../src/service/session/devices/binding.ts";
import { thumbprintBytes } from "../../../../src/service/session/devices/key.ts";
import type { TokenFields } from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { Context } from "../../../support/store/context.ts";
import { present, someKey, someProof } from "../../../support/store/device.ts";
import { nonce, REUSE_INTERVAL, subject } from "../../../support/store/sessions.ts";

const R = REUSE_INTERVAL;
const WITHOUT: DevicePresentation = { lifeMs: R, cookie: undefined, skipped: false, transport: "token" };
const OWN = someProof(1);
const withOwn: DevicePresentation = { ...WITHOUT, proof: OWN };
const withOther: DevicePresentation = { ...WITHOUT, proof: someProof(2) };
const KEY = { algorithm: "DPoP", thumbprint: thumbprintBytes(OWN.thumbprint) };

/** Rotates a session several times with its key. Returns all of its tokens, oldest first. */
async function rotated({ store, backend, login }: Context, more: { readonly dpopJkt?: string }) {
  const { sid, first } = await login(subject(), more);
  const tokens: TokenFields[] = [{ ...first, issuedAt: backend.now() }];
  for (let times = 0; times < 4; times++) {
    await backend.advance(3 * R);
    const [token = first] = tokens.slice(-1);
    const result = await store.rotate(sid, token, nonce(), withOwn);
    if (!result.ok) throw new Error(result.reason);
    tokens.push(result.child);
  }
  await backend.advance(3 * R);
  return { sid, tokens, first: tokens[0] ?? first, last: tokens.at(-1) ?? first };
}

export function proofKeysContract(context: () => Context): void {
  describe.each([
    ["bound at its creation", { dpopJkt: OWN.thumbprint }],
    ["bound by its first proof", {}],
  ])("%s", (_, more) => {
    test("serves every generation with the proof, and the same child within R", async () => {
      const { store, backend } = context();
      const { sid, tokens } = await rotated(context(), more);
      expect(await store.find(sid)).toMatchObject({ session: { device: { key: KEY, state: "bound" } } });
      for (const token of tokens) {
        const served = await store.rotate(sid, token, nonce(), withOwn);
        const repeated = await store.rotate(sid, tokens[0] ?? token, nonce(), withOwn);
        expect(served).toMatchObject({ ok: true, device: "proven" });
        expect(repeated).toMatchObject({ outcome: "repeat", child: served.ok && served.child });
        await backend.advance(R + 1);
      }
    });

    test("serves nothing without the proof or with another, and changes nothing", async () => {
      const { store } = context();
      const { sid, tokens, last } = await rotated(context(), more);
      const before = await store.find(sid);
      for (const token of tokens.slice(1)) {
        expect(await present(store, sid, token, WITHOUT)).toBe("proof_missing");
        expect(await present(store, sid, token)).toBe("proof_missing"); // The call comes from an instance that does not support proofs.
        expect(await present(store, sid, token, withOther)).toBe("other_key");
      }
      expect(await store.find(sid)).toEqual(before);
      expect(await present(store, sid, last, withOwn)).toBe("rotate");
    });

    test("ends only with the proof", async () => {
      const { store } = context();
      const { sid, last } = await rotated(context(), more);
      const { issuedAt } = last;
      expect(await store.end(sid, "logout", undefined, { issuedAt })).toMatchObject({ reason: "proof_missing" });
      expect(await store.end(sid, "logout", undefined, { issuedAt, proof: someProof(2) })).toMatchObject({
        reason: "other_key",
        subject: expect.stringContaining("subject"),
      });
      expect(await store.find(sid)).toMatchObject({ ok: true });
      expect(await store.end(sid, "logout", undefined, { issuedAt, proof: OWN })).toMatchObject({ wasLive: true });
    });

    test("takes no device key, and is free once it is unbound", async () => {
      const { store } = context();
      const { sid, last } = await rotated(context(), more);
      const same = { ...someKey(), thumbprint: KEY.thumbprint };
      expect(await store.registerKey(sid, last, same)).toEqual({ ok: false, reason: "other_key" });
      expect(await store.unbind(sid)).toMatchObject({ ok: true, hadKey: true });
      expect(await store.rotate(sid, last, nonce(), WITHOUT)).toMatchObject({ ok: true, device: "unproven" });
    });
  });

  test("a copy of the first token ends nothing in a session that was created with its key", async () => {
    const { store } = context();
    const { sid, first } = await rotated(context(), { dpopJkt: OWN.thumbprint });
    expect(await present(store, sid, first, WITHOUT)).toBe("proof_missing");
    expect(await present(store, sid, first, withOther)).toBe("other_key");
  });

  test.each([
    ["without a proof", WITHOUT],
    ["with the proof of another key", withOther],
  ])("a token from before the binding shows two holders %s", async (_, presented) => {
    const { store } = context();
    const { sid, first } = await rotated(context(), {});
    expect(await present(store, sid, first, presented)).toBe("two_holders");
    expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
  });

  test("the first proof binds with the child that is minted, not with one that others have", async () => {
    const { store, backend, login, refresh } = context();
    const { sid, first } = await login(subject());
    const { child } = await refresh(sid, first);
    await backend.advance(R);
    expect(await store.rotate(sid, first, nonce(), withOwn)).toMatchObject({ outcome: "repeat", device: "unproven" });
    expect(await store.find(sid)).not.toHaveProperty("session.device");
    await backend.advance(1);
    expect(await store.rotate(sid, child, nonce(), withOwn)).toMatchObject({ outcome: "rotate", device: "first_use" });
    expect(await store.find(sid)).toMatchObject({ session: { device: { key: KEY, since: backend.now() } } });
  });

  test.each([
    ["in a cookie", {}, { ...withOwn, transport: "cookie" as const }],
    ["of a session that requires a device key", { deviceRequired: true as const }, { ...withOwn, lifeMs: 100 * R }],
  ])("the first proof with a token %s binds nothing", async (_, more, presented) => {
    const { store, login } = context();
    const { sid, first } = await login(subject(), more);
    expect(await store.rotate(sid, first, nonce(), presented)).toMatchObject({ ok: true, device: "unproven" });
    expect(await store.find(sid)).not.toHaveProperty("session.device");
  });

  test.each(["web", "ü", "c".repeat(254), "c".repeat(255), "c".repeat(1024)])(
    "another client than the session's binds nothing, and changes nothing (%#)",
    async (clientId) => {
      const { store, backend, login } = context();
      const { sid, first } = await login(subject(), { clientId });
      const before = await store.find(sid);
      await backend.advance(3 * R);
      for (const other of [`${clientId}x`, "", clientId.slice(1)]) {
        expect(await present(store, sid, first, { ...withOwn, clientId: other })).toBe("wrong_client");
      }
      expect(await store.find(sid)).toEqual({ ...before, now: backend.now() });
      const own = { ...withOwn, clientId };
      expect(await store.rotate(sid, first, nonce(), own)).toMatchObject({ ok: true, device: "first_use" });
      // With a proof of the bound key, the store does not compare the client id, because its caller has already done so.
      expect(await present(store, sid, first, { ...withOwn, clientId: "x" })).toBe("repeat");
    },
  );

  test("a request that was in flight when the key was bound ends nothing", async () => {
    const { store, backend, login } = context();
    const { sid, first } = await login(subject());
    await backend.advance(3 * R);
    expect(await store.rotate(sid, first, nonce(), withOwn)).toMatchObject({ device: "first_use" });
    await backend.advance(2 * R);
    expect(await present(store, sid, first, WITHOUT)).toBe("proof_missing");
    await backend.advance(1);
    expect(await present(store, sid, first, WITHOUT)).toBe("two_holders");
  });

  test("a token of the moment of the binding, or later, ends the session only with the proof", async () => {
    const { store, backend, login } = context();
    const { sid, first } = await login(subject());
    await backend.advance(3 * R);
    await store.rotate(sid, first, nonce(), withOwn);
    const bound = backend.now();
    for (const issuedAt of [storeMs(bound + 1), bound]) {
      expect(await store.end(sid, "logout", undefined, { issuedAt })).toMatchObject({ reason: "proof_missing" });
    }
    const issuedAt = storeMs(bound - 1);
    expect(await store.end(sid, "logout", undefined, { issuedAt })).toMatchObject({ wasLive: true });
  });

  test("the first proof with a token that was used before ends the session, as without a proof", async () => {
    const { store, backend, login, refresh } = context();
    const { sid, first } = await login(subject());
    const { child } = await refresh(sid, first);
    await backend.advance(2 * R);
    const { child: next } = await refresh(sid, child);
    await backend.advance(3 * R);
    await refresh(sid, next);
    await backend.advance(3 * R);
    expect(await present(store, sid, first, withOwn)).toBe("reuse");
  });
}
