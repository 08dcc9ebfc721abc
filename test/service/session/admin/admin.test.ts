/** What the admin API's operations on sessions do for every outcome of the store: what they return, record and count. */
import { describe, expect, test } from "vitest";
import { elevate, revoke, revokeAll, revokeSubject } from "../../../../src/service/session/admin/admin.ts";
import type { EndOutcome } from "../../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { limitOf, NOW, ORIGIN, REQUESTER, SID, script, sessionOf, sidOf } from "../../../support/session/scripted.ts";

describe("one session", () => {
  test("that was live is counted and recorded, with who acted in it", async () => {
    const port = script({ end: async () => ({ ok: true, wasLive: true, subject: "alice", actor: "support" }) });
    expect(await revoke(port, SID, REQUESTER)).toBe(1);
    expect(port.steps).toEqual([
      ["end", SID, "revoked_by_admin", ORIGIN],
      ["audit", { event: "session_ended", sid: SID, subject: "alice", actor: "support", reason: "revoked_by_admin" }],
    ]);
    expect([...port.requesters]).toEqual([REQUESTER]);
  });

  test.each<EndOutcome>([
    { ok: true, wasLive: false },
    { ok: false, reason: "already_ended" },
  ])("that was not live is neither counted nor recorded (%o)", async (outcome) => {
    const port = script({ end: async () => outcome });
    expect(await revoke(port, SID, REQUESTER)).toBe(0);
    expect(port.stepsOf("audit")).toEqual([]);
  });
});

describe("the sessions of a subject", () => {
  const [one, other] = [sidOf("b"), sidOf("c")];

  test("end but for one, and each ending is recorded; those that are recorded later count, too", async () => {
    const named = [{ sid: one }, { sid: other, actor: "support" }];
    const port = script({ endAll: async () => ({ ok: true, ended: named, count: 7 }) });
    expect(await revokeSubject(port, "alice", SID, REQUESTER)).toBe(7);
    const ended = { event: "session_ended", subject: "alice", reason: "revoked_subject" };
    expect(port.steps).toEqual([
      ["endAll", "alice", "revoked_subject", { except: SID, origin: ORIGIN }],
      ["audit", { ...ended, sid: one }],
      ["audit", { ...ended, sid: other, actor: "support" }],
    ]);
    expect([...port.requesters]).toEqual([REQUESTER]);
  });

  test("all end if none is excepted", async () => {
    const port = script({ endAll: async () => ({ ok: true, ended: [{ sid: one }], count: 1 }) });
    expect(await revokeSubject(port, "alice", undefined, REQUESTER)).toBe(1);
    expect(port.stepsOf("endAll")).toStrictEqual([["alice", "revoked_subject", { origin: ORIGIN }]]);
    expect(port.stepsOf("audit")).toEqual([
      [{ event: "session_ended", sid: one, subject: "alice", reason: "revoked_subject" }],
    ]);
  });

  test("are not reported as ended if the store has ended none", async () => {
    const port = script({ endAll: async () => ({ ok: false, reason: "caller_ended" }) });
    await expect(revokeSubject(port, "alice", undefined, REQUESTER)).rejects.toThrow("no actor was named");
  });
});

test.each([undefined, storeMs(NOW - 1)])(
  "all sessions end, up to the time that the store gives (%s)",
  async (before) => {
    const port = script({ revokeAll: async () => NOW });
    expect(await revokeAll(port, before, REQUESTER)).toBe(NOW);
    expect(port.steps).toEqual([
      ["revokeAll", before, ORIGIN],
      ["audit", { event: "all_sessions_ended", revokedUntil: NOW }],
    ]);
    expect([...port.requesters]).toEqual([REQUESTER]);
  },
);

describe("a later authentication", () => {
  const LATER = { time: wallMs(NOW), methods: ["pwd", "otp"], contextClass: "gold" };
  const elevated = { ok: true, session: sessionOf({ authentication: LATER }) } as const;
  const RECORDED = {
    ...{ event: "session_elevated", sid: SID, subject: "alice" },
    ...{ methods: LATER.methods, contextClass: "gold" },
  };

  test("is recorded, and does not count as an update while older access tokens stay", async () => {
    const port = { ...script({ elevate: async () => elevated }), updateLimit: limitOf(7_000) };
    expect(await elevate(port, SID, LATER, false, REQUESTER)).toBe(elevated);
    expect(port.steps).toStrictEqual([
      ["elevate", SID, LATER, false],
      ["audit", RECORDED],
    ]);
    expect(port.updateLimit.counted).toEqual([]);
  });

  test("that makes older access tokens stale counts as an update, and says so", async () => {
    const port = { ...script({ elevate: async () => elevated }), updateLimit: limitOf() };
    expect(await elevate(port, SID, LATER, true, REQUESTER)).toBe(elevated);
    expect(port.steps).toEqual([
      ["elevate", SID, LATER, true],
      ["audit", { ...RECORDED, accessTokens: "refresh" }],
    ]);
    expect(port.updateLimit.counted).toEqual([SID]);
  });

  test("over the limit the store is not asked", async () => {
    const port = { ...script({}), updateLimit: limitOf(7_000) };
    expect(await elevate(port, SID, LATER, true, REQUESTER)).toEqual({
      ...{ ok: false, reason: "rate_limited", limit: "update", retryAfterMs: 7_000 },
    });
    expect(port.steps).toEqual([["audit", { event: "rate_limited", limit: "update", sid: SID }]]);
  });

  test.each(["outdated", "has_actor", "revoked", "unknown"] as const)(
    "that the store refuses (%s) is not recorded",
    async (reason) => {
      const port = { ...script({ elevate: async () => ({ ok: false, reason }) }), updateLimit: limitOf() };
      expect(await elevate(port, SID, LATER, false, REQUESTER)).toEqual({ ok: false, reason });
      expect(port.stepsOf("audit")).toEqual([]);
    },
  );
});
