/** What updates do for every outcome of the store: what they return, what they record, and what they count. */
import { expect, test } from "vitest";
import { update, updateSubject } from "../../../../src/service/session/admin/update.ts";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { limitOf, REQUESTER, SID, script, sessionOf, sidOf } from "../../../support/session/scripted.ts";

const CHANGE = { claims: '{"role":"reader"}', outdatesTokens: true };
const UPDATED = sessionOf({ claims: CHANGE.claims, version: 4, staleBelow: 4 });
const RECORDED = {
  ...{ event: "session_updated", sid: SID, subject: "alice" },
  ...{ version: 4, fields: ["claims"], accessTokens: "refresh" },
};

test("an update is recorded with its version and without its values", async () => {
  const outcome = { ok: true, session: UPDATED, isChanged: true } as const;
  const port = { ...script({ update: async () => outcome }), updateLimit: limitOf() };
  expect(await update(port, SID, CHANGE, REQUESTER)).toEqual(outcome);
  expect(port.steps).toEqual([
    ["update", SID, CHANGE],
    ["audit", RECORDED],
  ]);
  expect(port.updateLimit.counted).toEqual([SID]);
});

test("an update names what it replaces", async () => {
  const outcome = { ok: true, session: sessionOf(), isChanged: true } as const;
  const port = { ...script({ update: async () => outcome }), updateLimit: limitOf() };
  await update(port, SID, { audience: "api", outdatesTokens: false }, REQUESTER);
  await update(port, SID, { claims: "{}", audience: "api", outdatesTokens: false }, REQUESTER);
  await update(port, SID, { outdatesTokens: true }, REQUESTER);
  const recorded = { event: "session_updated", sid: SID, subject: "alice", version: 0 };
  expect(port.stepsOf("audit").flat()).toEqual([
    { ...recorded, fields: ["audiences"], accessTokens: "keep" },
    { ...recorded, fields: ["claims", "audiences"], accessTokens: "keep" },
    { ...recorded, fields: [], accessTokens: "refresh" },
  ]);
});

test.each([
  { ok: true, session: UPDATED, isChanged: false } as const,
  { ok: false, reason: "conflict" } as const,
  { ok: false, reason: "unknown" } as const,
])("what changes nothing is not recorded (%o)", async (outcome) => {
  const port = { ...script({ update: async () => outcome }), updateLimit: limitOf() };
  expect(await update(port, SID, { ...CHANGE, ifVersion: 3 }, REQUESTER)).toEqual(outcome);
  expect(port.stepsOf("audit")).toEqual([]);
});

test("over the limit the store is not asked, and an update to which it did not reply does not count", async () => {
  const limited = { ...script({}), updateLimit: limitOf(7_000) };
  const refusal = { ok: false, reason: "rate_limited", limit: "update", retryAfterMs: 7_000 };
  expect(await update(limited, SID, CHANGE, REQUESTER)).toEqual(refusal);
  expect(limited.steps).toEqual([["audit", { event: "rate_limited", limit: "update", sid: SID }]]);
  const outage = new StoreUnavailable("away");
  const fails = async () => {
    throw outage;
  };
  const port = { ...script({ update: fails }), updateLimit: limitOf() };
  await expect(update(port, SID, CHANGE, REQUESTER)).rejects.toBe(outage);
  expect(port.updateLimit.counted).toEqual([]);
});

test("the sessions of a subject are updated page by page, at most eight at a time, and those that are live count", async () => {
  const sids = [..."abcdefghijklmnopqrst"].map(sidOf);
  const pages = [sids.slice(0, 12), sids.slice(12)];
  let [under, most] = [0, 0];
  const port = {
    ...script({
      list: async (_subject, _limit, from) => {
        const sessions = (pages[Number(from ?? 0)] ?? []).map((sid) => sessionOf({ sid }));
        return { sessions, next: from === undefined ? "1" : undefined };
      },
      update: async (sid) => {
        most = Math.max(most, ++under);
        await new Promise(setImmediate);
        under--;
        if (sid === sids[3]) return { ok: false, reason: "revoked" };
        return { ok: true, session: { ...UPDATED, sid }, isChanged: true };
      },
    }),
    updateLimit: limitOf(),
  };
  expect(await updateSubject(port, "alice", CHANGE, REQUESTER)).toEqual({ ok: true, count: 19 });
  expect(port.stepsOf("update").map(([sid]) => sid)).toEqual(sids);
  expect(most).toBe(8);
});

test("a session that may not be updated stops the update of a subject before its page", async () => {
  const refusal = new Error("too large");
  const list = async () => ({ sessions: [sessionOf(), sessionOf({ sid: sidOf("b") })], next: undefined });
  const port = { ...script({ list }), updateLimit: limitOf() };
  const check = ({ sid }: { readonly sid: string }) => {
    if (sid !== SID) throw refusal;
  };
  await expect(updateSubject(port, "alice", CHANGE, REQUESTER, check)).rejects.toBe(refusal);
  expect(port.stepsOf("update")).toEqual([]);
  const limited = { ...script({ list }), updateLimit: limitOf(1_000) };
  expect(await updateSubject(limited, "alice", CHANGE, REQUESTER)).toMatchObject({ reason: "rate_limited" });
});
