/** Tests that every store has to pass: the outcomes of presented tokens. */
import { describe, expect, test } from "vitest";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { Context } from "../../../support/store/context.ts";
import { IDLE, nonce, outcomeOf, REUSE_INTERVAL, SECOND, sidOf, subject } from "../../../support/store/sessions.ts";

export function rotateContract(context: () => Context): void {
  describe("rotate", () => {
    test("a refresh does not count as earlier than the creation, which a logout of everyone may date ahead", async () => {
      const { backend, store, login, refresh } = context();
      await store.revokeAll(undefined);
      const { sid, first } = await login(subject());
      const { session } = await refresh(sid, first);
      expect(session.createdAt).toBe(backend.now() + 1);
      expect(session).toMatchObject({ lastRefreshedAt: session.createdAt, idleExpiresAt: session.createdAt + IDLE });
    });

    test("a used successor is confirmed and a child is minted", async () => {
      const { backend, store, login } = context();
      const { sid, first } = await login(subject());
      await backend.advance(SECOND);
      const fresh = nonce();
      const now = backend.now();
      const result = await store.rotate(sid, first, fresh);
      expect(result).toMatchObject({
        outcome: "rotate",
        child: { generation: 2, nonce: fresh, issuedAt: storeMs(now) },
        session: { sid, lastRefreshedAt: now, idleExpiresAt: now + IDLE },
        now,
      });
      expect(await store.find(sid)).toMatchObject({
        rotation: { generation: 1, nonce: first.nonce, childNonce: fresh, childMintedAt: now, childServedAt: now },
        session: { lastRefreshedAt: now, idleExpiresAt: now + IDLE },
      });
    });

    test("a repeated result is the same, and the idle timeout begins anew", async () => {
      const { backend, store, login, refresh } = context();
      const { sid, first } = await login(subject());
      const rotated = await refresh(sid, first);
      await backend.advance(REUSE_INTERVAL);
      const { now, ...repeated } = await refresh(sid, first);
      const { child } = rotated;
      const session = { ...rotated.session, idleExpiresAt: now + IDLE };
      expect(repeated).toEqual({ ok: true, outcome: "repeat", child, session, device: "unproven" });
      expect(await store.find(sid)).toMatchObject({ session });
    });

    test("a session whose idle timeout is shorter than the reuse interval lives as long as it is refreshed", async () => {
      const { backend, store, login, refresh } = context();
      const idleTimeoutMs = REUSE_INTERVAL / 4;
      const { sid, first } = await login(subject(), { idleTimeoutMs });
      const outcomes = [(await refresh(sid, first)).outcome];
      for (let time = 0; time < 6; time++) {
        await backend.advance(idleTimeoutMs - 1);
        outcomes.push((await refresh(sid, first)).outcome);
      }
      expect(outcomes).toEqual(["rotate", "repeat", "repeat", "repeat", "repeat", "recover", "repeat"]);
      await backend.advance(idleTimeoutMs);
      expect(["idle", "unknown"]).toContain(outcomeOf(await store.rotate(sid, first, nonce())));
    });

    test("a repeated result does not outlive the absolute expiry", async () => {
      const { backend, store, login, refresh } = context();
      const absoluteLifetimeMs = IDLE + SECOND;
      const { sid, first } = await login(subject(), { absoluteLifetimeMs });
      await backend.advance(IDLE - SECOND);
      const { child } = await refresh(sid, first);
      await backend.advance(SECOND);
      const { outcome, session } = await refresh(sid, first);
      expect([outcome, session.idleExpiresAt]).toEqual(["repeat", session.absoluteExpiresAt]);
      await backend.advance(SECOND);
      expect(["expired", "unknown"]).toContain(outcomeOf(await store.rotate(sid, child, nonce())));
    });

    test("a lost result is recovered with another child", async () => {
      const { backend, login, refresh } = context();
      const { sid, first } = await login(subject());
      const lost = await refresh(sid, first);
      await backend.advance(REUSE_INTERVAL + 1);
      const recovered = await refresh(sid, first);
      expect(recovered.outcome).toBe("recover");
      expect(recovered.child).toMatchObject({ generation: 2, issuedAt: storeMs(backend.now()) });
      expect(recovered.child.nonce).not.toBe(lost.child.nonce);
      expect(recovered.session.idleExpiresAt).toBe(backend.now() + IDLE);
    });

    test("a token newer than the state, which has lost its last writes, heals it", async () => {
      const { backend, store, login, refresh } = context();
      const { sid } = await login(subject());
      const ahead = { generation: 4_000_000_000, nonce: nonce(), issuedAt: storeMs(backend.now() - SECOND) };
      const healed = await refresh(sid, ahead);
      expect(healed).toMatchObject({ outcome: "heal", child: { generation: ahead.generation + 1 } });
      expect(await store.find(sid)).toMatchObject({ rotation: { generation: ahead.generation, nonce: ahead.nonce } });
    });

    test("the absolute expiry is never slid", async () => {
      const { backend, store, login, refresh } = context();
      const { sid, first } = await login(subject(), { absoluteLifetimeMs: IDLE + SECOND });
      await backend.advance(IDLE - SECOND);
      const { session } = await refresh(sid, first);
      expect(session.idleExpiresAt).toBe(session.absoluteExpiresAt);
      await backend.advance(2 * SECOND);
      expect(["expired", "unknown"]).toContain(outcomeOf(await store.rotate(sid, first, nonce())));
    });

    test("reuse ends the session in the same step", async () => {
      const { backend, store, login, refresh, logged } = context();
      const user = subject();
      const { sid, first } = await login(user);
      const second = await refresh(sid, first);
      await backend.advance(4 * REUSE_INTERVAL);
      const third = await refresh(sid, second.child);
      await backend.advance(4 * REUSE_INTERVAL);
      expect(await store.rotate(sid, first, nonce())).toEqual({ ok: false, reason: "reuse", subject: user });
      expect(await store.rotate(sid, third.child, nonce())).toEqual({ ok: false, reason: "revoked" });
      expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
      expect((await store.list(user, 10, undefined)).sessions).toEqual([]);
      expect(await logged(sid)).toEqual(["reuse"]);
    });

    test("a session that never was is unknown", async () => {
      const { store } = context();
      const result = await store.rotate(
        sidOf(subject()),
        { generation: 1, nonce: nonce(), issuedAt: storeMs(0) },
        nonce(),
      );
      expect(result).toEqual({ ok: false, reason: "unknown" });
    });

    test("a session past its idle timeout is not served, and not live", async () => {
      const { backend, store, login } = context();
      const user = subject();
      const { sid, first } = await login(user);
      await backend.advance(IDLE);
      expect(["idle", "unknown"]).toContain(outcomeOf(await store.rotate(sid, first, nonce())));
      expect(await store.find(sid)).toEqual({ ok: false, reason: "unknown" });
      expect((await store.list(user, 10, undefined)).sessions).toEqual([]);
    });

    test("of several simultaneous requests with a reused token, one ends the session", async () => {
      const { backend, store, login, refresh, logged } = context();
      const { sid, first } = await login(subject());
      const { child } = await refresh(sid, first);
      await backend.advance(3 * REUSE_INTERVAL);
      await refresh(sid, child);
      await backend.advance(3 * REUSE_INTERVAL);
      const results = await Promise.all([1, 2, 3].map(() => store.rotate(sid, first, nonce())));
      expect(results.map(outcomeOf).toSorted()).toEqual(["reuse", "revoked", "revoked"]);
      expect(await logged(sid)).toEqual(["reuse"]);
    });

    test("of many requests with one token, one rotates and all get the same successor", async () => {
      const { backend, store, login } = context();
      const { sid, first } = await login(subject());
      const other = await backend.open();
      const results = await Promise.all(
        Array.from({ length: 40 }, (_, at) => (at % 2 ? store : other).rotate(sid, first, nonce())),
      );
      expect(results.filter((result) => outcomeOf(result) === "rotate")).toHaveLength(1);
      expect(results.filter((result) => outcomeOf(result) === "repeat")).toHaveLength(39);
      expect(new Set(results.map((result) => "child" in result && result.child.nonce)).size).toBe(1);
    });
  });
}
