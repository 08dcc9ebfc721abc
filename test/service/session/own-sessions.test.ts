/** What the operations of a session's owner do for every outcome of the store. */
import { expect, test } from "vitest";
import { listOwn, revokeOthers, revokeOwn } from "../../../src/service/session/own-sessions.ts";
import type { AccessClaims, SessionStore } from "../../../src/service/session/ports.ts";
import { findOf, ORIGIN, REQUESTER, SID, script, sessionOf, sidOf } from "../../support/session/scripted.ts";

const OTHER = sidOf("b");

const CALLER: AccessClaims = {
  sid: SID,
  sub: "alice",
  aud: ["api"],
  exp: 1,
  jti: "j",
  all: {},
};
const REVOKED = { ok: false, reason: "revoked", sid: SID };
const endedAt = (sid: string, reason: string) => ({ event: "session_ended", sid, subject: "alice", reason });

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
    { find: findOf(sessionOf()), endOwned: async () => ({ ok: false, reason: "caller_ended" }) },
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
  const port = script({ find, endAll: async () => ({ ok: true, ended: [{ sid: OTHER }], count: 3 }) });
  expect(await revokeOthers(port, CALLER, REQUESTER)).toEqual({ ok: true, count: 3 });
  expect(port.steps).toEqual([
    ["find", SID],
    ["endAll", "alice", "revoked_others", { except: SID, caller: SID, origin: ORIGIN }],
    ["audit", endedAt(OTHER, "revoked_others")],
  ]);
  const after = script({ find, endAll: async () => ({ ok: false, reason: "caller_ended" }) });
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
