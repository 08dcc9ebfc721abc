/** Which tokens are active, for every outcome of the store. */
import { expect, test } from "vitest";
import { introspect } from "../../../../src/service/session/admin/introspect.ts";
import type { AccessTokenResult, Found, RefreshToken, SessionStore } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import {
  accessTokens,
  found,
  NOW,
  REFRESH_TOKENS,
  SID,
  sessionOf,
  tokenOf,
} from "../../../support/session/scripted.ts";

const CLAIMS = { sid: SID, sub: "alice", aud: ["api"], exp: 1, jti: "j", all: { sub: "alice", sv: 1 } };
const VALID: AccessTokenResult = { ok: true, claims: CLAIMS };
const UNKNOWN: Found = { ok: false, reason: "unknown" };
const DPOP = { key: { algorithm: "DPoP", thumbprint: new Uint8Array(32) }, state: "bound", since: NOW } as const;

const introspected = (outcome: Found, text: string, access: AccessTokenResult = VALID) => {
  const store: Pick<SessionStore, "find"> = { find: async () => outcome };
  return introspect(
    { store, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(access), reuseIntervalMs: 10_000 },
    text,
  );
};

test.each<[string, Found, AccessTokenResult, boolean]>([
  ["of a live session", found(sessionOf()), VALID, true],
  ["of a session that has ended", { ok: false, reason: "revoked" }, VALID, false],
  ["of an unknown session", UNKNOWN, VALID, false],
  ["that is stale", found(sessionOf({ version: 2, staleBelow: 2 })), VALID, false],
  ["that has expired", found(sessionOf()), { ok: false, reason: "expired", claims: CLAIMS }, false],
  ["that is forged", found(sessionOf()), { ok: false, reason: "forged" }, false],
])("an access token %s", async (_, outcome, access, active) => {
  const expected = active ? { active, tokenType: "access_token", claims: CLAIMS.all } : { active };
  expect(await introspected(outcome, "?malformed", access)).toEqual(expected);
});

/** The state of a session whose token of generation 5 is confirmed, since long ago. */
const rotated = (more: object = {}): Found => ({
  ...{ ok: true, session: sessionOf(more), now: NOW },
  rotation: {
    ...{ generation: 5, nonce: "confirmed", siblingsSince: storeMs(2 ** 48 - 1), childNonce: "child" },
    ...{ childMintedAt: storeMs(NOW - 60_000), childServedAt: storeMs(NOW - 60_000) },
  },
});

test.each<[string, Found, Partial<RefreshToken>, boolean]>([
  ["that is current", rotated(), { generation: 6, nonce: "child" }, true],
  ["that was used before", rotated(), { generation: 4 }, false],
  ["that was used before, with a key that each request proves", rotated({ device: DPOP }), { generation: 4 }, true],
  ["of an unknown session", UNKNOWN, {}, false],
])("a refresh token %s", async (_, outcome, more, active) => {
  const token = tokenOf(SID, more);
  const session = outcome.ok ? outcome.session : undefined;
  const expected = active ? { active, tokenType: "refresh_token", session, issuedAt: token.issuedAt } : { active };
  expect(await introspected(outcome, REFRESH_TOKENS.mint(token))).toEqual(expected);
});
