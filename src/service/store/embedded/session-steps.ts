/** The operations on one session that do not end it by themselves. Each runs in one transaction. */
import {
  boundKey,
  type DevicePresentation,
  isReplaceable,
  isSameThumbprint,
  judgeDevice,
  mayRegister,
  NO_PRESENTATION,
  shownBy,
} from "../../session/devices/binding.ts";
import { isProofKey } from "../../session/devices/key.ts";
import { type LastSeen, type Session, type SessionId, seenBy } from "../../session/model.ts";
import type { RotateOutcome, SessionStore } from "../../session/ports.ts";
import { decide, type PresentedToken } from "../../session/rotation/rotation.ts";
import type { StoreMs } from "../../session/time.ts";
import { countVersion, recordAuthentication } from "../../session/version.ts";
import { REUSE_NOTES } from "../event-text.ts";
import type { RevocationLog } from "./log.ts";
import { fixedOf, rotationOf, type SessionRow, sessionOf, slid } from "./rows.ts";
import type { SubjectDeps } from "./subjects.ts";
import type { Transactions } from "./transactions.ts";
import type { Writes } from "./writes.ts";

type SessionDeps = SubjectDeps &
  Transactions &
  Pick<Writes, "publish"> & {
    readonly log: RevocationLog;
    /** The reuse interval of refresh tokens (`R` in session/rotation/rotation.ts), in ms. */
    readonly reuseIntervalMs: number;
  };

type SessionSteps = Pick<SessionStore, "find" | "rotate" | "registerKey" | "unbind" | "elevate" | "update">;

export function createSessionSteps(deps: SessionDeps): SessionSteps {
  const { sql, sessions, reuseIntervalMs, read, write, share } = deps;
  return {
    async find(sid) {
      return read((now) => {
        const row = sessions.get(sid);
        if (row === undefined) return gone(deps, sid, now);
        if (now >= row.idle_expires_at) return { ok: false, reason: "unknown" };
        if (row.ended) return { ok: false, reason: "revoked" };
        return { ok: true, session: sessionOf(row), rotation: rotationOf(row), now };
      });
    },

    async rotate(sid, token, freshNonce, presented = NO_PRESENTATION, lastSeen) {
      const request = { token, freshNonce, presented, lastSeen };
      // A refresh rarely ends a session. If it would, it runs again in a durable transaction, because an ending must be on disk.
      return (
        (await share((now) => rotate(deps, sid, request, now, false))) ??
        write("FULL", (now) => rotate(deps, sid, request, now, true)) ?? {
          ok: false,
          reason: "unknown",
        }
      );
    },

    async registerKey(sid, token, key) {
      return onLive(deps, sid, (before, now, row) => {
        if (!mayRegister(token, rotationOf(row))) return { ok: false, reason: "outdated" };
        const { device } = before;
        if (device !== undefined && !isProofKey(device) && isSameThumbprint(device.key.thumbprint, key.thumbprint)) {
          return { ok: true, session: before, now };
        }
        if (device !== undefined && !isReplaceable(device, now, reuseIntervalMs))
          return { ok: false, reason: "other_key" };
        const session: Session = { ...before, device: { key, state: "registered", since: now } };
        sql.fix.run(fixedOf(session), sid);
        return { ok: true, session, now };
      });
    },

    async unbind(sid) {
      return onLive(deps, sid, ({ device, ...session }) => {
        if (device !== undefined) sql.fix.run(fixedOf(session), sid);
        return { ok: true, session, hadKey: device !== undefined };
      });
    },

    ...createUpdates(deps),
  };
}

/** The operations that change what a session says. */
function createUpdates(deps: SessionDeps): Pick<SessionStore, "elevate" | "update"> {
  const { sql, log, signals, publish } = deps;
  const counted = (changed: Session, isChanged: boolean, refresh: boolean, now: StoreMs): Session => {
    const { session, isMarked } = countVersion(changed, isChanged, refresh);
    if (isMarked) publish(log.appendMark(session.sid, session.version ?? 0, now));
    return session;
  };
  return {
    async elevate(sid, authentication, refresh = false) {
      return onLive(deps, sid, (before, now) => {
        if (before.actor !== undefined) return { ok: false, reason: "has_actor" };
        if (authentication.time < (before.authentication?.time ?? 0)) return { ok: false, reason: "outdated" };
        const { elevated, isCounted } = recordAuthentication(before, authentication, refresh);
        const session = counted(elevated, isCounted, refresh, now);
        sql.fix.run(fixedOf(session), sid);
        return { ok: true, session };
      });
    },

    async update(sid, { claims, audience, ifVersion, refresh }) {
      return onLive(deps, sid, (before, now) => {
        if (ifVersion !== undefined && ifVersion !== (before.version ?? 0)) return { ok: false, reason: "conflict" };
        const changed = { ...before, ...(claims !== undefined && { claims }), ...(audience && { audience }) };
        const text = fixedOf(before);
        const session = counted(changed, fixedOf(changed) !== text, refresh, now);
        const isChanged = fixedOf(session) !== text;
        if (isChanged) sql.fix.run(fixedOf(session), sid);
        if (session.version !== before.version) signals.appendUpdated(session, now);
        return { ok: true, session, isChanged };
      });
    },
  };
}

