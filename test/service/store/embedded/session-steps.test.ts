/** Why the embedded store, which keeps a session until it is removed, does not serve it any more. */
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { storeMs } from "../../../../src/service/session/time.ts";
import type { StoreWithSignals } from "../../../../src/service/signals/ports.ts";
import { type Backend, embeddedBackend } from "../../../support/store/backends.ts";
import { IDLE, newSession, nonce, REUSE_INTERVAL, SECOND, subject } from "../../../support/store/sessions.ts";

let backend: Backend;
let store: StoreWithSignals;
beforeEach(async () => {
  backend = await embeddedBackend();
  store = await backend.open();
});
afterEach(() => backend.stop());

async function login(absoluteLifetimeMs: number) {
  const [session, first] = [newSession(subject(), { absoluteLifetimeMs }), nonce()];
  await store.create(session, first, { cap: 9 });
  const token = { generation: 1, nonce: first, issuedAt: storeMs(0) };
  return { sid: session.sid, token, rotate: () => store.rotate(session.sid, token, nonce()) };
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
  expect(await store.update(sid, { claims: '{"a":1}', outdatesTokens: false })).toEqual({
    ok: false,
    reason: "unknown",
  });
});

test("a refresh waits for no disk, and one that ends the session does", async () => {
  const { sid, token, rotate } = await login(2 * IDLE);
  const levels: string[] = [];
  const executed = vi.spyOn(DatabaseSync.prototype, "exec");
  onTestFinished(() => executed.mockRestore());
  const levelsOf = async (step: () => Promise<unknown>) => {
    await store.ping(); // From here on, SQLite waits for no disk.
    executed.mockClear();
    await step();
    return executed.mock.calls.map(([sql]) => sql).filter((sql) => sql.startsWith("PRAGMA synchronous"));
  };
  levels.push(...(await levelsOf(rotate)));
  expect(levels).toEqual([]);
  await backend.advance(3 * REUSE_INTERVAL);
  levels.push(...(await levelsOf(() => store.rotate(sid, { ...token, nonce: nonce() }, nonce()))));
  expect(levels).toEqual(["PRAGMA synchronous = FULL"]);
});
