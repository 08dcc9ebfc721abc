/** Why the embedded store, which keeps a session until it is removed, does not serve it any more. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { StoreWithSignals } from "../../../../src/service/signals/ports.ts";
import { type Backend, embeddedBackend } from "../../../support/store/backends.ts";
import { IDLE, newSession, nonce, SECOND, subject } from "../../../support/store/sessions.ts";

let backend: Backend;
let store: StoreWithSignals;
beforeEach(async () => {
  backend = await embeddedBackend();
  store = await backend.open();
});
afterEach(() => backend.stop());

async function login(absoluteLifetimeMs: number) {
  const [session, first] = [newSession(subject(), { absoluteLifetimeMs }), nonce()];
  await store.create(session, first, 9);
  const token = { generation: 1, nonce: first, issuedAt: storeMs(0) };
  return { sid: session.sid, rotate: () => store.rotate(session.sid, token, nonce()) };
}

test.each([
  [IDLE + SECOND, "idle"],
  [IDLE, "expired"],
  [IDLE - SECOND, "expired"],
])("a session with a lifetime of %d ms refuses a refresh at its idle timeout as %s", async (lifetime, reason) => {
  const { rotate } = await login(lifetime);
  await backend.advance(Math.min(lifetime, IDLE));
  expect(await rotate()).toEqual({ ok: false, reason });
  await backend.advance(2 * SECOND);
  expect(await rotate()).toEqual({ ok: false, reason: "expired" });
});

test("a session that expired after a logout of everyone is unknown: no token of it is accepted anyway", async () => {
  const { sid, rotate } = await login(2 * IDLE);
  await store.revokeAll(undefined);
  await backend.advance(IDLE - 1);
  expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
  expect(await rotate()).toEqual({ ok: false, reason: "revoked" });
  await backend.advance(1);
  expect(await store.find(sid)).toEqual({ ok: false, reason: "unknown" });
  expect(await store.unbind(sid)).toEqual({ ok: false, reason: "unknown" });
  expect(await store.update(sid, { claims: '{"a":1}', refresh: false })).toEqual({ ok: false, reason: "unknown" });
});
