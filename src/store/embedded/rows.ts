/** Rows of the embedded store and the domain's words. What stands in the file was written by this room, so it is trusted. */

import type { EndReason, NewSession, Revocation, Session, SessionId } from "../../session/model.ts";
import type { RotationState } from "../../session/rotation.ts";

type Fixed = Omit<NewSession, "sid" | "subject">;

export type SessionRow = {
  readonly sid: SessionId;
  readonly subject: string;
  readonly created_at: number;
  readonly last_refreshed_at: number;
  readonly idle_expires_at: number;
  readonly absolute_expires_at: number;
  readonly fixed: string;
  readonly rotation: string;
};

/** A session by its id; `ended` (0 or 1): with all others. */
export type FoundRow = SessionRow & { readonly ended: number };

export type LogRow = {
  readonly seq: number;
  readonly sid: SessionId;
  readonly revoked_at: number;
  readonly expires_at: number;
  readonly reason: EndReason;
};

/** The session at its creation. */
export function newborn(session: NewSession, now: number): Session {
  const absoluteExpiresAt = now + session.absoluteLifetime;
  return {
    ...session,
    createdAt: now,
    lastRefreshedAt: now,
    idleExpiresAt: Math.min(now + session.idleTimeout, absoluteExpiresAt),
    absoluteExpiresAt,
  };
}

/** The session with its idle expiry slid. It was refreshed no sooner than it was created, whatever the clock shows. */
export function slid(session: Session, now: number): Session {
  const lastRefreshedAt = Math.max(session.createdAt, now);
  return {
    ...session,
    lastRefreshedAt,
    idleExpiresAt: Math.min(lastRefreshedAt + session.idleTimeout, session.absoluteExpiresAt),
  };
}

export function toRow(session: Session, rotation: RotationState): Record<keyof SessionRow, string | number> {
  return {
    sid: session.sid,
    subject: session.subject,
    created_at: session.createdAt,
    last_refreshed_at: session.lastRefreshedAt,
    idle_expires_at: session.idleExpiresAt,
    absolute_expires_at: session.absoluteExpiresAt,
    fixed: fixedOf(session),
    rotation: JSON.stringify(rotation),
  };
}

export function fixedOf(session: Session): string {
  const { clientId, audience, claims, client, idleTimeout, absoluteLifetime, authentication } = session;
  const fixed: Fixed = { clientId, audience, claims, client, idleTimeout, absoluteLifetime };
  return JSON.stringify(authentication === undefined ? fixed : { ...fixed, authentication });
}

export function sessionOf(row: SessionRow): Session {
  const fixed = JSON.parse(row.fixed) as Fixed;
  return {
    sid: row.sid,
    subject: row.subject,
    ...fixed,
    createdAt: row.created_at,
    lastRefreshedAt: row.last_refreshed_at,
    idleExpiresAt: row.idle_expires_at,
    absoluteExpiresAt: row.absolute_expires_at,
  };
}

export function rotationOf(row: SessionRow): RotationState {
  return JSON.parse(row.rotation) as RotationState;
}

export function revocationOf(row: LogRow): Revocation {
  return { sid: row.sid, revokedAt: row.revoked_at, expiresAt: row.expires_at, reason: row.reason };
}

/** The outcome of a token that is served. */
export function served(
  outcome: "repeat" | "rotate" | "heal" | "recover",
  session: Session,
  state: RotationState,
  now: number,
) {
  const child = { generation: state.generation + 1, nonce: state.childNonce, issuedAt: state.childMintedAt };
  return { ok: true, outcome, session, child, now } as const;
}
