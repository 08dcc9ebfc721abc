/** What the operations of a session's owner do for every outcome of the store and every credential. */
import { expect, test } from "vitest";
import {
  authenticate,
  authenticateLogout,
  listOwn,
  logout,
  logoutByCookie,
  revokeOthers,
  revokeOwn,
} from "../../../../src/service/session/endings/owner.ts";
import {
  type AccessClaims,
  type AccessTokenResult,
  type EndOutcome,
  type SessionStore,
  StoreUnavailable,
} from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import {
  accessTokens,
  findOf,
  NOW,
  ORIGIN,
  REFRESH_TOKENS,
  REQUESTER,
  SID,
  script,
  sessionOf,
  sidOf,
  tokenOf,
} from "../../../support/session/scripted.ts";

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
const REVOKED = { ok: false, reason: "revoked", sid: SID };
const BOUND = claimsOf({ cnf: { jkt: "key" } });
const valid = (claims: AccessClaims): AccessTokenResult => ({ ok: true, claims });
const expired = (claims: AccessClaims): AccessTokenResult => ({ ok: false, reason: "expired", claims });
const endedAt = (sid: string, reason: string) => ({ event: "session_ended", sid, subject: "alice", reason });

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

const live: EndOutcome = { ok: true, wasLive: true, subject: "alice" };
const lost: EndOutcome = { ok: true, wasLive: false };
const already: EndOutcome = { ok: false, reason: "already_ended" };

test.each<[string, boolean, EndOutcome, object, readonly object[]]>([
  ["a live session ends", false, live, { ok: true }, [endedAt(SID, "logout")]],
  ["a session that the store has lost ends", false, lost, { ok: true }, [endedAt(SID, "logout")]],
  ["a session that has ended is refused", false, already, REVOKED, []],
  ["by an expired token, a live session ends", true, live, { ok: true }, [endedAt(SID, "logout")]],
  ["by an expired token, a lost session is refused", true, lost, REVOKED, []],
  ["by an expired token, an ended session is refused", true, already, REVOKED, []],
])("at a logout, %s", async (_, isExpired, outcome, expected, events) => {
  const port = script({ end: async () => outcome });
  const result = await logout(port, { ok: true, caller: CALLER, isExpired, byCookie: [SID] }, REQUESTER);
  expect(result).toEqual(expected);
  expect(port.stepsOf("audit").flat()).toEqual(events);
  // Only a token that has not expired proves that the session existed.
  expect(port.stepsOf("end")).toEqual([[SID, "logout", isExpired ? ORIGIN : { ...ORIGIN, subject: "alice" }]]);
});

test("a logout ends the other sessions of the cookies first, and records those that were live", async () => {
  const gone = sidOf("c");
  const port = script({
    end: async () => live,
    endOwned: async (_, target) => (target === OTHER ? { ok: true } : { ok: false, reason: "not_found" }),
  });
  await logout(port, { ok: true, caller: CALLER, isExpired: false, byCookie: [SID, OTHER, gone] }, REQUESTER);
  expect(port.steps.map(([name, ...given]) => (name === "audit" ? given[0] : [name, ...given.slice(0, 3)]))).toEqual([
    ["endOwned", SID, OTHER, "logout"],
    endedAt(OTHER, "logout"),
    ["endOwned", SID, gone, "logout"],
    ["end", SID, "logout", { ...ORIGIN, subject: "alice" }],
    endedAt(SID, "logout"),
  ]);
});

test("a logout that cannot end another session of the cookies fails, and ends nothing, so that it can be repeated", async () => {
  const port = script({
    end: async () => live,
    async endOwned() {
      throw new StoreUnavailable("out");
    },
  });
  const credential = { ok: true, caller: CALLER, isExpired: false, byCookie: [SID, OTHER] } as const;
  await expect(logout(port, credential, REQUESTER)).rejects.toThrow(StoreUnavailable);
  expect(port.stepsOf("end")).toEqual([]);
});

test.each<[string, EndOutcome, object, readonly object[]]>([
  ["a live session ends", live, { ok: true }, [endedAt(SID, "logout")]],
  ["a lost session is no error", lost, { ok: true }, []],
  ["an ended session is no error", already, { ok: true }, []],
  ...(["proof_missing", "other_key"] as const).map((reason): [string, EndOutcome, object, readonly object[]] => [
    `${reason} is refused`,
    { ok: false, reason, subject: "alice" },
    { ok: false, reason, sid: SID },
    [{ event: "bound_key_missing", sid: SID, subject: "alice", operation: "logout", reason }],
  ]),
])("at a logout by cookie, %s", async (_, outcome, expected, events) => {
  const port = script({ end: async () => outcome });
  const proof = { thumbprint: "key" };
  expect(await logoutByCookie(port, [tokenOf()], REQUESTER, proof)).toEqual(expected);
  expect(port.stepsOf("audit").flat()).toEqual(events);
  expect(port.stepsOf("end")).toEqual([[SID, "logout", ORIGIN, { issuedAt: tokenOf().issuedAt, proof }]]);
});

test("a logout by cookie ends every session, also after one that is refused", async () => {
  const port = script({
    find: findOf(sessionOf(), sessionOf({ sid: OTHER, createdAt: storeMs(NOW - 1) })),
    end: async (sid) => (sid === SID ? { ok: false, reason: "proof_missing", subject: "alice" } : live),
  });
  const result = await logoutByCookie(port, [tokenOf(), tokenOf(OTHER)], REQUESTER);
  expect(result).toEqual({ ok: false, reason: "proof_missing", sid: SID });
  expect(port.stepsOf("end").map(([sid]) => sid)).toEqual([SID, OTHER]);
  expect(port.stepsOf("audit").flat()).toMatchObject([{ event: "bound_key_missing" }, endedAt(OTHER, "logout")]);
});

