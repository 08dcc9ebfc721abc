/** The endings of sessions that end with those of their actors: looked for at each call and when the store says so, and recorded once. */
import { expect, onTestFinished, test, vi } from "vitest";
import { createForActor } from "../../../../src/service/session/admin/create-for-actor.ts";
import type { AuditEvent } from "../../../../src/service/session/audit.ts";
import { createAttachedEndings } from "../../../../src/service/session/endings/attached.ts";
import type { Actor, SessionId } from "../../../../src/service/session/model.ts";
import { type ExpiredSession, type SessionStore, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import {
  accessTokens,
  createdOf,
  findOf,
  limitOf,
  RANDOM,
  REFRESH_TOKENS,
  REQUESTER,
  SID,
  script,
  sessionOf,
  sidOf,
} from "../../../support/session/scripted.ts";

const A = { sid: "a" as SessionId, subject: "alice", actor: "support" };
const B = { sid: "b" as SessionId, subject: "bob", actor: "support" };

/** @param replies what the store returns or throws at successive calls. After them it returns that nothing has ended */
function open(...replies: (readonly ExpiredSession[] | Error | (() => readonly ExpiredSession[]))[]) {
  const events: AuditEvent[] = [];
  const errors: unknown[] = [];
  let wake = () => {};
  let calls = 0;
  const attached = createAttachedEndings({
    store: {
      async endAttached() {
        calls++;
        const reply = replies.shift() ?? [];
        if (reply instanceof Error) throw reply;
        return typeof reply === "function" ? reply() : reply;
      },
      onAttachedEnd(listener) {
        wake = listener;
        return () => {
          wake = () => {};
        };
      },
    },
    audit: (event) => events.push(event),
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => attached.close());
  return { attached, events, errors, wake: () => wake(), calls: () => calls };
}

test("what has ended is recorded, with both names", async () => {
  const { attached, events } = open([A, B]);
  await attached.look();
  expect(events).toEqual([A, B].map((one) => ({ event: "session_ended", ...one, reason: "actor_ended" })));
});

test("a note that is left while the store is asked is not missed", async () => {
  const { attached, events, wake, calls } = open(() => {
    wake();
    wake();
    return [A];
  }, [B]);
  await attached.look();
  expect([events.length, calls()]).toEqual([2, 2]);
});

test("an outage is reported once, and the next look goes on", async () => {
  const outage = new StoreUnavailable("away");
  const { attached, events, errors } = open(outage, outage, [A], outage);
  for (let look = 0; look < 3; look++) await attached.look();
  expect([errors, events.length]).toEqual([[outage], 1]);
  await attached.look();
  expect(errors).toEqual([outage, outage]);
});

test("sessions are looked for every ten seconds, for notes that no listener has heard of", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { calls } = open();
  await vi.advanceTimersByTimeAsync(9_999);
  expect(calls()).toBe(0);
  await vi.advanceTimersByTimeAsync(1);
  expect(calls()).toBe(1);
});

test("after closing nothing is looked for", async () => {
  const { attached, wake, calls } = open([A], [B]);
  await attached.look();
  await attached.close();
  wake();
  await new Promise(setImmediate); // A look begins in a later turn.
  expect(calls()).toBe(1);
});

test("a look that is under way ends before closing does, and no further one follows", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const { attached, events, calls } = open([A], [B]);
  void attached.look();
  await attached.close();
  expect(events).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(calls()).toBe(1);
});

const { sid: _, createdAt, lastRefreshedAt, idleExpiresAt, absoluteExpiresAt, ...WANTED } = sessionOf();
const OWN = sidOf("o");

