/** Which steps of the embedded store wake the listeners of the revocation log, with the intervals of a clock that the test moves. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { LogEntry } from "../../../../src/service/session/model.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { StoreWithSignals } from "../../../../src/service/signals/ports.ts";
import { type Backend, embeddedBackend } from "../../../support/store/backends.ts";
import { newSession, nonce, REUSE_INTERVAL, SECOND, sidOf, subject } from "../../../support/store/sessions.ts";

/** How often a store looks for the commits of others, in ms. */
const POLL_MS = 100;

let backend: Backend;
let store: StoreWithSignals;
let other: StoreWithSignals;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  backend = await embeddedBackend();
  [store, other] = [await backend.open(), await backend.open()];
});
afterEach(async () => {
  await backend.stop();
  vi.useRealTimers();
});

/** Returns the hints that a listener has got so far. */
function listen(to = store) {
  const hints: (readonly LogEntry[])[] = [];
  return { hints, stop: to.onRevocation((hint) => hints.push(hint)) };
}

test("a step that ends nothing wakes nobody, and one that does says what has ended", async () => {
  const user = subject();
  const [a, b] = [newSession(user), newSession(user)];
  const first = nonce();
  const { hints } = listen();
  await store.create(a, nonce(), { cap: 9 });
  await store.create(b, first, { cap: 9 });
  await store.rotate(b.sid, { generation: 1, nonce: first, issuedAt: storeMs(0) }, nonce());
  await store.unbind(a.sid);
  expect(hints).toEqual([]);
  await store.end(a.sid, "logout");
  expect(hints).toMatchObject([[{ sid: a.sid, reason: "logout" }]]);
  await store.create(newSession(user), nonce(), { cap: 9 });
  expect(hints).toHaveLength(1);
  await store.endAll(user, "revoked_subject");
  expect(hints[1]).toHaveLength(2);
  await store.revokeAll(undefined);
  expect(hints.slice(2)).toEqual([[]]);
});

test("a refresh token that is used again wakes like every other end", async () => {
  const session = newSession(subject());
  const first = nonce();
  await store.create(session, first, { cap: 9 });
  const token = { generation: 1, nonce: first, issuedAt: storeMs(0) };
  await store.rotate(session.sid, token, nonce());
  await backend.advance(3 * REUSE_INTERVAL);
  const { hints } = listen();
  expect(await store.rotate(session.sid, { ...token, nonce: nonce() }, nonce())).toMatchObject({ reason: "reuse" });
  expect(hints).toMatchObject([[{ sid: session.sid, reason: "reuse" }]]);
});

test("a mark of stale tokens wakes, too", async () => {
  const session = newSession(subject());
  await store.create(session, nonce(), { cap: 9 });
  const { hints } = listen();
  await store.update(session.sid, { claims: '{"a":1}', outdatesTokens: false });
  expect(hints).toEqual([]);
  await store.update(session.sid, { claims: '{"a":2}', outdatesTokens: true });
  expect(hints).toMatchObject([[{ sid: session.sid, minVersion: 2 }]]);
});

test("what another instance commits is noticed at the next look, once", async () => {
  const { hints, stop } = listen();
  vi.advanceTimersByTime(POLL_MS);
  expect(hints).toEqual([[]]); // The first look: something may have happened before it.
  vi.advanceTimersByTime(5 * POLL_MS);
  expect(hints).toHaveLength(1);
  await other.end(sidOf(subject()), "logout");
  vi.advanceTimersByTime(POLL_MS - 1);
  expect(hints).toHaveLength(1);
  vi.advanceTimersByTime(1);
  expect(hints).toEqual([[], []]);
  vi.advanceTimersByTime(5 * POLL_MS);
  expect(hints).toHaveLength(2);
  stop();
  expect(vi.getTimerCount()).toBe(0);
  const again = listen();
  expect(vi.getTimerCount()).toBe(1);
  vi.advanceTimersByTime(POLL_MS);
  expect(again.hints).toEqual([[]]);
  await store.close();
  expect(vi.getTimerCount()).toBe(0);
});

test("those who end the sessions of actors are woken by the end of an actor's session alone", async () => {
  const actor = subject();
  const own = newSession(actor);
  const plain = newSession(actor);
  const whose = { subject: actor, sessionId: own.sid, endsWithSession: true } as const;
  const attached = newSession(subject(), { actor: whose });
  for (const session of [own, plain, attached]) await store.create(session, nonce(), { cap: 9 });
  await store.attach(attached.sid, own.sid, SECOND);
  let wakes = 0;
  const stop = store.onAttachedEnd(() => wakes++);
  await store.end(plain.sid, "logout");
  await store.revokeAll(storeMs(1));
  expect(wakes).toBe(0);
  await store.end(own.sid, "logout");
  expect(wakes).toBe(1);
  await store.create(newSession(actor), nonce(), { cap: 9 });
  expect(wakes).toBe(1);
  expect(await store.endAttached()).toMatchObject([{ sid: attached.sid, actor }]);
  expect(await store.endAttached()).toEqual([]);
  expect(wakes).toBe(1);
  stop();
});

test("a logout of everyone wakes those who end the sessions of actors", async () => {
  const actor = subject();
  const own = newSession(actor);
  await store.create(own, nonce(), { cap: 9 });
  await backend.advance(1);
  const attached = newSession(subject(), { actor: { subject: actor, sessionId: own.sid, endsWithSession: true } });
  await store.create(attached, nonce(), { cap: 9 });
  await store.attach(attached.sid, own.sid, SECOND);
  let wakes = 0;
  const stop = store.onAttachedEnd(() => wakes++);
  await store.revokeAll(backend.now());
  expect(wakes).toBe(1);
  stop();
});
