/** Tests that every store has to pass: sessions that came from a login at an identity provider. */
import { beforeEach, expect, test } from "vitest";
import type { NewSession, ProviderNote, Upstream } from "../../../../src/service/session/model.ts";
import { CAP, type Context } from "../../../support/store/context.ts";
import { ALREADY_ENDED, ENDED, elsewhere, IDLE, newSession, nonce, subject } from "../../../support/store/sessions.ts";

/** More than one script ends on Redis. */
const MANY = 140;

export function upstreamContract(context: () => Context): void {
  let issuer: string;
  beforeEach(() => {
    issuer = `https://${subject()}.example`;
  });

  async function logIn(upstream: Partial<Upstream>, user = subject(), more: Partial<NewSession> = {}) {
    const session = newSession(user, { ...more, upstream: { issuer, ...upstream } });
    await context().store.create(session, nonce(), { cap: CAP });
    return session.sid;
  }
  const bySession = (sessionId: string) => context().store.sessionsOf({ issuer, sessionId });
  const byUser = (name: string) => context().store.sessionsOf({ issuer, subject: name });

  test("a login's sessions are found by the provider's session and by its user, wherever they are", async () => {
    const user = subject();
    const one = await logIn({ sessionId: "a", subject: "alice" }, user);
    const two = await logIn({ sessionId: "a", subject: "alice" }, elsewhere(user));
    const three = await logIn({ sessionId: "b", subject: "alice" }, user);
    const four = await logIn({ sessionId: "c" });
    const five = await logIn({ subject: "bob" });
    expect((await bySession("a")).toSorted()).toEqual([one, two].toSorted());
    expect(await bySession("b")).toEqual([three]);
    expect(await bySession("c")).toEqual([four]);
    expect((await byUser("alice")).toSorted()).toEqual([one, two, three].toSorted());
    expect(await byUser("bob")).toEqual([five]);
    expect(await context().store.find(one)).toMatchObject({
      session: { upstream: { issuer, sessionId: "a", subject: "alice" } },
    });
  });

  test("neither a name of the other kind, nor one of another provider, nor a part of one finds them", async () => {
    await logIn({ sessionId: "a", subject: "alice" });
    await logIn({ sessionId: 'a"' });
    const { store } = context();
    for (const login of [
      { issuer, sessionId: "alice" },
      { issuer, subject: "a" },
      { issuer: `${issuer}/`, sessionId: "a" },
      { issuer, sessionId: "" },
      { issuer, sessionId: "A" },
    ]) {
      expect([login, await store.sessionsOf(login)]).toEqual([login, []]);
    }
    expect(await bySession('a"')).toHaveLength(1);
  });

  test("a session whose provider names no Unicode text ends like others", async () => {
    const sid = await logIn({ subject: "\ud800" }, subject(), { claims: '{"actor":{"role":1}}' });
    expect(await context().store.end(sid, "logout")).toEqual(ENDED);
    expect(await context().store.end(sid, "logout")).toEqual(ALREADY_ENDED);
  });

  test("sessions that have ended do not stay", async () => {
    const user = subject();
    for (let i = 0; i < 5; i++) {
      const sid = await logIn({ sessionId: "a" }, user);
      expect((await bySession("a")).at(-1)).toBe(sid);
      await context().store.end(sid, "logout");
      expect(await bySession("a")).toEqual([]);
    }
  });

  test("however sessions end, nothing names their login afterwards", async () => {
    const { store, backend } = context();
    const user = subject();
    const login = { sessionId: 'a\u{1F600}"', subject: "alice é" };
    const found = async () => [await bySession(login.sessionId), await byUser(login.subject)];
    const [actor, owned] = [await logIn(login, user), await logIn(login, user)];
    await store.endOwned(actor, owned, "revoked_by_owner");
    expect(await found()).toEqual([[actor], [actor]]);
    await store.endAll(user, "revoked_subject");
    expect(await found()).toEqual([[], []]);

    const many = subject();
    for (let i = 0; i < MANY; i++) {
      await store.create(newSession(many, { upstream: { issuer, ...login } }), nonce(), { cap: MANY });
    }
    expect(await byUser(login.subject)).toHaveLength(MANY);
    await store.endAll(many, "revoked_subject");
    expect(await found()).toEqual([[], []]);

    await logIn(login, user, { idleTimeoutMs: IDLE, absoluteLifetimeMs: 3 * IDLE });
    await backend.advance(2 * IDLE);
    await store.forget(user);
    expect(await found()).toEqual([[], []]);

    await logIn(login, user);
    await store.revokeAll(undefined);
    await store.forget(user);
    expect(await found()).toEqual([[], []]);
  });

  test("a session is found for as long as it lives, also after one that lived longer or shorter", async () => {
    const { store, backend } = context();
    const user = subject();
    const short = { idleTimeoutMs: IDLE, absoluteLifetimeMs: IDLE };
    const sid = await logIn({ sessionId: "a" }, user, { idleTimeoutMs: 3 * IDLE, absoluteLifetimeMs: 3 * IDLE });
    const other = await logIn({ sessionId: "a" }, user, short);
    await backend.advance(2 * IDLE);
    expect((await store.find(other)).ok).toBe(false);
    expect((await store.find(sid)).ok).toBe(true);
    expect(await bySession("a")).toContain(sid);
  });

  test("what a provider has said is known at every instance, until it is forgotten", async () => {
    const { store, backend } = context();
    const instance = await backend.open();
    const said: readonly ProviderNote[] = [
      { issuer, usedToken: "one" },
      { issuer, endedSession: "one" },
    ];
    for (const [at, note] of said.entries()) {
      const others = [...said.slice(at + 1), { ...note, issuer: `${issuer}/` }, { ...note, ...{ usedToken: "two" } }];
      expect(await store.isNoted(note)).toBe(false);
      await store.note(note, IDLE);
      expect([await store.isNoted(note), await instance.isNoted(note)]).toEqual([true, true]);
      for (const other of others) expect([other, await store.isNoted(other)]).toEqual([other, false]);
    }
    await backend.advance(IDLE - 1_000);
    expect(await store.isNoted({ issuer, usedToken: "one" })).toBe(true);
    await backend.advance(1_000);
    for (const note of said) expect([note, await store.isNoted(note)]).toEqual([note, false]);
  });
}
