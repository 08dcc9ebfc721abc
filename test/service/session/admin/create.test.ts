/** What the creation of a session does for every outcome of the store: what it returns, what it records, and what it counts. */
import { expect, test } from "vitest";
import { create } from "../../../../src/service/session/admin/create.ts";
import { type CreateOutcome, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import {
  accessTokens,
  createdOf,
  FRESH_NONCE,
  limitOf,
  NOW,
  ORIGIN,
  RANDOM,
  REFRESH_TOKENS,
  REQUESTER,
  SID,
  script,
  sessionOf,
  sidOf,
} from "../../../support/session/scripted.ts";

const { sid: _, createdAt, lastRefreshedAt, idleExpiresAt, absoluteExpiresAt, ...WANTED } = sessionOf();
const PREVIOUS = sidOf("p");

type Created = Extract<CreateOutcome, { readonly ok: true }>;

async function run(outcome: Partial<Created>, replaces?: typeof PREVIOUS) {
  const port = script({
    create: async () => ({ ...createdOf(sessionOf()), ...outcome }),
  });
  const createLimit = limitOf();
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const result = await create({ ...deps, maxSessionsPerSubject: 20, createLimit }, WANTED, REQUESTER, { replaces });
  if (!result.ok) throw new Error(`refused: ${result.reason}`);
  return { result, createLimit, ...port, events: port.stepsOf("audit").flat() };
}

const CREATED = { event: "session_created", sid: SID, subject: "alice", session: sessionOf() };

test("a new session has an access token, and the first refresh token with the nonce that the store knows", async () => {
  const { result, events, stepsOf, createLimit } = await run({});
  expect(result).toMatchObject({ ok: true, session: sessionOf(), secondsLeft: 60, isPersistent: true });
  expect(JSON.parse(result.refreshToken)).toEqual({ sid: SID, generation: 1, nonce: FRESH_NONCE, issuedAt: NOW });
  expect(JSON.parse(result.accessToken.token)).toMatchObject({ sid: SID, now: NOW });
  expect(stepsOf("create")).toEqual([[{ ...WANTED, sid: SID }, FRESH_NONCE, { cap: 20, origin: ORIGIN }]]);
  expect(events).toStrictEqual([CREATED]);
  expect(createLimit.counted).toEqual(["alice"]);
});

test.each<[string, Partial<Created>, typeof PREVIOUS | undefined, readonly object[]]>([
  [
    "a replaced session",
    { replaced: { sid: PREVIOUS } },
    PREVIOUS,
    [{ event: "session_ended", sid: PREVIOUS, reason: "replaced" }, CREATED],
  ],
  [
    "a session that somebody uses in place of its subject",
    { session: sessionOf({ actor: { subject: "support" } }) },
    undefined,
    [{ ...CREATED, actor: "support", session: sessionOf({ actor: { subject: "support" } }) }],
  ],
  ["a device that is new", { newDevice: true }, undefined, [{ ...CREATED, newDevice: true }]],
  ["a session to replace that was not live", { replaced: undefined }, PREVIOUS, [CREATED]],
  [
    "the oldest sessions of a subject that has too many",
    { evicted: [{ sid: sidOf("x"), actor: "support" }, { sid: sidOf("y") }] },
    undefined,
    [
      CREATED,
      { event: "session_ended", sid: sidOf("x"), subject: "alice", actor: "support", reason: "session_limit" },
      { event: "session_ended", sid: sidOf("y"), subject: "alice", reason: "session_limit" },
    ],
  ],
])("%s is recorded", async (_name, outcome, replaces, expected) => {
  const { events, stepsOf } = await run(outcome, replaces);
  expect(events).toEqual(expected);
  expect(stepsOf("create")[0]?.[2]).toMatchObject({ replaces });
});

test("over the limit, the store is not asked", async () => {
  const port = script({});
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const given = { ...deps, maxSessionsPerSubject: 20, createLimit: limitOf(7_000) };
  expect(await create(given, WANTED, REQUESTER)).toEqual({
    ok: false,
    reason: "rate_limited",
    limit: "create",
    retryAfterMs: 7_000,
  });
  expect(port.steps).toEqual([["audit", { event: "rate_limited", limit: "create", subject: "alice" }]]);
});

test("a creation to which the store did not reply does not count", async () => {
  const outage = new StoreUnavailable("away");
  const port = script({
    create: async () => {
      throw outage;
    },
  });
  const createLimit = limitOf();
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  await expect(create({ ...deps, maxSessionsPerSubject: 20, createLimit }, WANTED, REQUESTER)).rejects.toBe(outage);
  expect(createLimit.counted).toEqual([]);
  expect(port.stepsOf("audit")).toEqual([]);
});

test("a creation that a limit refuses does not count, and is recorded", async () => {
  const limit = { scope: "client_id", maxSessions: 3, whenExceeded: "refuse" } as const;
  const live = [sessionOf()];
  const port = script({ create: async () => ({ ok: false, reason: "refused", limit, live }) });
  const createLimit = limitOf();
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const given = { ...deps, maxSessionsPerSubject: 20, createLimit };
  expect(await create(given, WANTED, REQUESTER, { replaces: PREVIOUS, limit })).toEqual({
    ok: false,
    reason: "session_limit",
    limit,
    live,
  });
  const options = { cap: 20, limit, replaces: PREVIOUS, origin: ORIGIN };
  expect(port.stepsOf("create")).toEqual([[{ ...WANTED, sid: SID }, FRESH_NONCE, options]]);
  const refused = { event: "session_refused", subject: "alice", clientId: "web", scope: "client_id", maxSessions: 3 };
  expect(port.stepsOf("audit")).toEqual([[refused]]);
  expect(createLimit.counted).toEqual([]);
});

test("a refused creation of somebody who acts for the subject does not count for whoever acts", async () => {
  const limit = { scope: "subject", maxSessions: 3, whenExceeded: "refuse" } as const;
  const port = script({ create: async () => ({ ok: false, reason: "refused", limit, live: [] }) });
  const createLimit = limitOf();
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const given = { ...deps, maxSessionsPerSubject: 20, createLimit };
  const wanted = { ...WANTED, actor: { subject: "support" } };
  expect(await create(given, wanted, REQUESTER, { limit })).toMatchObject({ ok: false, reason: "session_limit" });
  expect(createLimit.counted).toEqual([]);
});

test("within a limit, what ends for it is recorded", async () => {
  const limit = { scope: "subject", maxSessions: 1, whenExceeded: "end_oldest" } as const;
  const evicted = [{ sid: sidOf("x") }];
  const port = script({ create: async () => ({ ...createdOf(sessionOf()), evicted }) });
  const deps = { ...port, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens(), random: RANDOM };
  const given = { ...deps, maxSessionsPerSubject: 20, createLimit: limitOf() };
  expect(await create(given, WANTED, REQUESTER, { limit })).toMatchObject({ ok: true, session: sessionOf() });
  expect(port.stepsOf("audit").flat()).toEqual([
    CREATED,
    { event: "session_ended", sid: sidOf("x"), subject: "alice", reason: "session_limit" },
  ]);
});
