/** Which old sessions lead to a session, and when, by the store's clock. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { SessionLimit } from "../../../../src/service/session/admin/limit.ts";
import { type AuditEvent, type Requester, UNKNOWN_REQUESTER } from "../../../../src/service/session/audit.ts";
import { type Migrated, migrate } from "../../../../src/service/session/migration/migrate.ts";
import type { Upstream } from "../../../../src/service/session/model.ts";
import type { RefreshToken } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import type { StoreWithSignals } from "../../../../src/service/signals/ports.ts";
import { sessionIdFrom } from "../../../../src/service/tokens/random.ts";
import { limitOf, REQUESTER } from "../../../support/session/scripted.ts";
import { type Backend, embeddedBackend } from "../../../support/store/backends.ts";
import { expectCreated, newSession, nonce, REUSE_INTERVAL as R, subject } from "../../../support/store/sessions.ts";

const DAY = 86_400_000;

let backend: Backend;
let store: StoreWithSignals;
beforeAll(async () => {
  backend = await embeddedBackend();
  store = await backend.open();
});
afterAll(() => backend.stop());

function world(user = subject(), maxSessionsPerSubject = 100, limit?: SessionLimit, upstream?: Upstream) {
  const events: AuditEvent[] = [];
  const requesters = new Set<Requester>();
  const createLimit = limitOf();
  const deps = {
    store,
    refreshTokens: { mint: (token: RefreshToken) => JSON.stringify(token) },
    accessTokens: { issue: () => ({ token: "", expiresAt: wallMs(0) }) },
    random: { nonce },
    sessionIdOf: sessionIdFrom,
    audit(event: AuditEvent, requester: Requester) {
      events.push(event);
      requesters.add(requester);
    },
    maxSessionsPerSubject,
    createLimit,
    reuseIntervalMs: R,
  };
  const { sid, ...wanted } = newSession(user, {
    ...{ absoluteLifetimeMs: 500 * DAY, idleTimeoutMs: 500 * DAY },
    ...(upstream && { upstream }),
  });
  const ask = (id = "old", from: Requester = UNKNOWN_REQUESTER) =>
    migrate(deps, { wanted, limit, id, cookieName: "c" }, from);
  return { user, events, requesters, ask, createLimit };
}

const tokenOf = (result: Awaited<ReturnType<typeof migrate>>) =>
  JSON.parse((result as Migrated).refreshToken) as RefreshToken;

test("the same old session leads to the same session and token until that token is used, however late", async () => {
  const { ask, events } = world();
  const first = await ask();
  expect(first).toMatchObject({ ok: true, isNew: true });
  for (const ms of [0, R, 30 * DAY, 300 * DAY]) {
    await backend.advance(ms);
    expect(await ask()).toMatchObject({ ok: true, isNew: false, refreshToken: (first as Migrated).refreshToken });
  }
  expect(events.map(({ event }) => event)).toEqual(["session_created"]);
  const { sid, ...token } = tokenOf(first);
  expect(await store.rotate(sid, token, nonce())).toMatchObject({ ok: true, outcome: "rotate" });
});

test("a session whose login the provider has just ended ends at once", async () => {
  const upstream = { issuer: "https://login.example", sessionId: subject() };
  await store.note({ issuer: upstream.issuer, endedSession: upstream.sessionId }, R);
  const { ask, events } = world(subject(), 100, undefined, upstream);
  const { sid } = tokenOf(await ask());
  expect(await store.find(sid)).toEqual({ ok: false, reason: "revoked" });
  expect(events.map(({ event }) => event)).toEqual(["session_created", "session_ended"]);
});

test("after the first use a request is to try again for the reuse interval, and then the old session is over", async () => {
  const { ask } = world();
  const { sid, ...token } = tokenOf(await ask());
  await store.rotate(sid, token, nonce());
  for (const ms of [0, R]) {
    await backend.advance(ms);
    expect(await ask()).toEqual({ ok: false, reason: "in_use" });
  }
  await backend.advance(1);
  expect(await ask()).toEqual({ ok: false, reason: "ended" });
  // Nothing of this has changed the session: its client goes on.
  expect(await store.rotate(sid, token, nonce())).toMatchObject({ ok: true });
});

test("a second rotation shows that the browser has the cookie", async () => {
  const { ask } = world();
  const { sid, ...token } = tokenOf(await ask());
  const rotated = await store.rotate(sid, token, nonce());
  if (!rotated.ok) throw new Error("refused");
  await backend.advance(R + 1);
  await store.rotate(sid, rotated.child, nonce());
  expect(await ask()).toEqual({ ok: false, reason: "ended" });
});

test("a session that has ended stays so for 400 days", async () => {
  const { ask } = world();
  const { sid } = tokenOf(await ask());
  await store.end(sid, "logout");
  for (const days of [0, 1, 300]) {
    await backend.advance(days * DAY);
    expect(await ask()).toEqual({ ok: false, reason: "ended" });
  }
});

test("a migration is recorded with the address and the ids of its request, under a name of its own", async () => {
  const { ask, requesters } = world();
  const ids = { requestId: "r", traceId: "t" };
  await ask("a", { ...REQUESTER, adminName: "gateway", correlation: () => ids });
  await ask("b");
  const [known, unknown] = [...requesters];
  expect([known?.address(), known?.adminName, known?.correlation?.()]).toEqual(["192.0.2.7", "migration", ids]);
  expect([unknown?.address(), unknown?.adminName, unknown?.correlation]).toEqual([undefined, "migration", undefined]);
});

test("a session that ends for the cap is recorded", async () => {
  const user = subject();
  const { session } = expectCreated(await store.create(newSession(user), nonce(), { cap: 1 }));
  const { ask, events, createLimit } = world(user, 1);
  expect(await ask()).toMatchObject({ ok: true, isNew: true });
  expect(events).toMatchObject([
    { event: "session_created", subject: user, cookieName: "c" },
    { event: "session_ended", sid: session.sid, subject: user, reason: "session_limit" },
  ]);
  expect(createLimit.counted).toEqual([user]);
});

test("a limit of sessions that refuses another one refuses the old one, too, which does not count", async () => {
  const user = subject();
  await store.create(newSession(user), nonce(), { cap: 1 });
  const limit = { scope: "subject", maxSessions: 1, whenExceeded: "refuse" } as const;
  const { ask, events, createLimit } = world(user, 100, limit);
  expect(await ask()).toEqual({ ok: false, reason: "session_limit" });
  expect(events).toMatchObject([{ event: "session_refused", subject: user, scope: "subject", maxSessions: 1 }]);
  expect(createLimit.counted).toEqual([]);
});

test("another old session, and the same text of another subject, lead to sessions of their own", async () => {
  const [one, two] = [world(), world()];
  const sids = [await one.ask("a"), await one.ask("b"), await two.ask("a")].map((result) => tokenOf(result).sid);
  expect(new Set(sids).size).toBe(3);
});

test("the id shows nothing of the old session, and lies in the partition of the subject", () => {
  const id = sessionIdFrom("alice", "s3cret");
  expect(id).toMatch(/^[\w-]{23}$/);
  expect(id.slice(0, 1)).toBe(sessionIdFrom("alice", "other").slice(0, 1));
  expect(Buffer.from(id, "base64url")[0]).toBe(Buffer.from(newSession("alice").sid, "base64url")[0]);
});
