/** What a logout does for every outcome of the store. */
import { expect, test } from "vitest";
import { logout, logoutByRefreshTokens } from "../../../../src/service/session/endings/logout.ts";
import {
  type AccessClaims,
  type EndOutcome,
  StoreBusy,
  StoreUnavailable,
} from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import {
  findOf,
  NOW,
  ORIGIN,
  REQUESTER,
  SID,
  script,
  sessionOf,
  sidOf,
  tokenOf,
} from "../../../support/session/scripted.ts";

const OTHER = sidOf("b");

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
const endedAt = (sid: string, reason: string) => ({ event: "session_ended", sid, subject: "alice", reason });

const DONE = { ok: true, keepsCookies: false };
const live: EndOutcome = { ok: true, wasLive: true, subject: "alice" };
const lost: EndOutcome = { ok: true, wasLive: false };
const already: EndOutcome = { ok: false, reason: "already_ended" };

test.each<[string, boolean, EndOutcome, object, readonly object[]]>([
  ["a live session ends", false, live, DONE, [endedAt(SID, "logout")]],
  ["a session that the store has lost ends", false, lost, DONE, [endedAt(SID, "logout")]],
  ["a session that has ended is refused", false, already, REVOKED, []],
  ["by an expired token, a live session ends", true, live, DONE, [endedAt(SID, "logout")]],
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

test.each([
  ["of another subject who is signed in now", [OTHER], ["mallory"], true],
  ["of a session that has ended", [OTHER], [], false],
  ["of another subject beside its own", [SID, OTHER], ["mallory"], false],
  ["of another subject beside one that has ended", [OTHER, sidOf("c")], ["mallory"], false],
])("a logout by a token, with the cookie %s", async (_, byCookie, others, keepsCookies) => {
  const port = script({
    end: async () => live,
    endOwned: async () => ({ ok: false, reason: "not_found" }),
    find: findOf(...others.map((subject) => sessionOf({ sid: OTHER, subject }))),
  });
  const result = await logout(port, { ok: true, caller: CALLER, isExpired: false, byCookie }, REQUESTER);
  expect(result).toEqual({ ok: true, keepsCookies });
  expect(port.stepsOf("end").map(([sid]) => sid)).toEqual([SID]);
});

test.each([
  ["of the caller's own", CALLER],
  [
    "in which the caller acts for one more",
    { ...CALLER, sub: "another", all: { ...CALLER.all, act: { sub: "alice" } } },
  ],
])(
  "a logout by a token %s clears the cookie of a session in which the caller acts for another subject",
  async (_, caller) => {
    const port = script({
      end: async () => live,
      endOwned: async () => ({ ok: false, reason: "not_found" }),
      find: findOf(sessionOf({ sid: OTHER, subject: "customer", actor: { subject: "alice" } })),
    });
    const result = await logout(port, { ok: true, caller, isExpired: false, byCookie: [OTHER] }, REQUESTER);
    expect(result).toEqual({ ok: true, keepsCookies: false });
  },
);

test("a logout by a token succeeds, and clears the cookies, if nobody can tell whose they are, as under overload", async () => {
  const port = script({
    end: async () => live,
    endOwned: async () => ({ ok: false, reason: "not_found" }),
    find: () => Promise.reject(new StoreBusy("too many")),
  });
  const result = await logout(port, { ok: true, caller: CALLER, isExpired: false, byCookie: [OTHER] }, REQUESTER);
  expect(result).toEqual({ ok: true, keepsCookies: false });
  expect(port.stepsOf("audit").flat()).toEqual([endedAt(SID, "logout")]);
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
  expect(await logoutByRefreshTokens(port, [tokenOf()], REQUESTER, proof)).toEqual(expected);
  expect(port.stepsOf("audit").flat()).toEqual(events);
  expect(port.stepsOf("end")).toEqual([[SID, "logout", ORIGIN, { issuedAt: tokenOf().issuedAt, proof }]]);
});

test("a logout by cookie ends every session, also after one that is refused", async () => {
  const port = script({
    find: findOf(sessionOf(), sessionOf({ sid: OTHER, createdAt: storeMs(NOW - 1) })),
    end: async (sid) => (sid === SID ? { ok: false, reason: "proof_missing", subject: "alice" } : live),
  });
  const result = await logoutByRefreshTokens(port, [tokenOf(), tokenOf(OTHER)], REQUESTER);
  expect(result).toEqual({ ok: false, reason: "proof_missing", sid: SID });
  expect(port.stepsOf("end").map(([sid]) => sid)).toEqual([SID, OTHER]);
  expect(port.stepsOf("audit").flat()).toMatchObject([{ event: "bound_key_missing" }, endedAt(OTHER, "logout")]);
});

test.each([
  ["", { ok: true }, [SID, OTHER]],
  [OTHER, { ok: true }, [SID, OTHER]],
  [sidOf("c"), { ok: false, reason: "unknown_session" }, []],
  ["%", { ok: false, reason: "unknown_session" }, []],
])("a logout by cookies that means the session %j", async (meant, expected, ended) => {
  const port = script({
    find: findOf(sessionOf(), sessionOf({ sid: OTHER, createdAt: storeMs(NOW - 1) })),
    end: async () => live,
  });
  expect(await logoutByRefreshTokens(port, [tokenOf(), tokenOf(OTHER)], REQUESTER, undefined, meant)).toEqual(expected);
  expect(port.stepsOf("end").map(([sid]) => sid)).toEqual(ended);
});

test("a logout by cookies that means an ended session ends none that is live beside it, whoever it is of", async () => {
  const port = script({ find: findOf(sessionOf({ sid: OTHER, subject: "mallory" })), end: async () => live });
  for (const tokens of [[tokenOf(), tokenOf(OTHER)] as const, [tokenOf(OTHER), tokenOf()] as const]) {
    const result = await logoutByRefreshTokens(port, tokens, REQUESTER, undefined, SID);
    expect(result).toEqual({ ok: false, reason: "unknown_session" });
  }
  expect(port.stepsOf("end")).toEqual([]);
  const none = script({ find: findOf(), end: async () => already });
  for (const meant of [SID, OTHER]) {
    const result = await logoutByRefreshTokens(none, [tokenOf(), tokenOf(OTHER)], REQUESTER, undefined, meant);
    expect(result).toEqual({ ok: true });
  }
});

test("a logout by the cookies of two subjects ends nothing", async () => {
  const port = script({ find: findOf(sessionOf(), sessionOf({ sid: OTHER, subject: "mallory" })) });
  expect(await logoutByRefreshTokens(port, [tokenOf(), tokenOf(OTHER)], REQUESTER)).toEqual({
    ok: false,
    reason: "ambiguous",
  });
  expect(port.stepsOf("end")).toEqual([]);
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
