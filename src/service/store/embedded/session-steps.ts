/** The operations on one session, but for those that are asked to end it. Each runs in one transaction; a refresh that ends it, in two. */
import {
  boundKey,
  type DevicePresentation,
  isReplaceable,
  isSameThumbprint,
  judgeDevice,
  mayRegister,
  NO_PRESENTATION,
  provenBy,
  type ServingVerdict,
} from "../../session/devices/binding.ts";
import { isProofKey } from "../../session/devices/key.ts";
import { type LastSeen, type Session, type SessionId, seenBy } from "../../session/model.ts";
import type { RotateOutcome, SessionStore } from "../../session/ports.ts";
import { type Decision, decide, type TokenFields } from "../../session/rotation/rotation.ts";
import { earliest, later, latest, type StoreMs } from "../../session/time.ts";
import { countVersion, recordAuthentication } from "../../session/version.ts";
import { REUSE_NOTES } from "../event-text.ts";
import type { EndingDeps } from "./end-many.ts";
import type { RevocationLog } from "./log.ts";
import { detailsOf, type NumberedRow, rotationOf, type SessionRow, sessionOf } from "./rows.ts";
import type { Transactions } from "./transactions.ts";
import type { Writes } from "./writes.ts";

type SessionDeps = EndingDeps &
  Transactions &
  Pick<Writes, "publish"> & {
    readonly log: RevocationLog;
    /** The reuse interval of refresh tokens (`R` in session/rotation/rotation.ts), in ms. */
    readonly reuseIntervalMs: number;
  };

type SessionSteps = Pick<SessionStore, "find" | "rotate" | "registerKey" | "unbind" | "elevate" | "update">;

export function createSessionSteps(deps: SessionDeps): SessionSteps {
  const { sql, sessions, reuseIntervalMs, read } = deps;
  return {
    async find(sid) {
      return read((now) => {
        const row = sessions.get(sid);
        if (row === undefined) return refuseGone(deps, sid, now);
        if (now >= row.idle_expires_at) return { ok: false, reason: "unknown" };
        if (row.ended) return { ok: false, reason: "revoked" };
        return { ok: true, session: sessionOf(row), rotation: rotationOf(row), now };
      });
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
        sql.saveDetails.run(detailsOf(session), sid);
        return { ok: true, session, now };
      });
    },

    async unbind(sid) {
      return onLive(deps, sid, ({ device, ...session }) => {
        if (device !== undefined) sql.saveDetails.run(detailsOf(session), sid);
        return { ok: true, session, hadKey: device !== undefined };
      });
    },

    ...createRotation(deps),
    ...createUpdates(deps),
  };
}

function createRotation(deps: SessionDeps): Pick<SessionStore, "rotate"> {
  const { sql, write, share } = deps;
  return {
    async rotate(sid, token, freshNonce, presentation = NO_PRESENTATION, lastSeen) {
      const request = { token, freshNonce, presentation, lastSeen };
      const rotate = (now: StoreMs): RotateOutcome | Ending => {
        const judged = judge(deps, sid, request, now);
        if (judged.kind === "refused") return judged.outcome;
        if (judged.kind === "ending") return judged;
        const { session, areDetailsChanged } = afterRotation(judged, request, now);
        const { lastRefreshedAt, idleExpiresAt } = session;
        const { row, decision, proven } = judged;
        const { outcome, next } = decision;
        const rotation = JSON.stringify(next);
        if (areDetailsChanged) {
          sql.saveRefreshAndDetails.run(lastRefreshedAt, idleExpiresAt, rotation, detailsOf(session), row.rowid);
        } else sql.saveRefresh.run(lastRefreshedAt, idleExpiresAt, rotation, row.rowid);
        // If the clock was set back, the session may now expire before it would be examined for its expiry.
        if (idleExpiresAt < row.examined_at) sql.examineAtIdleExpiry.run(sid);
        const child = { generation: next.generation + 1, nonce: next.childNonce, issuedAt: next.childMintedAt };
        return { ok: true, outcome, session, child, now, device: proven };
      };
      const first = await share(rotate);
      if (!("kind" in first)) return first;
      // A refresh rarely ends a session. If it would, it runs again in a durable transaction, because an ending must be on disk.
      return write("FULL", (now) => {
        const again = rotate(now);
        return "kind" in again ? endReused(deps, again, now) : again;
      });
    },
  };
}

