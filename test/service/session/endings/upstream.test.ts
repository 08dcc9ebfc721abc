/** Which sessions end when a provider ends a login, by what the session and the provider say of it. */
import { expect, test } from "vitest";
import { endUpstream } from "../../../../src/service/session/endings/upstream.ts";
import type { Session, StorePart, Upstream } from "../../../../src/service/session/model.ts";
import { type EndOutcome, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { type WallMs, wallMs } from "../../../../src/service/session/time.ts";
import { findOf, NOW, ORIGIN, REQUESTER, SID, script, sessionOf, sidOf } from "../../../support/session/scripted.ts";

const ISSUER = "https://login.example";
/** By how much the wall clock is ahead of the time of the part of the store that has the session. */
const SHIFT = 5_000;
const CREATED = wallMs(NOW + SHIFT);

/** The note of a login is tested by itself below. */
const note = async () => {};

const ENDED: EndOutcome = { ok: true, wasLive: true, subject: "alice", actor: "support" };

async function end(
  sessions: readonly Session[],
  ended: Omit<Upstream, "issuer">,
  createdUntil: WallMs = CREATED,
  outcome = ENDED,
) {
  const port = script({
    sessionsOf: async () => sessions.map(({ sid }) => sid),
    find: findOf(...sessions),
    end: async () => outcome,
  });
  const { sessionsOf, find, end: endOne } = port.store;
  const shiftMs = (place?: StorePart) => (place !== undefined && "sid" in place ? SHIFT : 0);
  const store = { sessionsOf, find, end: endOne, shiftMs, note };
  const count = await endUpstream(
    { store, audit: port.audit },
    { issuer: ISSUER, ...ended, createdUntil, leftMs: 0 },
    REQUESTER,
  );
  return { count, ...port };
}

const from = (upstream: Omit<Upstream, "issuer">, issuer = ISSUER) => sessionOf({ upstream: { issuer, ...upstream } });

test.each<[session: Omit<Upstream, "issuer">, ended: Omit<Upstream, "issuer">, count: number]>([
  [{ sessionId: "a", subject: "u" }, { sessionId: "a" }, 1],
  [{ sessionId: "a", subject: "u" }, { subject: "u" }, 1],
  [{ sessionId: "a", subject: "u" }, { sessionId: "a", subject: "u" }, 1],
  [{ sessionId: "a", subject: "u" }, { sessionId: "b", subject: "u" }, 0],
  [{ sessionId: "a", subject: "u" }, { sessionId: "a", subject: "v" }, 0],
  [{ sessionId: "a" }, { sessionId: "a", subject: "u" }, 1],
  [{ subject: "u" }, { sessionId: "a", subject: "u" }, 1],
])("a session of %j, when %j is over: %i", async (session, ended, count) => {
  expect((await end([from(session)], ended)).count).toBe(count);
});

test("a session that was created until the provider's word ends, a later one stays", async () => {
  const sessions = [from({ subject: "u" })];
  expect((await end(sessions, { subject: "u" }, CREATED)).count).toBe(1);
  expect((await end(sessions, { subject: "u" }, wallMs(CREATED - 1))).count).toBe(0);
});

test("what ends is recorded, with its actor; sessions of another provider, or of none, and ended ones are not touched", async () => {
  const sessions = [
    from({ subject: "u" }),
    { ...from({ subject: "u" }, "https://other.example"), sid: sidOf("b") },
    { ...sessionOf(), sid: sidOf("c") },
  ];
  const { count, stepsOf } = await end(sessions, { subject: "u" });
  expect(count).toBe(1);
  expect(stepsOf("end")).toEqual([[SID, "upstream_logout", ORIGIN]]);
  const event = { event: "session_ended", sid: SID, subject: "alice", actor: "support", reason: "upstream_logout" };
  expect(stepsOf("audit")).toEqual([[event]]);
});

test.each<[Omit<Upstream, "issuer">, readonly Omit<Upstream, "issuer">[]]>([
  [{ sessionId: "a" }, [{ sessionId: "a" }]],
  [{ subject: "u" }, [{ subject: "u" }]],
  [{ sessionId: "a", subject: "u" }, [{ sessionId: "a" }, { subject: "u" }]],
])("when %j is over, the sessions of %j are looked for", async (ended, logins) => {
  const { stepsOf } = await end([], ended);
  expect(stepsOf("sessionsOf")).toStrictEqual(logins.map((login) => [{ issuer: ISSUER, ...login }]));
});

test("a session that is gone when it is looked for is not counted", async () => {
  const port = script({ sessionsOf: async () => [SID], find: findOf() });
  const { sessionsOf, find, end: endOne } = port.store;
  const deps = { store: { sessionsOf, find, end: endOne, shiftMs: () => 0, note }, audit: port.audit };
  expect(await endUpstream(deps, { issuer: ISSUER, subject: "u", createdUntil: CREATED, leftMs: 0 }, REQUESTER)).toBe(
    0,
  );
});

test("of many sessions sixteen end at the same time", async () => {
  const sessions = Array.from({ length: 40 }, (_, at) => ({ ...from({ subject: "u" }), sid: sidOf(`s${at}`) }));
  let ending = 0;
  const most: number[] = [];
  const port = script({
    sessionsOf: async () => sessions.map(({ sid }) => sid),
    find: findOf(...sessions),
    end: async () => {
      most.push(++ending);
      await new Promise(setImmediate);
      ending--;
      return ENDED;
    },
  });
  const { sessionsOf, find, end: endOne } = port.store;
  const deps = { store: { sessionsOf, find, end: endOne, shiftMs: () => SHIFT, note }, audit: port.audit };
  expect(await endUpstream(deps, { issuer: ISSUER, subject: "u", createdUntil: CREATED, leftMs: 0 }, REQUESTER)).toBe(
    40,
  );
  expect(Math.max(...most)).toBe(16);
});

test.each<[string, EndOutcome]>([
  ["ended by somebody else", { ok: false, reason: "already_ended" }],
  ["lost by the store", { ok: true, wasLive: false }],
])("a session that is meanwhile %s is not recorded twice", async (_, outcome) => {
  const { count, stepsOf } = await end([from({ subject: "u" })], { subject: "u" }, CREATED, outcome);
  expect([count, stepsOf("audit")]).toEqual([0, []]);
});

test("if one session cannot be ended, the others end, and the call fails, so that the provider repeats it", async () => {
  const sessions = ["a", "b", "c"].map((letter) => ({ ...from({ subject: "u" }), sid: sidOf(letter) }));
  const port = script({
    sessionsOf: async () => sessions.map(({ sid }) => sid),
    find: findOf(...sessions),
    end: async (sid) => {
      if (sid === sidOf("b")) throw new StoreUnavailable("one partition is away");
      return { ok: true, wasLive: true, subject: "alice" };
    },
  });
  const { sessionsOf, find, end: endOne } = port.store;
  const shiftMs = (place?: StorePart) => (place !== undefined && "sid" in place ? SHIFT : 0);
  const store = { sessionsOf, find, end: endOne, shiftMs, note };
  const login = { issuer: ISSUER, subject: "u", createdUntil: CREATED, leftMs: 0 };
  await expect(endUpstream({ store, audit: port.audit }, login, REQUESTER)).rejects.toThrow(StoreUnavailable);
  expect(port.stepsOf("audit")).toHaveLength(2);
});
