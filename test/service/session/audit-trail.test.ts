/**
 * Random histories of the use cases: what is audited of a creation or an ending is what the store has left to be recorded of it, in case this
 * instance had died, and names the session's subject and actor. So no ending is without its event, and none has two.
 */
import fc from "fast-check";
import { expect, test } from "vitest";
import { revoke, revokeAll, revokeSubject } from "../../../src/service/session/admin/admin.ts";
import { createForActor } from "../../../src/service/session/admin/create-for-actor.ts";
import type { AuditEvent } from "../../../src/service/session/audit.ts";
import { createAttachedEndings } from "../../../src/service/session/endings/attached.ts";
import { createExpiry } from "../../../src/service/session/endings/expiry.ts";
import { logout, logoutByRefreshTokens } from "../../../src/service/session/endings/logout.ts";
import { endUpstream } from "../../../src/service/session/endings/upstream.ts";
import { keptOf } from "../../../src/service/session/events/due-lines.ts";
import type { SessionEvent } from "../../../src/service/session/events/events.ts";
import type { Session, SessionId } from "../../../src/service/session/model.ts";
import { revokeOthers, revokeOwn } from "../../../src/service/session/own-sessions.ts";
import type { AccessClaims, RefreshToken, SessionStore } from "../../../src/service/session/ports.ts";
import { refresh } from "../../../src/service/session/rotation/refresh.ts";
import { type StoreMs, toWallClock, type WallMs, wallMs } from "../../../src/service/session/time.ts";
import { deviceTools } from "../../support/device-tools.ts";
import { accessTokens, limitOf, REFRESH_TOKENS, REQUESTER } from "../../support/session/scripted.ts";
import { embeddedBackend } from "../../support/store/backends.ts";
import { takeDue } from "../../support/store/event-records.ts";
import { newSession, nonce, REUSE_INTERVAL as R, sidOf, subject } from "../../support/store/sessions.ts";

const IDLE = 10 * R;
const ISSUER = "https://login.example";
const pick = fc.nat(4);