/** The operations that change what a session says. */
function createUpdates(deps: SessionDeps): Pick<SessionStore, "elevate" | "update"> {
  const { sql, log, signals, publish } = deps;
  const counted = (changed: Session, isChanged: boolean, outdatesTokens: boolean, now: StoreMs): Session => {
    const { session, needsMark } = countVersion(changed, isChanged, outdatesTokens);
    if (needsMark) publish(log.appendMark(session.sid, session.version ?? 0, now));
    return session;
  };
  return {
    async elevate(sid, authentication, outdatesTokens = false) {
      return onLive(deps, sid, (before, now) => {
        if (before.actor !== undefined) return { ok: false, reason: "has_actor" };
        if (authentication.time < (before.authentication?.time ?? 0)) return { ok: false, reason: "outdated" };
        const { elevated, isCounted } = recordAuthentication(before, authentication, outdatesTokens);
        const session = counted(elevated, isCounted, outdatesTokens, now);
        sql.saveDetails.run(detailsOf(session), sid);
        return { ok: true, session };
      });
    },

    async update(sid, { claims, audience, ifVersion, outdatesTokens }) {
      return onLive(deps, sid, (before, now) => {
        if (ifVersion !== undefined && ifVersion !== (before.version ?? 0)) return { ok: false, reason: "conflict" };
        const changed = { ...before, ...(claims !== undefined && { claims }), ...(audience && { audience }) };
        const text = detailsOf(before);
        const session = counted(changed, detailsOf(changed) !== text, outdatesTokens, now);
        const isChanged = detailsOf(session) !== text;
        if (isChanged) sql.saveDetails.run(detailsOf(session), sid);
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
): Outcome | ReturnType<typeof refuseGone> {
  return deps.write("FULL", (now) => {
    const row = deps.sessions.live(sid, now);
    return row === undefined ? refuseGone(deps, sid, now) : step(sessionOf(row), now, row);
  });
}

/** Returns whether a session that is not live was revoked. Otherwise it has expired or never existed. */
export function isRevoked(
  { log, sessions }: Pick<SessionDeps, "log" | "sessions">,
  sid: SessionId,
  now: StoreMs,
): boolean {
  return log.has(sid, now) || sessions.endedWithOthers(sid, now);
}

function refuseGone(deps: Pick<SessionDeps, "log" | "sessions">, sid: SessionId, now: StoreMs) {
  return { ok: false, reason: isRevoked(deps, sid, now) ? "revoked" : "unknown" } as const;
}

type RotateRequest = {
  readonly token: TokenFields;
  readonly freshNonce: string;
  readonly presentation: DevicePresentation;
  readonly lastSeen: LastSeen | undefined;
};

type Refused = { readonly kind: "refused"; readonly outcome: Extract<RotateOutcome, { readonly ok: false }> };

/** The request must end the session, which only a durable transaction may do. */
type Ending = { readonly kind: "ending"; readonly reason: "reuse" | "two_holders"; readonly session: Session };

/** The request gets a refresh token. `proven` says what it has shown about the session's key. */
type Granted = {
  readonly kind: "granted";
  readonly row: NumberedRow;
  readonly session: Session;
  readonly decision: Exclude<Decision, { readonly outcome: "reuse" }>;
  readonly proven: ServingVerdict;
};

/** Decides about a request, and changes nothing. */
function judge(
  deps: SessionDeps,
  sid: SessionId,
  { token, freshNonce, presentation }: RotateRequest,
  now: StoreMs,
): Refused | Ending | Granted {
  const { sessions, reuseIntervalMs } = deps;
  const row = sessions.get(sid);
  if (row === undefined) return refused(refuseGone(deps, sid, now));
  if (now >= row.absolute_expires_at) return refused({ ok: false, reason: "expired" });
  if (now >= row.idle_expires_at) return refused({ ok: false, reason: "idle" });
  if (row.ended) return refused({ ok: false, reason: "revoked" });
  const session = sessionOf(row);
  // A session that has no key and needs none is judged only if the request brings one.
  const isPlain = session.device === undefined && !session.deviceRequired && presentation.proof === undefined;
  const isJudged = !isPlain || session.transport !== undefined;
  const verdict = isJudged ? judgeDevice(session, token, presentation, now, reuseIntervalMs) : "unproven";
  if (verdict === "proof_missing" || verdict === "other_key") return refused({ ok: false, reason: verdict, session });
  if (verdict === "device_proof_missing" || verdict === "device_required")
    return refused({ ok: false, reason: verdict, session });
  if (verdict === "wrong_transport" || verdict === "wrong_client") return refused({ ok: false, reason: verdict });
  if (verdict === "two_holders") return { kind: "ending", reason: verdict, session };
  const decision = decide(rotationOf(row), token, freshNonce, now, reuseIntervalMs, verdict === "held");
  if (decision.outcome === "reuse") return { kind: "ending", reason: "reuse", session };
  const proven = verdict === "unproven" ? verdict : provenBy(verdict, decision.outcome);
  return { kind: "granted", row, session, decision, proven };
}

function refused(outcome: Refused["outcome"]): Refused {
  return { kind: "refused", outcome };
}

/** Returns the session as the rotation leaves it, and whether the column of its details changes. */
function afterRotation(
  { session: before, decision, proven }: Granted,
  { presentation, lastSeen }: RotateRequest,
  now: StoreMs,
): { readonly session: Session; readonly areDetailsChanged: boolean } {
  // `repeat` makes no new refresh token, so it changes neither when the last one was made nor what was last seen then.
  const isRepeat = decision.outcome === "repeat";
  const isBound = proven === "first_use";
  const isSeen = !isRepeat && (lastSeen ?? before.lastSeen) !== undefined;
  const bound = isBound ? { ...before, device: boundKey(before, presentation, now) } : before;
  const seen = isSeen ? seenBy(bound, lastSeen) : bound;
  // A refresh never counts as earlier than the creation, even if a clock was set back.
  const usedAt = latest(before.createdAt, now);
  const lastRefreshedAt = isRepeat ? before.lastRefreshedAt : usedAt;
  const idleExpiresAt = earliest(later(usedAt, before.idleTimeoutMs), before.absoluteExpiresAt);
  return { session: { ...seen, lastRefreshedAt, idleExpiresAt }, areDetailsChanged: isBound || isSeen };
}

function endReused(
  deps: SessionDeps,
  { reason, session: { sid, subject, actor } }: Ending,
  now: StoreMs,
): RotateOutcome {
  deps.end(sid, "reuse", now, REUSE_NOTES[reason], subject);
  return { ok: false, reason, subject, actor: actor?.subject };
}