/** Runs a step on a live session, in one durable transaction. */
function onLive<Outcome>(
  deps: SessionDeps,
  sid: SessionId,
  step: (session: Session, now: StoreMs, row: SessionRow) => Outcome,
): Outcome | ReturnType<typeof gone> {
  return deps.write("FULL", (now) => {
    const row = deps.sessions.live(sid, now);
    return row === undefined ? gone(deps, sid, now) : step(sessionOf(row), now, row);
  });
}

/** Returns whether a session that is not live was revoked. Otherwise it has expired or never existed. */
export function isMarked(
  { log, sessions }: Pick<SessionDeps, "log" | "sessions">,
  sid: SessionId,
  now: StoreMs,
): boolean {
  return log.has(sid, now) || sessions.endedWithOthers(sid, now);
}

function gone(deps: Pick<SessionDeps, "log" | "sessions">, sid: SessionId, now: StoreMs) {
  return { ok: false, reason: isMarked(deps, sid, now) ? "revoked" : "unknown" } as const;
}

type RotateRequest = {
  readonly token: PresentedToken;
  readonly freshNonce: string;
  readonly presented: DevicePresentation;
  readonly lastSeen: LastSeen | undefined;
};

/**
 * Rotates a refresh token. If the rotation would end the session, and `mayEnd` is false because the transaction is not durable, changes
 * nothing and returns undefined.
 */
function rotate(
  deps: SessionDeps,
  sid: SessionId,
  { token, freshNonce, presented, lastSeen }: RotateRequest,
  now: StoreMs,
  mayEnd: boolean,
): RotateOutcome | undefined {
  const { sessions, sql, reuseIntervalMs } = deps;
  const row = sessions.get(sid);
  if (row === undefined) return gone(deps, sid, now);
  if (now >= row.absolute_expires_at) return { ok: false, reason: "expired" };
  if (now >= row.idle_expires_at) return { ok: false, reason: "idle" };
  if (row.ended) return { ok: false, reason: "revoked" };
  const session = sessionOf(row);
  // A session that has no key and needs none is judged only if the request brings one.
  const isPlain = session.device === undefined && !session.deviceRequired && presented.proof === undefined;
  const isJudged = !isPlain || session.transport !== undefined;
  const verdict = isJudged ? judgeDevice(session, token, presented, now, reuseIntervalMs) : "unproven";
  if (verdict === "proof_missing" || verdict === "other_key") return { ok: false, reason: verdict, session };
  if (verdict === "device_proof_missing" || verdict === "device_required")
    return { ok: false, reason: verdict, session };
  if (verdict === "wrong_transport" || verdict === "wrong_client") return { ok: false, reason: verdict };
  if (verdict === "two_holders") return endReused(deps, session, "two_holders", now, mayEnd);
  const decision = decide(rotationOf(row), token, freshNonce, now, reuseIntervalMs, verdict === "held");
  if (decision.outcome === "reuse") return endReused(deps, session, "reuse", now, mayEnd);
  const { outcome, next } = decision;
  const shown = verdict === "unproven" ? verdict : shownBy(verdict, outcome);
  const used = shown === "first_use" ? { ...session, device: boundKey(session, presented, now) } : session;
  // `repeat` makes no new refresh token, so neither the idle expiry nor what was last seen changes.
  const isKept = outcome === "repeat" || (lastSeen ?? session.lastSeen) === undefined;
  const seen = isKept ? used : seenBy(used, lastSeen);
  const after = outcome === "repeat" ? seen : slid(seen, now);
  const moved = [after.lastRefreshedAt, after.idleExpiresAt, JSON.stringify(next)] as const;
  if (seen === session) sql.slide.run(...moved, row.rowid);
  else sql.slideAndFix.run(...moved, fixedOf(after), row.rowid);
  // If the clock was set back, the session may now expire before it is next examined for its expiry. It is then examined earlier.
  if (after.idleExpiresAt < row.examined_at) sql.examineLater.run(sid);
  const child = { generation: next.generation + 1, nonce: next.childNonce, issuedAt: next.childMintedAt };
  return { ok: true, outcome, session: after, child, now, device: shown };
}

function endReused(
  deps: SessionDeps,
  { sid, subject, actor }: Session,
  reason: "reuse" | "two_holders",
  now: StoreMs,
  mayEnd: boolean,
): RotateOutcome | undefined {
  if (!mayEnd) return undefined;
  deps.end(sid, "reuse", now, REUSE_NOTES[reason], subject);
  return { ok: false, reason, subject, actor: actor?.subject };
}
