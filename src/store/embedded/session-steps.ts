/** Steps on one session. Each runs within a transaction that the store (store.ts) has opened. */
import {
  boundKey,
  type DevicePresentation,
  isReplaceable,
  isSameThumbprint,
  judgeDevice,
  judgeEnd,
  mayRegister,
  NO_PRESENTATION,
  shownBy,
} from "../../session/device-binding.ts";
import { type DeviceKey, isProofKey } from "../../session/device-key.ts";
import type { Authentication, Session, SessionId } from "../../session/model.ts";
import type {
  ElevateOutcome,
  EndingHolder,
  EndOutcome,
  Found,
  RegisterKeyOutcome,
  RotateOutcome,
  UnbindOutcome,
} from "../../session/ports.ts";
import { decide, type PresentedToken } from "../../session/rotation.ts";
import type { StoreMs } from "../../session/time.ts";
import type { RevocationLog } from "./log.ts";
import { fixedOf, rotationOf, type SessionRow, sessionOf, slid, toServed } from "./rows.ts";
import type { SessionTable } from "./session-table.ts";
import type { Statements } from "./statements.ts";

type Deps = {
  readonly sql: Statements;
  readonly sessions: SessionTable;
  readonly log: RevocationLog;
  /** The reuse interval R, in ms. */
  readonly reuseIntervalMs: number;
  readonly endReused: (sid: SessionId, subject: string, reason: "reuse" | "two_holders", now: StoreMs) => void;
};

export class SessionSteps {
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  /** Returns whether a session that is not live was ended. */
  isMarked(sid: SessionId, now: StoreMs): boolean {
    return this.#deps.log.has(sid, now) || this.#deps.sessions.endedWithOthers(sid, now);
  }

  /** Returns the refusal for a session that is not live. */
  gone(sid: SessionId, now: StoreMs): { readonly ok: false; readonly reason: "revoked" | "unknown" } {
    return { ok: false, reason: this.isMarked(sid, now) ? "revoked" : "unknown" };
  }

  find(sid: SessionId, now: StoreMs): Found {
    const row = this.#deps.sessions.get(sid);
    if (row === undefined) return this.gone(sid, now);
    if (now >= row.idle_expires_at) return { ok: false, reason: "unknown" };
    if (row.ended) return { ok: false, reason: "revoked" };
    return { ok: true, session: sessionOf(row), rotation: rotationOf(row), now };
  }

  /**
   * Rotates a refresh token. Returns undefined if the refresh would end the session, because a transaction that is not durable must not
   * do that.
   */
  rotate(
    sid: SessionId,
    token: PresentedToken,
    freshNonce: string,
    device: DevicePresentation | undefined,
    now: StoreMs,
    mayEnd: boolean,
  ): RotateOutcome | undefined {
    const { sessions, sql, reuseIntervalMs } = this.#deps;
    const row = sessions.get(sid);
    if (row === undefined) return this.gone(sid, now);
    if (now >= row.absolute_expires_at) return { ok: false, reason: "expired" };
    if (now >= row.idle_expires_at) return { ok: false, reason: "idle" };
    if (row.ended) return { ok: false, reason: "revoked" };
    const session = sessionOf(row);
    const presented = device ?? NO_PRESENTATION;
    const verdict = judgeDevice(session, token, presented, now, reuseIntervalMs);
    if (verdict === "proof_missing" || verdict === "other_key") return { ok: false, reason: verdict, session };
    if (verdict === "missing") return { ok: false, reason: "device_proof_missing", session };
    if (verdict === "required") return { ok: false, reason: "device_required", session };
    if (verdict === "wrong_transport" || verdict === "wrong_client") return { ok: false, reason: verdict };
    if (verdict === "two_holders") return this.#end(session, "two_holders", now, mayEnd);
    const decision = decide(rotationOf(row), token, freshNonce, now, reuseIntervalMs, verdict === "held");
    if (decision.outcome === "reuse") return this.#end(session, "reuse", now, mayEnd);
    const { outcome, next } = decision;
    const shown = shownBy(verdict, outcome);
    const used = shown === "first_use" ? this.#bind(session, presented, now) : session;
    const after = outcome === "repeat" ? used : slid(used, now); // No child is minted, so the idle expiry does not move.
    sql.slide.run(after.lastRefreshedAt, after.idleExpiresAt, JSON.stringify(next), sid);
    // If the clock was set back, the session may now expire before its next examination. That is then made earlier.
    if (after.idleExpiresAt < row.examined_at) sql.examineLater.run(sid);
    return toServed(outcome, after, next, now, shown);
  }

  registerKey(sid: SessionId, token: PresentedToken, key: DeviceKey, now: StoreMs): RegisterKeyOutcome {
    const { sessions, sql, reuseIntervalMs } = this.#deps;
    const row = sessions.live(sid, now);
    if (row === undefined) return this.gone(sid, now);
    if (!mayRegister(token, rotationOf(row))) return { ok: false, reason: "outdated" };
    const before = sessionOf(row);
    const { device } = before;
    if (device !== undefined && !isProofKey(device) && isSameThumbprint(device.key.thumbprint, key.thumbprint)) {
      return { ok: true, session: before, now };
    }
    if (device !== undefined && !isReplaceable(device, now, reuseIntervalMs)) return { ok: false, reason: "other_key" };
    const session: Session = { ...before, device: { key, state: "registered", since: now } };
    sql.fix.run(fixedOf(session), sid);
    return { ok: true, session, now };
  }

  unbind(sid: SessionId, now: StoreMs): UnbindOutcome {
    const row = this.#deps.sessions.live(sid, now);
    if (row === undefined) return this.gone(sid, now);
    const { device, ...session } = sessionOf(row);
    if (device !== undefined) this.#deps.sql.fix.run(fixedOf(session), sid);
    return { ok: true, session, hadKey: device !== undefined };
  }

  elevate(sid: SessionId, authentication: Authentication, now: StoreMs): ElevateOutcome {
    const row = this.#deps.sessions.live(sid, now);
    if (row === undefined) return this.gone(sid, now);
    const before = sessionOf(row);
    if (authentication.time < (before.authentication?.time ?? 0)) return { ok: false, reason: "outdated" };
    const session = { ...before, authentication };
    this.#deps.sql.fix.run(fixedOf(session), sid);
    return { ok: true, session };
  }

  /**
   * Returns the refusal for a client that may not end its session. Returns undefined if the client may end it, or if the ending was not
   * requested with a refresh token.
   */
  mayNotEnd(
    row: SessionRow | undefined,
    holder: EndingHolder | undefined,
  ): Extract<EndOutcome, { readonly ok: false }> | undefined {
    if (row === undefined || holder === undefined) return undefined;
    const session = sessionOf(row);
    const reason = judgeEnd(session, holder, holder.proof);
    return reason === "allowed" ? undefined : { ok: false, reason, subject: session.subject };
  }

  #bind(session: Session, presented: DevicePresentation, now: StoreMs): Session {
    const bound: Session = { ...session, device: boundKey(session, presented, now) };
    this.#deps.sql.fix.run(fixedOf(bound), session.sid);
    return bound;
  }

  #end({ sid, subject }: Session, reason: "reuse" | "two_holders", now: StoreMs, mayEnd: boolean) {
    if (!mayEnd) return undefined;
    this.#deps.endReused(sid, subject, reason, now);
    return { ok: false, reason, subject } as const;
  }
}
