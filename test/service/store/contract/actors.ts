/** Tests that every store has to pass: sessions that somebody uses in place of their subject. */
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { Actor, NewSession, SessionId } from "../../../../src/service/session/model.ts";
import { MAX_ATTACHED } from "../../../../src/service/session/model.ts";
import type { ExpiredSession, SessionStore } from "../../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import type { Cursor } from "../../../../src/service/signals/ports.ts";
import { CAP, type Context } from "../../../support/store/context.ts";
import { dueOf, takeDue } from "../../../support/store/event-records.ts";
import {
  elsewhere,
  expectCreated,
  IDLE,
  newSession,
  nonce,
  REUSE_INTERVAL,
  SECOND,
  sidOf,
  subject,
} from "../../../support/store/sessions.ts";
import { until } from "../../../support/until.ts";

const ORIGIN = { address: "192.0.2.7" };
/** A text that looks like the actor of a record to a search in its bytes. */
const LIKE_AN_ACTOR = '{"actor":{"subject":"nobody"}}';

export function actorsContract(context: () => Context): void {
  beforeEach(async () => {
    await expireAll();
    await takeDue(context().store);
  });

  /** Creates a session of a subject that an actor uses. */
  async function impersonate(user: string, actor: Actor, more: Partial<NewSession> = {}, cap = CAP) {
    const session = newSession(user, { ...more, actor });
    await context().store.create(session, nonce(), { cap, origin: ORIGIN });
    return session.sid;
  }

  /** Creates a session that is to end with another one, of a subject in another partition. By itself it would live longer. */
  async function attached(own: SessionId, actor: string, user = elsewhere(actor)) {
    const { store } = context();
    const whose: Actor = { subject: actor, sessionId: own, endsWithSession: true };
    const { sid, ...session } = newSession(user, { actor: whose, idleTimeoutMs: 2 * IDLE });
    await store.create({ ...session, sid }, nonce(), { cap: 1_000 });
    expect(await store.attach(sid, own, 2 * IDLE)).toEqual({ ok: true });
    return { sid, user };
  }

  /** Ends all sessions that have expired. */
  async function expireAll(): Promise<readonly ExpiredSession[]> {
    const { store } = context();
    const ended: ExpiredSession[] = [];
    for (let isDone = false; !isDone; ) {
      const step = await store.expire();
      ended.push(...step.ended);
      ({ isDone } = step);
    }
    return ended;
  }

  const isLive = async (sid: SessionId) => (await context().store.find(sid)).ok;

  test("the actor comes back, whatever else the session has", async () => {
    const { store, backend } = context();
    const actor: Actor = { subject: "ä\u{1F600}/\"'", reason: "ticket 12", sessionId: sidOf("support") };
    for (const more of [{}, { claims: LIKE_AN_ACTOR, persistent: false as const, deviceRequired: true as const }]) {
      const user = subject();
      const sid = await impersonate(user, actor, more);
      expect(await store.find(sid)).toMatchObject({ session: { actor, ...more } });
      await backend.advance(SECOND);
      expect((await store.list(user, 10, undefined)).sessions).toMatchObject([{ sid, actor }]);
      expect(await store.end(sid, "logout", ORIGIN)).toEqual({
        ...{ ok: true, wasLive: true },
        ...{ subject: user, actor: actor.subject },
      });
      const due = (await dueOf(store, sid)).map(({ event }) => event);
      expect(due).toHaveLength(2);
      for (const event of due) expect(event).toMatchObject({ subject: user, actor: actor.subject, ...ORIGIN });
    }
  });

  test("a session that only looks as if it had an actor has none", async () => {
    const { store, login } = context();
    const user = subject();
    const client = { userAgent: LIKE_AN_ACTOR, ipAddress: "", displayName: '"actor":' };
    const { sid } = await login(user, { claims: LIKE_AN_ACTOR, client, persistent: false });
    expect(await store.elevate(sid, { time: wallMs(SECOND), methods: [], contextClass: "" })).toMatchObject({
      ok: true,
    });
    expect(await store.end(sid, "logout", ORIGIN)).toEqual({ ok: true, wasLive: true, subject: user });
    expect((await dueOf(store, sid))[0]?.event).not.toHaveProperty("actor");
  });

  test("it is never elevated", async () => {
    const { store } = context();
    const sid = await impersonate(subject(), { subject: "support" });
    const authentication = { time: wallMs(SECOND), methods: ["pwd"], contextClass: "gold" };
    expect(await store.elevate(sid, authentication)).toEqual({ ok: false, reason: "has_actor" });
    expect(await store.find(sid)).not.toMatchObject({ session: { authentication } });
  });

  test("every operation that ends it names its actor", async () => {
    const { store, backend, login } = context();
    const user = subject();
    const actor = "support";
    const plain = await login(user);
    const make = () => impersonate(user, { subject: "support" });
    const target = await make();
    expect(await store.endOwned(plain.sid, target, "revoked_by_owner", ORIGIN)).toEqual({ ok: true, actor: "support" });
    const [one, two] = [await make(), await make()];
    expect(await store.endAll(user, "revoked_subject", { origin: ORIGIN })).toEqual({
      ok: true,
      ended: [{ sid: plain.sid }, { sid: one, actor }, { sid: two, actor }],
      count: 3,
    });
    const replaced = await make();
    expect(
      await store.create(newSession(user), nonce(), { cap: CAP, replaces: replaced, origin: ORIGIN }),
    ).toMatchObject({
      replaced: { sid: replaced, actor },
    });
    const stolen = newSession(user, { actor: { subject: "support" } });
    const forged = { generation: 1, nonce: nonce(), issuedAt: storeMs(0) };
    await store.create(stolen, forged.nonce, { cap: CAP, origin: ORIGIN });
    expect(await store.rotate(stolen.sid, forged, nonce())).toMatchObject({ ok: true });
    await backend.advance(3 * REUSE_INTERVAL);
    expect(await store.rotate(stolen.sid, { ...forged, nonce: nonce() }, nonce())).toEqual({
      ...{ ok: false, reason: "reuse" },
      ...{ subject: user, actor: "support" },
    });
    const idle = await impersonate(user, { subject: "support" }, { idleTimeoutMs: SECOND });
    await backend.advance(SECOND);
    const ended = await expireAll();
    expect(ended.filter(({ sid }) => sid === idle)).toEqual([{ sid: idle, subject: user, actor: "support" }]);
    for (const sid of [target, one, two, replaced, stolen.sid, idle]) {
      const ends = (await dueOf(store, sid)).filter(({ event }) => event.type === "ended");
      expect(ends.map(({ event }) => event.actor)).toEqual(["support"]);
    }
  });

  test("who acts for the subject of the request is recorded with what it ends", async () => {
    const { store, login } = context();
    const user = subject();
    const { sid } = await login(user);
    await store.end(sid, "logout", { ...ORIGIN, actor: "support" });
    expect((await dueOf(store, sid)).map(({ event }) => event.actor)).toEqual(["support"]);
    const own = await impersonate(user, { subject: "other support" });
    await store.end(own, "logout", { ...ORIGIN, actor: "support" });
    const ends = (await dueOf(store, own)).filter(({ event }) => event.type === "ended");
    expect(ends.map(({ event }) => event.actor)).toEqual(["other support"]);
  });

  test("sessions with an actor and those without count apart", async () => {
    const { store, login } = context();
    const user = subject();
    const [first, second] = [await login(user), await login(user)];
    const one = await impersonate(user, { subject: "support" }, {}, 2);
    const two = await impersonate(user, { subject: "support" }, {}, 2);
    for (const sid of [first.sid, second.sid, one, two]) expect(await isLive(sid)).toBe(true);
    const evicted = expectCreated(await store.create(newSession(user), nonce(), { cap: 2 }));
    expect(evicted.evicted).toEqual([{ sid: first.sid }]);
    const acting = expectCreated(
      await store.create(newSession(user, { actor: { subject: "support" } }), nonce(), { cap: 2 }),
    );
    expect(acting.evicted).toEqual([{ sid: one, actor: "support" }]);
    for (const sid of [second.sid, two]) expect(await isLive(sid)).toBe(true);
  });

  test("its signals name the actor, those of other sessions do not", async () => {
    const { store, login } = context();
    const { log, subscriptions } = store.signals;
    const events = ["session.ended", "session.created"] as const;
    const definition = { kind: "webhook", endpoint: "https://a.test/", filter: { events }, audience: [] } as const;
    expect(await subscriptions.create("ofactors", definition, wallMs(5_000))).toBe(true);
    const user = subject();
    const sid = await impersonate(user, { subject: "ä support" });
    const cursor = (await log.cursors(log.partitionOf({ sid }))).get("ofactors");
    const plain = await login(user);
    await store.end(sid, "logout");
    await store.end(plain.sid, "logout");
    const read = await log.read(log.partitionOf({ sid }), cursor as Cursor, 100);
    if (!read.ok) throw new Error(read.reason);
    const mine = read.signals.map(({ signal }) => signal).filter(({ subject }) => subject === user);
    expect(mine.map(({ sessionId, reason, actor }) => [sessionId, reason, actor])).toEqual([
      [sid, "created", "ä support"],
      [plain.sid, "created", undefined],
      [sid, "logout", "ä support"],
      [plain.sid, "logout", undefined],
    ]);
    await subscriptions.delete("ofactors");
  });

  describe("a session that ends with its actor's", () => {
    type Way = (store: SessionStore, own: SessionId, actor: string) => Promise<unknown>;
    const WAYS: Readonly<Record<string, Way>> = {
      end: (store, own) => store.end(own, "logout", ORIGIN),
      endOwned: (store, own) => store.endOwned(own, own, "revoked_by_owner", ORIGIN),
      endAll: (store, _, actor) => store.endAll(actor, "revoked_subject"),
      "a session that replaces it": (store, own, actor) =>
        store.create(newSession(actor), nonce(), { cap: CAP, replaces: own }),
      "a session of another subject that replaces it": (store, own) =>
        store.create(newSession(subject()), nonce(), { cap: CAP, replaces: own }),
      "the limit of sessions": (store, _, actor) => store.create(newSession(actor), nonce(), { cap: 1 }),
      "revokeAll, of sessions created before": async (store) => {
        const { backend } = context();
        await store.revokeAll(backend.now());
      },
      async expiry() {
        await context().backend.advance(IDLE);
        await expireAll();
      },
      async "reuse of its token"(store, own) {
        const token = { generation: 3, nonce: nonce(), issuedAt: context().backend.now() };
        await store.rotate(own, token, nonce());
        await context().backend.advance(600 * SECOND);
        const old = { generation: 1, nonce: nonce(), issuedAt: context().backend.now() };
        expect(await store.rotate(own, old, nonce())).toMatchObject({ ok: false, reason: "reuse" });
      },
    };

    test.each(Object.entries(WAYS))("ends once, by %s, whichever instance does it", async (name, end) => {
      const { store, backend, login, logged } = context();
      const other = await backend.open();
      const actor = subject();
      const own = await login(actor);
      await backend.advance(SECOND);
      const { sid, user } = await attached(own.sid, actor);
      const unconcerned = await attached((await login(subject())).sid, actor);
      expect(await store.endAttached()).toEqual([]);
      await end(store, own.sid, actor);
      const ended = [...(await other.endAttached()), ...(await store.endAttached())].filter((one) => one.sid === sid);
      expect(ended).toEqual(ended.length === 0 ? [] : [{ sid, subject: user, actor }]);
      expect(await isLive(sid)).toBe(false);
      if (ended.length > 0) {
        expect(await logged(sid)).toEqual(["actor_ended"]);
        const ends = (await dueOf(store, sid)).filter(({ event }) => event.type === "ended");
        expect(ends).toMatchObject([{ event: { reason: "actor_ended", subject: user, actor } }]);
      }
      if (name !== "expiry" && !name.startsWith("revokeAll")) expect(await isLive(unconcerned.sid)).toBe(true);
    });

    test("ends with one that a logout of everyone ends last, although it came later itself", async () => {
      const { store, backend, login } = context();
      const actor = subject();
      const [last, later] = [await login(actor), await backend.advance(1).then(() => login(actor))];
      const { sid: ending } = await attached(last.sid, actor);
      const { sid: staying } = await attached(later.sid, actor);
      await store.revokeAll(backend.now());
      const ended = (await store.endAttached()).map(({ sid }) => sid);
      expect([ended.includes(ending), await isLive(ending), await isLive(staying)]).toEqual([true, false, true]);
    });

    test("is ended at once by the instances that listen", async () => {
      const { store, backend, login } = context();
      const other = await backend.open();
      const actor = subject();
      const own = await login(actor);
      const { sid } = await attached(own.sid, actor);
      let wakes = 0;
      onTestFinished(store.onAttachedEnd(() => wakes++));
      await until(async () => {
        if (backend.hintsAcrossInstances === "entries" && wakes === 0) throw new Error("not listening yet");
      });
      const before = wakes;
      await (backend.hintsAcrossInstances === "entries" ? other : store).end(own.sid, "logout");
      await until(async () => {
        if (wakes === before) throw new Error("not woken yet");
      });
      expect(await store.endAttached()).toMatchObject([{ sid }]);
    });

    test("is not attached to a session that is not live", async () => {
      const { store, login } = context();
      const actor = subject();
      const own = await login(actor);
      const sid = await impersonate(elsewhere(actor), { subject: actor });
      await store.end(own.sid, "logout");
      expect(await store.attach(sid, own.sid, IDLE)).toEqual({ ok: false, reason: "ended" });
      expect(await store.attach(sid, sidOf(actor), IDLE)).toEqual({ ok: false, reason: "ended" });
      expect(await isLive(sid)).toBe(true);
    });

    test("may have ended before: then nothing ends", async () => {
      const { store, backend, login, logged } = context();
      const actor = subject();
      const own = await login(actor);
      const { sid } = await attached(own.sid, actor);
      await store.end(sid, "logout");
      await backend.advance(600 * SECOND); // The store has forgotten the session.
      const before = await logged(sid);
      await store.end(own.sid, "logout");
      expect(await store.endAttached()).toEqual([]);
      expect(await logged(sid)).toEqual(before);
    });

    test("may have expired before: then it ends as one that has expired, once", async () => {
      const { store, backend, login, logged } = context();
      const actor = subject();
      const own = await login(actor);
      const user = elsewhere(actor);
      const short = await impersonate(user, { subject: actor }, { absoluteLifetimeMs: SECOND });
      expect(await store.attach(short, own.sid, IDLE)).toEqual({ ok: true });
      await store.end(own.sid, "logout");
      await backend.advance(SECOND);
      for (let look = 0; look < 2; look++) expect(await store.endAttached()).toEqual([]);
      expect((await expireAll()).map(({ sid }) => sid)).toContain(short);
      expect(await logged(short)).not.toContain("actor_ended");
    });

    test(`is one of at most ${MAX_ATTACHED} that have not expired`, async () => {
      const { store, backend, login } = context();
      const actor = subject();
      const own = await login(actor);
      const user = elsewhere(actor);
      const short = await impersonate(user, { subject: actor }, { absoluteLifetimeMs: SECOND });
      expect(await store.attach(short, own.sid, SECOND)).toEqual({ ok: true });
      await backend.advance(SECOND);
      await expireAll();
      const sids = [];
      for (let at = 0; at < MAX_ATTACHED; at++) sids.push((await attached(own.sid, actor, user)).sid);
      const more = await impersonate(user, { subject: actor }, {}, 1_000);
      expect(await store.attach(more, own.sid, IDLE)).toEqual({ ok: false, reason: "full" });
      await store.end(own.sid, "logout");
      const ended = new Set((await store.endAttached()).map(({ sid }) => sid));
      for (const sid of sids) expect(ended.has(sid) || !(await isLive(sid))).toBe(true);
      expect(await isLive(more)).toBe(true);
    });
  });
}