test("a logout by the cookies of two subjects ends nothing", async () => {
  const port = script({ find: findOf(sessionOf(), sessionOf({ sid: OTHER, subject: "mallory" })) });
  expect(await logoutByCookie(port, [tokenOf(), tokenOf(OTHER)], REQUESTER)).toEqual({
    ok: false,
    reason: "ambiguous",
  });
  expect(port.stepsOf("end")).toEqual([]);
});

test("the caller's sessions are listed while its own is live", async () => {
  const page = { sessions: [sessionOf()], next: "n" };
  const list: SessionStore["list"] = async () => page;
  const port = script({ find: findOf(sessionOf()), list });
  expect(await listOwn(port, CALLER, 10, "from")).toEqual({ ok: true, page });
  expect(port.stepsOf("list")).toEqual([["alice", 10, "from"]]);
  const after = script({ find: findOf(), list });
  expect(await listOwn(after, CALLER, 10, undefined)).toEqual(REVOKED);
  expect(after.stepsOf("list")).toEqual([]);
});

test.each<[string, Partial<SessionStore>, typeof OTHER | undefined, object, readonly object[]]>([
  [
    "ends",
    { find: findOf(sessionOf()), endOwned: async () => ({ ok: true }) },
    OTHER,
    { ok: true },
    [endedAt(OTHER, "revoked_by_owner")],
  ],
  [
    "is not found",
    { find: findOf(sessionOf()), endOwned: async () => ({ ok: false, reason: "not_found" }) },
    OTHER,
    { ok: false, reason: "not_found" },
    [],
  ],
  [
    "stays if the caller's has ended a moment ago",
    { find: findOf(sessionOf()), endOwned: async () => ({ ok: false, reason: "actor_ended" }) },
    OTHER,
    REVOKED,
    [],
  ],
  ["whose id is none is not found", { find: findOf(sessionOf()) }, undefined, { ok: false, reason: "not_found" }, []],
  ["whose id is none is refused if the caller's has ended", { find: findOf() }, undefined, REVOKED, []],
])("another session of the caller %s", async (_, outcomes, target, expected, events) => {
  const port = script(outcomes);
  expect(await revokeOwn(port, CALLER, target, REQUESTER)).toEqual(expected);
  expect(port.stepsOf("audit").flat()).toEqual(events);
  if (target !== undefined) expect(port.stepsOf("endOwned")).toEqual([[SID, OTHER, "revoked_by_owner", ORIGIN]]);
});

test("all other sessions of the caller end, and those that the store names are recorded", async () => {
  const find = findOf(sessionOf());
  const port = script({ find, endAll: async () => ({ ok: true, ended: [OTHER], count: 3 }) });
  expect(await revokeOthers(port, CALLER, REQUESTER)).toEqual({ ok: true, count: 3 });
  expect(port.steps).toEqual([
    ["find", SID],
    ["endAll", "alice", "revoked_others", { except: SID, actor: SID, origin: ORIGIN }],
    ["audit", endedAt(OTHER, "revoked_others")],
  ]);
  const after = script({ find, endAll: async () => ({ ok: false, reason: "actor_ended" }) });
  expect(await revokeOthers(after, CALLER, REQUESTER)).toEqual(REVOKED);
  expect(after.stepsOf("audit")).toEqual([]);
});

test("a stale access token of the caller lists and ends nothing, and a later one does", async () => {
  const updated = sessionOf({ version: 3, staleBelow: 2 });
  const withVersion = (sv?: number) => ({ ...CALLER, all: { ...CALLER.all, ...(sv !== undefined && { sv }) } });
  const list = async () => ({ sessions: [], next: undefined });
  const calls = [
    (port: ReturnType<typeof script>, caller: typeof CALLER) => listOwn(port, caller, 10, undefined),
    (port: ReturnType<typeof script>, caller: typeof CALLER) => revokeOwn(port, caller, OTHER, REQUESTER),
    (port: ReturnType<typeof script>, caller: typeof CALLER) => revokeOwn(port, caller, undefined, REQUESTER),
    (port: ReturnType<typeof script>, caller: typeof CALLER) => revokeOthers(port, caller, REQUESTER),
  ];
  for (const call of calls) {
    for (const sv of [undefined, 1]) {
      const port = script({ find: findOf(updated) });
      expect(await call(port, withVersion(sv))).toEqual({ ok: false, reason: "stale", sid: SID });
      expect(port.steps).toEqual([["find", SID]]);
    }
    const endOwned: SessionStore["endOwned"] = async () => ({ ok: true });
    const endAll: SessionStore["endAll"] = async () => ({ ok: true, ended: [], count: 0 });
    const port = script({ find: findOf(updated), list, endOwned, endAll });
    expect(await call(port, withVersion(2))).not.toMatchObject({ reason: "stale" });
  }
});

test.each([
  [{ sub: "support" }, { actor: "support" }],
  // A session from before the claim was reserved may have one of its own.
  [{ sub: 1 }, {}],
  ["support", {}],
  [undefined, {}],
])("a logout by a token whose `act` is %j is recorded with %j", async (act, actor) => {
  const port = script({ end: async () => ({ ok: true, wasLive: true, subject: "alice" }) });
  await logout(port, { ok: true, caller: claimsOf({ act }), isExpired: false, byCookie: [] }, REQUESTER);
  expect(port.steps).toEqual([
    ["end", SID, "logout", { ...ORIGIN, ...actor, subject: "alice" }],
    ["audit", { ...endedAt(SID, "logout"), ...actor }],
  ]);
});
