/** Refreshes and logouts of a session that is bound to a key which each request proves, and the audit events of both. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type AuditEvent, UNKNOWN_REQUESTER } from "../../../../src/service/session/audit.ts";
import type { KeyProof } from "../../../../src/service/session/devices/key.ts";
import { logoutByRefreshTokens } from "../../../../src/service/session/endings/logout.ts";
import type { RateLimit, RefreshToken, SessionStore } from "../../../../src/service/session/ports.ts";
import { refresh } from "../../../../src/service/session/rotation/refresh.ts";
import { type StoreMs, toWallClock } from "../../../../src/service/session/time.ts";
import { deviceTools } from "../../../support/device-tools.ts";
import { type Backend, embeddedBackend } from "../../../support/store/backends.ts";
import { someProof } from "../../../support/store/device.ts";
import { expectCreated, newSession, nonce, REUSE_INTERVAL } from "../../../support/store/sessions.ts";

const OWN = someProof(1);
const OTHER = someProof(2);
const NO_LIMIT: RateLimit = { take: () => undefined, giveBack() {} };

let backend: Backend;
let store: SessionStore;
beforeAll(async () => {
  backend = await embeddedBackend();
  store = await backend.open();
});
afterAll(() => backend.stop());

/** Creates a session with a key, and a client that records the audit events. */
async function boundClient(refreshLimit = NO_LIMIT, more: { readonly dpopJkt?: string } = { dpopJkt: OWN.thumbprint }) {
  const childNonce = nonce();
  const { session } = expectCreated(await store.create(newSession("alice", more), childNonce, { cap: 100 }));
  const { sid, clientId } = session;
  const token: RefreshToken = { sid, generation: 1, nonce: childNonce, issuedAt: backend.now() };
  const events: AuditEvent[] = [];
  const deps = {
    store,
    device: deviceTools(backend.now, { reuseIntervalMs: REUSE_INTERVAL }),
    refreshTokens: { mint: () => "" },
    accessTokens: { issue: (_: unknown, now: StoreMs) => ({ token: "", expiresAt: toWallClock(now, 0) }) },
    random: { nonce },
    refreshLimit,
    audit: (event: AuditEvent) => void events.push(event),
  };
  return {
    sid,
    events,
    refresh: (proof?: KeyProof) => refresh(deps, [token], UNKNOWN_REQUESTER, undefined, { clientId, proof }),
    refreshByCookie: (proof?: KeyProof) =>
      refresh(deps, [token], UNKNOWN_REQUESTER, { cookies: [], skipped: [], proof }),
    logout: (proof?: KeyProof) => logoutByRefreshTokens(deps, [token], UNKNOWN_REQUESTER, proof),
  };
}

test("a copied token is served nothing, ends nothing, and is recorded", async () => {
  const { sid, events, ...client } = await boundClient();
  for (const attempt of [client.refresh, client.refreshByCookie, client.logout]) {
    expect(await attempt()).toEqual({ ok: false, reason: "proof_missing", sid });
    expect(await attempt(OTHER)).toEqual({ ok: false, reason: "other_key", sid });
  }
  const missing = (operation: string, reason: string) => {
    return { event: "bound_key_missing", sid, subject: "alice", operation, reason };
  };
  const ofRefresh = [missing("refresh", "proof_missing"), missing("refresh", "other_key")];
  const ofLogout = [missing("logout", "proof_missing"), missing("logout", "other_key")];
  expect(events).toEqual([...ofRefresh, ...ofRefresh, ...ofLogout]);
  expect(await client.refresh(OWN)).toMatchObject({ ok: true });
  expect(await client.logout(OWN)).toEqual({ ok: true });
  expect(await client.refresh(OWN)).toMatchObject({ reason: "revoked" });
});

test("the first proof is recorded once, with the thumbprint of its key", async () => {
  const { sid, events, ...client } = await boundClient(NO_LIMIT, {});
  await client.refresh(OWN);
  await client.refresh(OWN);
  expect(events.filter(({ event }) => event === "device_bound")).toEqual([
    { event: "device_bound", sid, subject: "alice", algorithm: "DPoP", thumbprint: OWN.thumbprint },
  ]);
});

/** Returns a rate limit that allows one request for each key under which requests are counted. */
function once(): RateLimit {
  const taken = new Set<string>();
  return { take: (key) => (taken.has(key) ? 1000 : void taken.add(key)), giveBack() {} };
}

test.each([
  ["none", undefined, "proof_missing"],
  ["another key", OTHER, "other_key"],
])(
  "a thief with many keys has one limit for all of them, and the key's holder another one: after %s",
  async (_, first, reason) => {
    const client = await boundClient(once());
    expect(await client.refresh(first)).toMatchObject({ reason });
    for (const stolen of [undefined, OTHER, someProof(3), someProof(4)]) {
      expect(await client.refresh(stolen)).toMatchObject({ reason: "rate_limited" });
      expect(await client.refreshByCookie(stolen)).toMatchObject({ reason: "rate_limited" });
    }
    expect(await client.refresh(OWN)).toMatchObject({ ok: true });
  },
);

test("a session without a key has one limit, whatever its requests prove", async () => {
  const client = await boundClient(once(), {});
  expect(await client.refreshByCookie(OTHER)).toMatchObject({ ok: true });
  for (const proof of [undefined, OTHER, OWN]) {
    expect(await client.refreshByCookie(proof)).toMatchObject({ reason: "rate_limited" });
  }
});

test("the key of a session is counted apart from its first proof on", async () => {
  const client = await boundClient(once(), {});
  expect(await client.refresh(OWN)).toMatchObject({ ok: true });
  expect(await client.refresh(OTHER)).toMatchObject({ reason: "rate_limited" });
  expect(await client.refresh(OWN)).toMatchObject({ ok: true });
  expect(await client.refresh(OWN)).toMatchObject({ reason: "rate_limited" });
});
