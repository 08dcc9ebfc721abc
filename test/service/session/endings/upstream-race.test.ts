/** A provider ends a login while its session is created: every order of the steps of both. */
import { expect, test } from "vitest";
import { create } from "../../../../src/service/session/admin/create.ts";
import { endUpstream } from "../../../../src/service/session/endings/upstream.ts";
import type { NewSession, ProviderNote, Session, Upstream } from "../../../../src/service/session/model.ts";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { createdOf, FRESH_NONCE, findOf, NOW, REQUESTER, SID, sessionOf } from "../../../support/session/scripted.ts";
import { newSession } from "../../../support/store/sessions.ts";

const ISSUER = "https://login.example";
const LOGIN: Upstream = { issuer: ISSUER, sessionId: "one", subject: "u" };
const LEFT_MS = 60_000;

type Verbs = Pick<SessionStore, "create" | "sessionsOf" | "find" | "end" | "shiftMs" | "isNoted" | "note">;

/** A store with one session, which lives from its creation to its end. */
function storeOfOne() {
  const notes = new Set<string>();
  let live: Session | undefined;
  const ends: string[] = [];
  const store: Verbs = {
    async create({ sid, upstream }: NewSession) {
      live = sessionOf({ sid, ...(upstream && { upstream }) });
      return createdOf(live);
    },
    sessionsOf: async () => (live === undefined ? [] : [live.sid]),
    find: (sid) => findOf(...(live === undefined ? [] : [live]))(sid),
    async end(sid, reason) {
      if (live?.sid !== sid) return { ok: false, reason: "already_ended" };
      live = undefined;
      ends.push(reason);
      return { ok: true, wasLive: true, subject: "alice" };
    },
    shiftMs: () => 0,
    isNoted: async (note) => notes.has(JSON.stringify(note)),
    async note(note: ProviderNote) {
      notes.add(JSON.stringify(note));
    },
  };
  return { store, ends, isLive: () => live !== undefined };
}

/** Runs two calls whose steps at the store follow each other as `order` says: bit i is the call that takes step i, if both can. */
async function interleave(
  order: number,
  ...calls: readonly [(gate: Gate) => Promise<unknown>, (gate: Gate) => Promise<unknown>]
) {
  const waiting = new Map<number, () => void>();
  const running = new Set([0, 1]);
  const all = calls.map((call, at) =>
    call(() => new Promise<void>((resolve) => waiting.set(at, resolve))).finally(() => running.delete(at)),
  );
  for (let step = 0; running.size > 0; step++) {
    // One turn is enough for a call to reach its next step, because the store of this test responds at once.
    await new Promise(setImmediate);
    const at = waiting.has((order >> step) & 1) ? (order >> step) & 1 : [...waiting.keys()][0];
    if (at === undefined) continue;
    waiting.get(at)?.();
    waiting.delete(at);
  }
  await Promise.all(all);
}

type Gate = () => Promise<void>;

/** Returns the store, each of whose steps waits for its turn. */
function gated(store: Verbs, gate: Gate): Verbs {
  const { shiftMs } = store;
  const through =
    <Given extends readonly unknown[], Result>(verb: (...given: Given) => Promise<Result>) =>
    async (...given: Given): Promise<Result> => {
      await gate();
      return verb(...given);
    };
  return {
    create: through(store.create),
    sessionsOf: through(store.sessionsOf),
    find: through(store.find),
    end: through(store.end),
    isNoted: through(store.isNoted),
    note: through(store.note),
    shiftMs,
  };
}

const audit = () => {};
const MAKERS = {
  refreshTokens: { mint: () => "refresh-token" },
  accessTokens: { issue: () => ({ token: "access-token", expiresInSeconds: 300 }) as never },
  random: { sessionId: () => SID, nonce: () => FRESH_NONCE } as never,
  createLimit: { take: () => undefined, giveBack: () => {} } as never,
  maxSessionsPerSubject: 10,
  audit,
};

async function race(order: number, login: Upstream, ended: Upstream, leftMs = LEFT_MS) {
  const { store, ends, isLive } = storeOfOne();
  const {
    createdAt: _,
    lastRefreshedAt: __,
    idleExpiresAt: ___,
    absoluteExpiresAt: ____,
    sid: _____,
    ...wanted
  } = {
    ...sessionOf(),
    upstream: login,
  };
  await interleave(
    order,
    (gate) => create({ ...MAKERS, store: gated(store, gate) }, wanted, REQUESTER),
    (gate) =>
      endUpstream(
        { store: gated(store, gate), audit },
        { ...ended, createdUntil: wallMs(NOW + leftMs), leftMs },
        REQUESTER,
      ),
  );
  return { isLive: isLive(), ends };
}

/** More than the steps of both calls in all orders. */
const ORDERS = Array.from({ length: 2 ** 8 }, (_, order) => order);

test("in whichever order the steps come, a session whose login is over has ended once both are done", async () => {
  for (const order of ORDERS) {
    const { isLive, ends } = await race(order, LOGIN, { issuer: ISSUER, sessionId: "one" });
    expect([order, isLive, ends]).toEqual([order, false, ["upstream_logout"]]);
  }
});

test("the session of another login of the user stays, in whichever order the steps come", async () => {
  for (const order of ORDERS) {
    const { isLive } = await race(order, { ...LOGIN, sessionId: "two" }, { issuer: ISSUER, sessionId: "one" });
    expect([order, isLive]).toEqual([order, true]);
  }
});

test("a login that was over before its session is created replaces nothing", async () => {
  const { store } = storeOfOne();
  await store.note({ issuer: ISSUER, endedSession: "one" }, LEFT_MS);
  const replaced: unknown[] = [];
  const counting: Verbs = {
    ...store,
    create: (session, nonce, options) => {
      replaced.push(options.replaces);
      return store.create(session, nonce, options);
    },
  };
  for (const sessionId of ["one", "two"]) {
    const { sid, ...wanted } = newSession("alice", { upstream: { issuer: ISSUER, sessionId } });
    await create({ ...MAKERS, store: counting }, wanted, REQUESTER, { replaces: sid });
  }
  expect(replaced).toEqual([undefined, expect.any(String)]);
});

test("the end of a login is noted for a quarter of a minute at most, as its name may come again", async () => {
  for (const [leftMs, expected] of [
    [60_000, 15_000],
    [9_000, 9_000],
  ] as const) {
    const { store } = storeOfOne();
    const lives: number[] = [];
    const noting = { ...store, note: async (_: ProviderNote, lifeMs: number) => void lives.push(lifeMs) };
    const ended = { issuer: ISSUER, sessionId: "one", createdUntil: wallMs(NOW + leftMs), leftMs };
    await endUpstream({ store: noting, audit }, ended, REQUESTER);
    expect(lives).toEqual([expected]);
  }
});

test("nothing is noted of a login whose time is over, or of a user who may sign in again", async () => {
  // The logout takes all its steps first: bits of 1.
  expect((await race(2 ** 8 - 1, LOGIN, { issuer: ISSUER, sessionId: "one" }, 0)).isLive).toBe(true);
  expect((await race(2 ** 8 - 1, LOGIN, { issuer: ISSUER, subject: "u" })).isLive).toBe(true);
});
