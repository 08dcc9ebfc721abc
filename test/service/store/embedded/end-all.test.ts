/** The end of many sessions of a subject: what is returned depends on how long it takes, by a clock that the test moves. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { StoreWithSignals } from "../../../../src/service/signals/ports.ts";
import { RECORDED_WITHIN_MS } from "../../../../src/service/store/event-text.ts";
import { type Backend, embeddedBackend } from "../../../support/store/backends.ts";
import { newSession, nonce, subject } from "../../../support/store/sessions.ts";

/** More sessions than two transactions end. */
const MANY = 120;

let backend: Backend;
let store: StoreWithSignals;
beforeEach(async () => {
  backend = await embeddedBackend();
  store = await backend.open();
  vi.useFakeTimers({ toFake: ["performance"] });
});
afterEach(async () => {
  vi.useRealTimers();
  await backend.stop();
});

test.each([
  [RECORDED_WITHIN_MS, MANY],
  [RECORDED_WITHIN_MS + 1, 0],
])("one that has taken %d ms returns %d sessions: the rest is recorded as due by others", async (ms, returned) => {
  const user = subject();
  for (let at = 0; at < MANY; at++) await store.create(newSession(user), nonce(), { cap: MANY });
  const ending = store.endAll(user, "revoked_subject");
  setImmediate(() => vi.advanceTimersByTime(ms));
  const outcome = await ending;
  expect(outcome).toMatchObject({ ok: true, count: MANY });
  expect(outcome.ok && outcome.ended.length).toBe(returned);
});

test("a session that is spared while the others end counts towards the cap", async () => {
  const user = subject();
  const kept = newSession(user);
  for (let at = 0; at < MANY; at++) await store.create(at === 0 ? kept : newSession(user), nonce(), { cap: MANY });
  const ending = store.endAll(user, "revoked_subject", { except: kept.sid });
  const created = newSession(user);
  await store.create(created, nonce(), { cap: 1 });
  expect(await ending).toMatchObject({ ok: true });
  expect((await store.list(user, 5, undefined)).sessions.map(({ sid }) => sid)).toEqual([created.sid]);
});
