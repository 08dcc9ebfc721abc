/** Which access tokens are accepted, for a logout and for other calls. */
import { expect, test } from "vitest";
import { authenticate, authenticateLogout } from "../../../src/service/session/authenticate.ts";
import type { AccessClaims, AccessTokenResult } from "../../../src/service/session/ports.ts";
import { accessTokens, REFRESH_TOKENS, SID, sidOf, tokenOf } from "../../support/session/scripted.ts";

const OTHER = sidOf("b");
const AUDIENCES = new Set(["api"]);

const claimsOf = (all: Readonly<Record<string, unknown>> = {}, aud: readonly string[] = ["api"]): AccessClaims => ({
  sid: SID,
  sub: "alice",
  aud,
  exp: 1,
  jti: "j",
  all,
});
const CALLER = claimsOf();
const BOUND = claimsOf({ cnf: { jkt: "key" } });
const valid = (claims: AccessClaims): AccessTokenResult => ({ ok: true, claims });
const expired = (claims: AccessClaims): AccessTokenResult => ({ ok: false, reason: "expired", claims });

type Presented = Omit<Parameters<typeof authenticate>[1], "token">;

/** What a token that is bound to a key needs, which holds for a logout, too. */
const KEYS: readonly [string, AccessClaims, Presented, object | undefined][] = [
  ["a valid token", CALLER, {}, undefined],
  ["a token for several audiences", claimsOf({}, ["other", "api"]), {}, undefined],
  ["a token for other audiences", claimsOf({}, ["other"]), {}, { ok: false, reason: "wrong_audience", sid: SID }],
  ["a bound token with its proof", BOUND, { proof: { thumbprint: "key" } }, undefined],
  ["a bound token without a proof", BOUND, {}, { ok: false, reason: "proof_missing", sid: SID }],
  [
    "a bound token with the proof of another key",
    BOUND,
    { proof: { thumbprint: "x" } },
    { ok: false, reason: "other_key", sid: SID },
  ],
  [
    "a token without a key where the scheme needs a proof",
    CALLER,
    { needsProof: true },
    { ok: false, reason: "proof_missing", sid: SID },
  ],
  [
    "a token without a key with a proof where the scheme needs it",
    CALLER,
    { needsProof: true, proof: { thumbprint: "key" } },
    { ok: false, reason: "other_key", sid: SID },
  ],
  ["a token without a key with a proof that nobody needs", CALLER, { proof: { thumbprint: "key" } }, undefined],
];

test.each(KEYS)("%s is accepted or refused", (_, claims, presented, refusal) => {
  const deps = { accessTokens: accessTokens(valid(claims)), audiences: AUDIENCES };
  expect(authenticate(deps, { token: "t", ...presented })).toEqual(refusal ?? { ok: true, claims });
});

test.each(["malformed", "unknown_key", "forged", "wrong_issuer"] as const)(
  "a token that is %s is refused",
  (reason) => {
    const deps = {
      accessTokens: accessTokens({ ok: false, reason }),
      audiences: AUDIENCES,
      refreshTokens: REFRESH_TOKENS,
    };
    expect(authenticate(deps, { token: "t" })).toEqual({ ok: false, reason });
    expect(authenticateLogout(deps, { token: "t" }, undefined)).toEqual({ ok: false, reason });
  },
);

test("without a token or with an expired one nobody is authenticated", () => {
  const deps = { accessTokens: accessTokens(expired(CALLER)), audiences: AUDIENCES, refreshTokens: REFRESH_TOKENS };
  expect(authenticate(deps, { token: undefined })).toEqual({ ok: false, reason: "absent" });
  expect(authenticate(deps, { token: "t" })).toEqual({ ok: false, reason: "expired" });
  expect(authenticateLogout(deps, { token: undefined }, undefined)).toEqual({ ok: false, reason: "absent" });
});

const COOKIE = REFRESH_TOKENS.mint(tokenOf());
const OTHER_COOKIE = REFRESH_TOKENS.mint(tokenOf(OTHER));

test.each(KEYS)("for a logout, %s is accepted or refused, expired or not", (_, claims, presented, refusal) => {
  for (const [isExpired, result] of [
    [false, valid(claims)],
    [true, expired(claims)],
  ] as const) {
    const deps = { accessTokens: accessTokens(result), audiences: AUDIENCES, refreshTokens: REFRESH_TOKENS };
    const granted = { ok: true, caller: claims, isExpired, byCookie: [SID] };
    expect(authenticateLogout(deps, { token: "t", ...presented }, COOKIE)).toEqual(refusal ?? granted);
  }
});

test.each<[string, AccessTokenResult, string | readonly string[] | undefined, object]>([
  ["a valid token alone", valid(CALLER), undefined, { ok: true, caller: CALLER, isExpired: false, byCookie: [] }],
  [
    "a valid token and a bad cookie",
    valid(CALLER),
    "?forged",
    { ok: true, caller: CALLER, isExpired: false, byCookie: [] },
  ],
  [
    "cookies of two sessions",
    valid(CALLER),
    [COOKIE, OTHER_COOKIE],
    { ok: true, caller: CALLER, isExpired: false, byCookie: [SID, OTHER] },
  ],
  ["an expired token alone", expired(CALLER), undefined, { ok: false, reason: "expired", sid: SID }],
  [
    "an expired token and another session's cookie",
    expired(CALLER),
    OTHER_COOKIE,
    { ok: false, reason: "expired", sid: SID },
  ],
  ["an expired token and a forged cookie", expired(CALLER), "?forged", { ok: false, reason: "expired", sid: SID }],
])("a logout with %s is granted or refused", (_, result, cookie, expected) => {
  const deps = { accessTokens: accessTokens(result), audiences: AUDIENCES, refreshTokens: REFRESH_TOKENS };
  expect(authenticateLogout(deps, { token: "t" }, cookie)).toEqual(expected);
});
