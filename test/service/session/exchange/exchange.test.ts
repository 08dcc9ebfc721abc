/** The exchange of an access token for one that can do less, with real tokens and sessions: what it keeps, and what no chain of exchanges gains. */
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { AuditEvent } from "../../../../src/service/session/audit.ts";
import type { ExchangePolicy } from "../../../../src/service/session/exchange/exchange.ts";
import { type ExchangeRequest, exchange } from "../../../../src/service/session/exchange/exchange.ts";
import type { NewSession } from "../../../../src/service/session/model.ts";
import {
  type AccessClaims,
  type RateLimit,
  type SessionStore,
  StoreUnavailable,
} from "../../../../src/service/session/ports.ts";
import { toWallClock } from "../../../../src/service/session/time.ts";
import { createAccessTokens } from "../../../../src/service/tokens/access-token.ts";
import { REQUESTER } from "../../../support/session/scripted.ts";
import { type Backend, embeddedBackend } from "../../../support/store/backends.ts";
import { expectCreated, newSession, nonce } from "../../../support/store/sessions.ts";
import { countingEntropy, ISSUER, someKeys } from "../../../support/tokens.ts";

const OWN_AUDIENCE = "https://auth.example";
const AUDIENCES = ["https://gateway.example", "orders", "billing", OWN_AUDIENCE] as const;
const CLAIMS = { role: "editor", team: ["a", "b"], plan: "free" };
const POLICY: ExchangePolicy = {
  clientId: "gateway",
  subjectTokenAudiences: ["https://gateway.example", "orders", "billing", OWN_AUDIENCE],
  audiences: undefined,
  claims: ["role", "team"],
  maxLifetimeMs: undefined,
  mayAct: ["agent-*", "robot"],
  mayRebind: false,
};
const NO_LIMIT: RateLimit = { take: () => undefined, giveBack() {} };
const TTL_MS = 300_000;

let backend: Backend;
let store: SessionStore;
let tokens: ReturnType<typeof createAccessTokens>;
beforeAll(async () => {
  backend = await embeddedBackend();
  store = await backend.open();
  tokens = createAccessTokens({
    keys: someKeys(),
    issuer: ISSUER,
    ttlMs: TTL_MS,
    entropy: countingEntropy(),
    time: store,
  });
});
afterAll(() => backend.stop());

/** Creates a session. @returns the claims of its access token */
async function logIn(subject: string, more: Partial<NewSession> = {}): Promise<AccessClaims> {
  const wanted = newSession(subject, { audience: AUDIENCES, claims: JSON.stringify(CLAIMS), ...more });
  const { session } = expectCreated(await store.create(wanted, nonce(), { cap: 100 }));
  return read(tokens.issue(session, store.now(session.sid)).token);
}

/** Returns the time by which tokens expire. */
function wallNow(): number {
  return toWallClock(backend.now(), store.shiftMs());
}

function read(token: string): AccessClaims {
  const verified = tokens.verify(token);
  if (!verified.ok) throw new Error(verified.reason);
  return verified.claims;
}

async function exchangeWith(
  request: Pick<ExchangeRequest, "subject"> & Partial<ExchangeRequest>,
  policy: Partial<ExchangePolicy> = {},
  refreshLimit = NO_LIMIT,
  find: SessionStore["find"] = (sid) => store.find(sid),
) {
  const events: AuditEvent[] = [];
  const deps = {
    ...{ store: { find }, accessTokens: tokens, refreshLimit, audiences: new Set([OWN_AUDIENCE]) },
    audit: (event: AuditEvent) => void events.push(event),
  };
  const result = await exchange(deps, { ...POLICY, ...policy }, { audiences: [], ...request }, REQUESTER);
  return { result, events };
}

/** Exchanges a token. @returns the claims of the new one, or why there is none */
async function outcomeOf(...given: Parameters<typeof exchangeWith>): Promise<AccessClaims | string> {
  const { result } = await exchangeWith(...given);
  return result.ok ? read(result.accessToken.token) : result.reason;
}

async function narrowed(...given: Parameters<typeof exchangeWith>): Promise<AccessClaims> {
  const outcome = await outcomeOf(...given);
  if (typeof outcome === "string") throw new Error(outcome);
  return outcome;
}

