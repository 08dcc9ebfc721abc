/**
 * Two scales of time. A store counts in its own time, which goes on as before when the clock of the day is set. What the world
 * compares with clocks of its own, tokens' times and a session's, is told by that clock: the store's time plus a shift.
 */
import type { Session } from "../session/model.ts";

/** A session in the store's time, as the clock of the day has it. */
export function byClock(session: Session, shift: number): Session {
  if (shift === 0) return session;
  return {
    ...session,
    createdAt: session.createdAt + shift,
    createdInStore: session.createdAt,
    lastRefreshedAt: session.lastRefreshedAt + shift,
    idleExpiresAt: session.idleExpiresAt + shift,
    absoluteExpiresAt: session.absoluteExpiresAt + shift,
  };
}