/** Creates a session for an actor. @param outcomes what the store returns, where it is not what it returns for a session that is attached */
async function creating(outcomes: Partial<SessionStore> = {}, more: object = {}) {
  const port = script({
    find: findOf(sessionOf({ sid: OWN, subject: "support" })),
    create: async (session) => ({
      ...createdOf(sessionOf({ actor: session.actor ?? { subject: "nobody" } })),
    }),
    attach: async () => ({ ok: true }),
    end: async () => ({ ok: true, wasLive: true, subject: "alice" }),
    ...outcomes,
  });
  const tokens = { refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const deps = { ...port, ...tokens, maxSessionsPerSubject: 5, createLimit: limitOf() };
  const actor: Actor = { subject: "support", sessionId: OWN, endsWithSession: true, ...more };
  const result = await createForActor(deps, { ...WANTED, actor }, REQUESTER);
  const kinds = port.stepsOf("audit").map(([event]) => (event as AuditEvent).event);
  return { result, kinds, asked: port.steps.map(([name]) => name).filter((name) => name !== "audit"), ...port };
}

test("tokens are returned once the session is attached, for as long as it lives at most", async () => {
  const { result, asked, stepsOf } = await creating();
  expect(result.ok).toBe(true);
  expect(asked).toEqual(["find", "create", "attach"]);
  expect(stepsOf("attach")).toEqual([[SID, OWN, 600_000]]);
});

test.each(["ended", "full"] as const)(
  "a session that cannot be attached (%s) ends, and nobody gets its tokens",
  async (reason) => {
    const { result, asked, kinds } = await creating({ attach: async () => ({ ok: false, reason }) });
    expect(result).toEqual({ ok: false, reason });
    expect(asked).toEqual(["find", "create", "attach", "end"]);
    expect(kinds).toEqual(["session_created", "session_ended"]);
  },
);

test("a session that cannot be attached and has ended by then is not recorded again", async () => {
  const { result, kinds } = await creating({
    attach: async () => ({ ok: false, reason: "ended" }),
    end: async () => ({ ok: false, reason: "already_ended" }),
  });
  expect([result, kinds]).toEqual([{ ok: false, reason: "ended" }, ["session_created"]]);
});

test("sessions that an actor uses are counted apart from those of the subject, and have a limit of their own", async () => {
  const { stepsOf } = await creating();
  expect(stepsOf("create").map(([, , options]) => options)).toMatchObject([{ cap: 8 }]);
});

test.each<[string, object, readonly string[]]>([
  ["does not end with the actor's session is not attached", { endsWithSession: undefined }, ["find", "create"]],
  ["names no session of its actor is created without looking for one", { sessionId: undefined }, ["create"]],
])("a session that %s", async (_name, more, steps) => {
  const { result, asked } = await creating({}, more);
  expect([result.ok, asked]).toEqual([true, steps]);
});

test("a session over the limit of its actor is not attached", async () => {
  const port = script({ find: findOf(sessionOf({ sid: OWN, subject: "support" })) });
  const tokens = { refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const deps = { ...port, ...tokens, maxSessionsPerSubject: 5, createLimit: limitOf(7_000) };
  const actor: Actor = { subject: "support", sessionId: OWN, endsWithSession: true };
  const result = await createForActor(deps, { ...WANTED, actor }, REQUESTER);
  expect(result).toEqual({ ok: false, reason: "rate_limited", limit: "create", retryAfterMs: 7_000 });
  expect(deps.createLimit.counted).toEqual(["support"]);
});

test.each<[string, SessionStore["find"], object]>([
  ["that is not live", findOf(), { ok: false, reason: "ended" }],
  ["of somebody else", findOf(sessionOf({ sid: OWN, subject: "bob" })), { ok: false, reason: "ended" }],
  [
    "in which somebody acts",
    findOf(sessionOf({ sid: OWN, subject: "support", actor: { subject: "boss" } })),
    { ok: false, reason: "has_actor" },
  ],
])("with a session of the actor %s nothing is created", async (_name, find, expected) => {
  for (const more of [{}, { endsWithSession: undefined }]) {
    const { result, asked } = await creating({ find }, more);
    expect([result, asked]).toEqual([expected, ["find"]]);
  }
});