test("the new token is of the same session, and has fewer audiences and claims", async () => {
  const subject = await logIn("alice");
  const { result, events } = await exchangeWith({ subject, audiences: ["orders"] });
  const { sid, exp, all } = subject;
  if (!result.ok) throw new Error(result.reason);
  const { iat, jti, ...rest } = read(result.accessToken.token).all;
  expect(rest).toEqual({
    ...{ iss: ISSUER, sub: "alice", aud: "orders", exp, sid, sct: all.sct, client_id: "gateway" },
    ...{ role: "editor", team: ["a", "b"] },
  });
  expect([result.isKeyBound, jti]).not.toContain(subject.jti);
  expect(events).toEqual([
    { event: "token_exchanged", sid, subject: "alice", audiences: ["orders"], actor: undefined },
  ]);
});

test("without audiences in the request it has all that are allowed, but never those of this service by themselves", async () => {
  const subject = await logIn("alice");
  expect((await narrowed({ subject })).aud).toEqual(["https://gateway.example", "orders", "billing"]);
  expect(await outcomeOf({ subject, audiences: [OWN_AUDIENCE] })).toBe("invalid_target");
  const named = { audiences: [OWN_AUDIENCE, "orders"] };
  expect((await narrowed({ subject }, named)).aud).toEqual(["orders", OWN_AUDIENCE]);
  expect((await narrowed({ subject, audiences: [OWN_AUDIENCE] }, named)).aud).toEqual([OWN_AUDIENCE]);
});

test("an audience that the token lacks needs a policy that names it", async () => {
  const subject = await logIn("alice", { audience: "https://gateway.example" });
  expect(await outcomeOf({ subject, audiences: ["orders"] })).toBe("invalid_target");
  const policy = { audiences: ["orders"] };
  expect((await narrowed({ subject, audiences: ["orders"] }, policy)).aud).toEqual(["orders"]);
  expect(await outcomeOf({ subject, audiences: ["orders", "billing"] }, policy)).toBe("invalid_target");
  expect(await outcomeOf({ subject, audiences: ["https://gateway.example"] }, policy)).toBe("invalid_target");
  // What is not asked for is not added.
  expect(await outcomeOf({ subject }, policy)).toBe("invalid_target");
});

test("a narrower token does not get back what the session has", async () => {
  const subject = await narrowed(
    { subject: await logIn("alice"), audiences: ["orders", "billing"] },
    { claims: ["role"] },
  );
  const again = await narrowed({ subject, audiences: ["orders"] });
  expect([again.aud, again.all.team, again.all.role]).toEqual([["orders"], undefined, "editor"]);
  expect(await outcomeOf({ subject: again, audiences: ["billing"] })).toBe("invalid_target");
});

test("the life of the new token is bounded by the policy, the exchanged token and the session", async () => {
  const subject = await logIn("alice");
  const now = Math.floor(wallNow() / 1000);
  expect((await narrowed({ subject }, { maxLifetimeMs: 30_000 })).exp - now).toBeLessThanOrEqual(30);
  expect((await narrowed({ subject }, { maxLifetimeMs: 3_600_000 })).exp).toBe(subject.exp);
  const short = await logIn("alice", { absoluteLifetimeMs: 20_000 });
  for (const maxLifetimeMs of [undefined, 3_600_000]) {
    const longer = { subject: { ...short, exp: short.exp + 900 } };
    expect((await narrowed(longer, { maxLifetimeMs })).exp).toBe(short.exp);
  }
});

test("a token of a session that has ended, or is for none of the client's audiences, is refused", async () => {
  const subject = await logIn("alice");
  expect(await outcomeOf({ subject }, { subjectTokenAudiences: ["other"] })).toBe("wrong_audience");
  await narrowed({ subject }, { subjectTokenAudiences: ["other", "orders"] });
  await store.end(subject.sid, "logout");
  expect(await outcomeOf({ subject })).toBe("revoked");
  const lost = { ...subject, sid: newSession("alice").sid };
  expect(await outcomeOf({ subject: lost })).toBe("unknown_session");
});

