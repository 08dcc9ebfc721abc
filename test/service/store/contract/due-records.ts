/** Tests that every store has to pass: the records of events that are due to be written ("due records"). */
import { expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { later, storeMs } from "../../../../src/service/session/time.ts";
import type { Context } from "../../../support/store/context.ts";
import { dueOf, loginWith, RETENTION, recordOf, type StoreEvent } from "../../../support/store/event-records.ts";
import { newSession, nonce, REUSE_INTERVAL, SECOND, sidOf, subject } from "../../../support/store/sessions.ts";

const ORIGIN = { address: "192.0.2.7", admin: "support", requestId: "r1", traceId: "t1" };
const BY = { address: "192.0.2.7", admin: "support" };
const IDS = { requestId: "r1", traceId: "t1" };

export function dueRecordsContract(context: () => Context): void {
  test("one instance alone claims what is due, and from then on it is due anew", async () => {
    const { backend, store } = context();
    const { sid } = await loginWith(store, subject(), {}, ORIGIN);
    const [first] = await dueOf(store, sid);
    if (first === undefined) throw new Error("nothing is due");
    await backend.advance(5 * SECOND);
    const claims = await Promise.all([store.claimRecord(first), store.claimRecord(first), store.claimRecord(first)]);
    expect(claims.filter(Boolean)).toHaveLength(1);
    expect(await dueOf(store, sid)).toEqual([{ ...first, since: first.since + 5 * SECOND }]);
    await store.recordEvents([recordOf(first.event)], RETENTION);
    expect(await store.claimRecord({ ...first, since: later(first.since, 5 * SECOND) })).toBe(false);
    expect(await dueOf(store, sid)).toEqual([]);
  });

  test("a login leaves what is to be recorded of it, of the session that it replaces, and of those that it makes room by", async () => {
    const { backend, store } = context();
    const [user, client] = [subject("ä\nb"), { userAgent: "u".repeat(300), ipAddress: "::1", displayName: "x" }];
    const [a, b] = [await loginWith(store, user), await loginWith(store, user)];
    const session = newSession(user, { client, clientId: "app" });
    await store.create(session, nonce(), { cap: 1, replaces: a.sid, origin: ORIGIN });
    const time = backend.now();
    const shown = { clientId: "app", client: { ...client, userAgent: "u".repeat(200) } };
    const common = { time, subject: user, ...BY };
    const expected: StoreEvent[] = [
      { ...common, type: "ended", sid: a.sid, reason: "replaced" },
      { ...common, type: "ended", sid: b.sid, reason: "session_limit" },
      { ...common, type: "created", sid: session.sid, ...shown },
    ];
    const found = await dueOf(store, a.sid, b.sid, session.sid);
    expect(found).toHaveLength(3);
    for (const event of expected)
      expect(found.find(({ event: { sid } }) => sid === event.sid)).toMatchObject({ event, ids: IDS });
    await store.create(session, nonce(), { cap: 1, replaces: a.sid, origin: ORIGIN }); // This repeats an earlier call, as after a lost reply.
    expect(await dueOf(store, a.sid, b.sid, session.sid)).toEqual(found);
  });

  test("a login in place of another subject's session leaves the end of that", async () => {
    const { store } = context();
    const other = subject();
    const { sid } = await loginWith(store, other);
    const created = newSession(subject());
    await store.create(created, nonce(), { cap: 9, replaces: sid, origin: ORIGIN });
    const [ended] = await dueOf(store, sid);
    expect(ended?.event).toMatchObject({ type: "ended", sid, subject: other, reason: "replaced", ...BY });
    expect(await dueOf(store, created.sid)).toMatchObject([{ event: { type: "created" } }]);
  });

  type Ended = { readonly user: string; readonly a: SessionId; readonly b: SessionId };
  const endings: readonly [string, (store: SessionStore, known: Ended) => Promise<unknown>, StoreEvent["reason"]][] = [
    ["an ending", (store, { a }) => store.end(a, "logout", ORIGIN), "logout"],
    [
      "an ending by another session",
      (store, { a, b }) => store.endOwned(b, a, "revoked_by_owner", ORIGIN),
      "revoked_by_owner",
    ],
    [
      "the ending of others",
      (store, { user, b }) => store.endAll(user, "revoked_others", { except: b, caller: b, origin: ORIGIN }),
      "revoked_others",
    ],
    [
      "the ending of all but one",
      (store, { user, b }) => store.endAll(user, "revoked_subject", { except: b, origin: ORIGIN }),
      "revoked_subject",
    ],
  ];
  test.each(endings)("%s leaves what is to be recorded of it, once", async (_, end, reason) => {
    const { backend, store } = context();
    const user = subject("x\ny");
    const [{ sid: a }, { sid: b }] = [await loginWith(store, user), await loginWith(store, user)];
    await end(store, { user, a, b });
    const event = { time: backend.now(), type: "ended", sid: a, subject: user, reason, ...BY };
    const left = await dueOf(store, a, b);
    expect(left).toMatchObject([{ key: a, event, ids: IDS }]);
    await store.recordEvents([recordOf(event as StoreEvent)], RETENTION);
    await end(store, { user, a, b });
    expect(await dueOf(store, a, b)).toEqual([]);
  });

  test("reuse leaves what is to be recorded of it, without the requester", async () => {
    const { backend, store } = context();
    const user = subject();
    const { sid, first } = await loginWith(store, user);
    await store.rotate(sid, first, nonce());
    await backend.advance(3 * REUSE_INTERVAL);
    const reused = await store.rotate(sid, { ...first, nonce: nonce() }, nonce());
    expect(reused).toMatchObject({ ok: false, reason: "reuse" });
    const event: StoreEvent = { time: backend.now(), type: "ended", sid, subject: user, reason: "reuse" };
    expect(await dueOf(store, sid)).toEqual([{ key: sid, since: expect.any(Number), event, ids: {} }]);
  });

  test("nothing is left of what ends nothing, unless the caller has proven that there was a session", async () => {
    const { store } = context();
    const [user, sid] = [subject(), sidOf("lost")];
    await store.end(sid, "revoked_by_admin", ORIGIN);
    expect(await dueOf(store, sid)).toEqual([]);
    const lost = sidOf(user);
    await store.end(lost, "logout", { ...ORIGIN, subject: user });
    expect(await dueOf(store, lost)).toMatchObject([{ event: { sid: lost, subject: user, reason: "logout" } }]);
    const ended = await loginWith(store, subject());
    await store.end(ended.sid, "logout");
    await store.end(ended.sid, "logout", { ...ORIGIN, subject: user });
    // No event is waiting to be written: the first call ended the session, but had no `origin` to record, and the second call had one, but
    // ended nothing.
    expect(await dueOf(store, ended.sid)).toEqual([]);
  });

  test("the end of all leaves one record, until it is written", async () => {
    const { backend, store } = context();
    const revokedUntil = await store.revokeAll(storeMs(77), ORIGIN);
    const event: StoreEvent = { time: backend.now(), type: "all_ended", revokedUntil, ...BY };
    const ofThis = async () => (await dueOf(store)).filter(({ key }) => key === `*${revokedUntil}`);
    expect(await ofThis()).toMatchObject([{ event, ids: IDS }]);
    await store.recordEvents([recordOf(event)], RETENTION);
    expect(await ofThis()).toEqual([]);
  });
}