const step = fc.oneof(
  {
    weight: 12,
    arbitrary: fc.record({
      does: fc.constant("create" as const),
      user: fc.nat(1),
      cap: fc.integer({ min: 2, max: 5 }),
      replaces: fc.option(pick, { freq: 2 }),
      limit: fc.constantFrom(0, 0, 2, 4),
      actor: fc.option(pick, { freq: 2 }),
      endsWithSession: fc.boolean(),
      upstream: fc.option(fc.nat(1)),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      does: fc.constant("refresh" as const),
      session: pick,
      recent: fc.nat(2),
      other: fc.option(pick),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      does: fc.constant("logout" as const),
      session: pick,
      isExpired: fc.boolean(),
      others: fc.array(pick, { maxLength: 2 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("logoutByCookie" as const), session: pick, other: pick }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("revokeOwn" as const), session: pick, target: pick }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("revokeOthers" as const), session: pick }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("revoke" as const), session: pick }) },
  {
    weight: 1,
    arbitrary: fc.record({ does: fc.constant("revokeSubject" as const), user: fc.nat(1), except: fc.option(pick) }),
  },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("revokeAll" as const) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("endUpstream" as const), login: fc.nat(1) }) },
  { weight: 1, arbitrary: fc.record({ does: fc.constant("lose" as const), session: pick }) },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant("pass" as const), ms: fc.constantFrom(1, R + 1, 3 * R, IDLE / 2) }),
  },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("look" as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

/** No request causes these endings, so the store knows of none. */
const BY_NOBODY: ReadonlySet<unknown> = new Set(["reuse", "expired", "actor_ended"]);

/** Returns what an event says, but for its times, and its subject if another event that is compared with it has none. */
function said({ time, revokedUntil, address, ...event }: SessionEvent<StoreMs | WallMs>, hasSubject: boolean) {
  const { subject: named, ...rest } = event;
  const by = BY_NOBODY.has(event.reason) ? {} : { address };
  return { ...rest, ...by, ...(hasSubject && { subject: named }) };
}

async function play(
  store: SessionStore,
  advance: (ms: number) => Promise<void>,
  now: () => StoreMs,
  steps: readonly Step[],
) {
  await takeDue(store);
  const events: AuditEvent[] = [];
  const audit = (event: AuditEvent) => void events.push(event);
  const deps = {
    ...{ store, audit, refreshTokens: REFRESH_TOKENS, accessTokens: accessTokens() },
    ...{ random: { nonce, sessionId: sidOf }, createLimit: limitOf(), refreshLimit: limitOf() },
    device: deviceTools(now),
  };
  const failed = (error: unknown) => {
    throw error;
  };
  /** Looks once. Between two steps nothing may look by itself. */
  const look = async () => {
    const waiting = { endAttached: () => store.endAttached(), onAttachedEnd: () => () => {} };
    for (const endings of [
      createExpiry({ store, audit, onError: failed }),
      createAttachedEndings({ store: waiting, audit, onError: failed }),
    ]) {
      await endings.look();
      await endings.close();
    }
  };
  const keeping = { clock: () => wallMs(0), shiftMs: () => store.shiftMs() };
  const users = [subject(), subject()] as const;
  /** The sessions that callers have, and all that were made. */
  const sessions: Session[] = [];
  const made = new Map<SessionId, Pick<Session, "subject" | "actor">>();
  const tokens = new Map<SessionId, RefreshToken[]>();
  const known = (pick: number) => sessions.at(-1 - (pick % Math.max(1, sessions.length)));
  const claimsOf = ({ sid, subject: sub, actor }: Pick<Session, "sid" | "subject" | "actor">): AccessClaims => ({
    ...{ sid, sub, aud: ["api"], exp: 1, jti: "j" },
    all: actor === undefined ? {} : { act: { sub: actor.subject } },
  });
  const tokenOf = (pick: number, recent = 0) => {
    const own = tokens.get(known(pick)?.sid ?? sidOf("")) ?? [];
    return own.at(-1 - recent) ?? own[0];
  };

  const take = async (each: Step): Promise<unknown> => {
    if (each.does === "create") {
      const actor = each.actor === null ? undefined : known(each.actor);
      const wanted = newSession(users[each.user] ?? "", {
        ...{ idleTimeoutMs: IDLE, absoluteLifetimeMs: 3 * IDLE },
        client: { userAgent: `agent ${each.cap}`, ipAddress: "192.0.2.1", displayName: "" },
        ...(each.upstream !== null && { upstream: { issuer: ISSUER, sessionId: `login ${each.upstream}` } }),
        ...(actor && {
          actor: {
            ...{ subject: actor.subject, sessionId: actor.sid },
            ...(each.endsWithSession && { endsWithSession: true as const }),
          },
        }),
      });
      const oldest = { scope: "subject", maxSessions: each.limit, whenExceeded: "end_oldest" } as const;
      const limit = each.limit > 0 ? oldest : undefined;
      const replaces = each.replaces === null ? undefined : known(each.replaces)?.sid;
      const sessionId = () => {
        made.set(wanted.sid, wanted);
        return wanted.sid;
      };
      const given = { ...deps, random: { nonce, sessionId }, maxSessionsPerSubject: each.cap };
      const created = await createForActor(given, wanted, REQUESTER, { replaces, limit });
      if (!created.ok) return;
      sessions.push(created.session);
      tokens.set(created.session.sid, [JSON.parse(created.refreshToken) as RefreshToken]);
      return;
    }
    if (each.does === "pass") return advance(each.ms);
    if (each.does === "look") return look();
    if (each.does === "revokeAll") return revokeAll(deps, undefined, REQUESTER);
    if (each.does === "revokeSubject") {
      return revokeSubject(
        deps,
        users[each.user] ?? "",
        each.except === null ? undefined : known(each.except)?.sid,
        REQUESTER,
      );
    }
    if (each.does === "endUpstream") {
      const createdUntil = toWallClock(now(), store.shiftMs());
      return endUpstream(
        deps,
        { issuer: ISSUER, sessionId: `login ${each.login}`, createdUntil, leftMs: 0 },
        REQUESTER,
      );
    }
    const session = known(each.session);
    const token = tokenOf(each.session);
    if (session === undefined || token === undefined) return;
    const caller = claimsOf(session);
    switch (each.does) {
      case "refresh": {
        const presented = tokenOf(each.session, each.recent) ?? token;
        const other = each.other === null ? undefined : tokenOf(each.other);
        const others = other === undefined || other.sid === presented.sid ? [] : [other];
        const refreshed = await refresh(deps, [presented, ...others], REQUESTER);
        if (refreshed.ok) tokens.get(refreshed.sid)?.push(JSON.parse(refreshed.refreshToken) as RefreshToken);
        return;
      }
      case "logout": {
        const byCookie = each.others.flatMap((other) => known(other)?.sid ?? []);
        return logout(deps, { ok: true, caller, isExpired: each.isExpired, byCookie }, REQUESTER);
      }
      case "lose": {
        // The store has lost the session in a failover, and knows nothing of it.
        const lost = { sid: sidOf(session.subject), subject: session.subject };
        made.set(lost.sid, lost);
        return logout(deps, { ok: true, caller: claimsOf(lost), isExpired: false, byCookie: [] }, REQUESTER);
      }
      case "logoutByCookie": {
        const other = tokenOf(each.other) ?? token;
        return logoutByRefreshTokens(deps, other.sid === token.sid ? [token] : [token, other], REQUESTER);
      }
      case "revokeOwn":
        return revokeOwn(deps, caller, known(each.target)?.sid, REQUESTER);
      case "revokeOthers":
        return revokeOthers(deps, caller, REQUESTER);
      case "revoke":
        return revoke(deps, session.sid, REQUESTER);
    }
  };

  for (const each of steps) {
    events.length = 0;
    await take(each);
    const due = (await store.dueRecords()).flatMap(({ records }) => records);
    const kept = events.flatMap((event) => keptOf(event, REQUESTER, keeping) ?? []);
    const recorded = kept.filter(({ dueKey }) => dueKey !== undefined);
    const keys = recorded.map(({ dueKey }) => dueKey);
    expect([each, keys.toSorted()]).toEqual([each, due.map(({ key }) => key).toSorted()]);
    for (const { event, dueKey } of recorded) {
      const left = due.find(({ key }) => key === dueKey)?.event;
      const hasSubject = event.subject !== undefined;
      expect([each, left && said(left, hasSubject)]).toEqual([each, said(event, hasSubject)]);
    }
    for (const event of events) {
      if (!("sid" in event && event.sid !== undefined) || !("subject" in event)) continue;
      const session = made.get(event.sid);
      expect([event, event.subject]).toEqual([event, session?.subject]);
      if (session?.actor) expect([event, event.actor]).toEqual([event, session.actor.subject]);
    }
    await takeDue(store);
  }
}

test("what is audited of creations and endings is what the store has left to be recorded of them", async () => {
  const backend = await embeddedBackend();
  const store = await backend.open();
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60, size: "max" }), async (steps) => {
      await play(store, backend.advance, backend.now, steps);
      await backend.advance(4 * IDLE);
      while (!(await store.expire()).isDone);
      await store.endAttached();
    }),
    { numRuns: 100 },
  );
  await backend.stop();
});