test("the new token keeps the version of the exchanged one, and a stale one is refused", async () => {
  const subject = await logIn("alice");
  const changed = { ...subject, all: { ...subject.all, sv: 2 } };
  expect((await narrowed({ subject: changed })).all.sv).toBe(2);
  const find: SessionStore["find"] = async (sid) => {
    const found = await store.find(sid);
    return found.ok ? { ...found, session: { ...found.session, version: 3, staleBelow: 3 } } : found;
  };
  const agent = await logIn("robot");
  const current = { ...subject, all: { ...subject.all, sv: 3 } };
  const outcomes = [
    await outcomeOf({ subject }, {}, NO_LIMIT, find),
    await outcomeOf({ subject: changed }, {}, NO_LIMIT, find),
    await outcomeOf({ subject: current, actor: agent }, {}, NO_LIMIT, find),
  ];
  expect(outcomes).toEqual(["stale", "stale", "stale"]);
  expect((await narrowed({ subject: current }, {}, NO_LIMIT, find)).all.sv).toBe(3);
});

test("an actor is named in act, before those that acted before", async () => {
  const subject = await logIn("alice");
  const [first, second] = [await logIn("agent-1"), await logIn("robot")];
  const once = await narrowed({ subject, actor: first });
  expect(once.all.act).toEqual({ sub: "agent-1" });
  const { result, events } = await exchangeWith({ subject: once, actor: second });
  expect(result.ok && read(result.accessToken.token).all.act).toEqual({ sub: "robot", act: { sub: "agent-1" } });
  expect(events).toMatchObject([{ event: "token_exchanged", actor: "robot", formerActors: ["agent-1"] }]);
  expect((await narrowed({ subject: once })).all.act).toEqual({ sub: "agent-1" });
});

test("an actor that may not act, acts through another, or has signed out is refused", async () => {
  const subject = await logIn("alice");
  const agent = await logIn("agent-1");
  for (const name of ["mallory", "agent", "robot-2"]) {
    expect([name, await outcomeOf({ subject, actor: await logIn(name) })]).toEqual([name, "wrong_actor"]);
  }
  expect(await outcomeOf({ subject, actor: agent }, { mayAct: [] })).toBe("wrong_actor");
  const through = await narrowed({ subject: agent, actor: await logIn("robot") });
  expect(await outcomeOf({ subject, actor: through })).toBe("wrong_actor");
  const elsewhere = await logIn("agent-1", { audience: "other" });
  expect(await outcomeOf({ subject, actor: elsewhere })).toBe("wrong_audience");
  await store.end(agent.sid, "logout");
  expect(await outcomeOf({ subject, actor: agent })).toBe("revoked");
});

test("at most four act, one for another", async () => {
  let subject = await logIn("alice");
  const actor = await logIn("robot");
  for (let depth = 1; depth <= 4; depth++) subject = await narrowed({ subject, actor });
  expect(await outcomeOf({ subject, actor })).toBe("wrong_actor");
  expect((await narrowed({ subject })).all.act).toEqual(subject.all.act);
  for (const act of ["robot", 1, null, {}, { sub: 1 }, { sub: "robot", act: null }]) {
    expect(await outcomeOf({ subject: { ...subject, all: { ...subject.all, act } } })).toBe("wrong_actor");
  }
});

test("a token that is bound to a key never becomes one that is not", async () => {
  const [own, other] = [{ thumbprint: "a" }, { thumbprint: "b" }];
  const plain = await logIn("alice");
  expect((await narrowed({ subject: plain, proof: own })).all.cnf).toEqual({ jkt: "a" });
  expect((await exchangeWith({ subject: plain, proof: own })).result).toMatchObject({ isKeyBound: true });
  expect((await exchangeWith({ subject: plain })).result).toMatchObject({ isKeyBound: false });
  const subject = await narrowed({ subject: plain, proof: own });
  expect(await outcomeOf({ subject })).toBe("proof_missing");
  expect(await outcomeOf({ subject, proof: other })).toBe("other_key");
  expect((await narrowed({ subject, proof: own })).all.cnf).toEqual({ jkt: "a" });
  const rebind = { mayRebind: true };
  expect(await outcomeOf({ subject }, rebind)).toBe("proof_missing");
  expect((await narrowed({ subject, proof: other }, rebind)).all.cnf).toEqual({ jkt: "b" });
  const actor = await narrowed({ subject: await logIn("robot"), proof: own });
  expect(await outcomeOf({ subject: plain, actor, proof: other }, rebind)).toBe("other_key");
  expect((await narrowed({ subject: plain, actor, proof: own })).all.act).toEqual({ sub: "robot" });
});

test("exchanges are limited for each client and session, apart from refreshes", async () => {
  const subject = await logIn("alice");
  const keys: string[] = [];
  const limit: RateLimit = { take: (key) => void keys.push(key), giveBack: (key) => void keys.push(`back ${key}`) };
  await exchangeWith({ subject }, {}, limit);
  expect(keys).toEqual([`gateway ${subject.sid}`]);
  const { result, events } = await exchangeWith({ subject }, {}, { ...limit, take: () => 900 });
  expect(result).toEqual({ ok: false, reason: "rate_limited", limit: "refresh", retryAfterMs: 900 });
  expect(events).toEqual([{ event: "rate_limited", limit: "refresh", sid: subject.sid }]);
});

test("an exchange for which the store does not respond does not count", async () => {
  const subject = await logIn("alice");
  const keys: string[] = [];
  const limit: RateLimit = { take: () => undefined, giveBack: (key) => void keys.push(key) };
  const lost = exchangeWith({ subject }, {}, limit, () => Promise.reject(new StoreUnavailable("away")));
  await expect(lost).rejects.toThrow(StoreUnavailable);
  expect(keys).toEqual([`gateway ${subject.sid}`]);
});

const names = Object.keys(CLAIMS);
/** One exchange of a chain: what the policy allows, what is asked for, and how much later it happens. */
const STEP = fc.record({
  policy: fc.record({
    audiences: fc.option(fc.subarray([...AUDIENCES, "extra"]), { nil: undefined }),
    claims: fc.subarray([...names, "absent"]),
    maxLifetimeMs: fc.option(fc.integer({ min: 1_000, max: 2 * TTL_MS }), { nil: undefined }),
  }),
  audiences: fc.subarray([...AUDIENCES, "extra"]),
  hasActor: fc.boolean(),
  proof: fc.option(fc.constantFrom({ thumbprint: "a" }, { thumbprint: "b" }), { nil: undefined }),
  passMs: fc.integer({ min: 0, max: 20_000 }),
});

const depthOf = (act: unknown): number => (act === undefined ? 0 : 1 + depthOf((act as { act?: unknown }).act));

test("no chain of exchanges gains an audience, a claim, life or another session", { timeout: 60_000 }, () =>
  fc.assert(
    fc.asyncProperty(fc.array(STEP, { minLength: 1, maxLength: 8 }), async (steps) => {
      const actor = { ...(await logIn("robot")) };
      let before = await logIn("alice");
      for (const { policy, audiences, hasActor, proof, passMs } of steps) {
        await backend.advance(passMs);
        const now = wallNow();
        if (now >= before.exp * 1000) return;
        const given = { subject: before, audiences, proof, ...(hasActor && { actor }) };
        const subjectTokenAudiences = [...AUDIENCES, "extra"];
        const outcome = await outcomeOf(given, { ...policy, subjectTokenAudiences } as Partial<ExchangePolicy>);
        if (typeof outcome === "string") continue;
        for (const each of outcome.aud) expect([...before.aud, ...(policy.audiences ?? [])]).toContain(each);
        for (const each of audiences) expect(outcome.aud).toContain(each);
        expect(outcome.exp).toBeLessThanOrEqual(before.exp);
        expect(outcome.exp * 1000).toBeLessThanOrEqual(now + (policy.maxLifetimeMs ?? TTL_MS));
        for (const name of names) expect([undefined, before.all[name]]).toContainEqual(outcome.all[name]);
        for (const name of ["iss", "sub", "sid", "sct", "sv"]) expect(outcome.all[name]).toEqual(before.all[name]);
        expect(depthOf(outcome.all.act)).toBeLessThanOrEqual(4);
        const former = hasActor ? (outcome.all.act as { act?: unknown }).act : outcome.all.act;
        expect(former).toEqual(before.all.act);
        if (before.all.cnf !== undefined) expect(outcome.all.cnf).toEqual(before.all.cnf);
        before = outcome;
      }
    }),
    { numRuns: 200 },
  ),
);
