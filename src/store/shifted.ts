/**
 * Two scales of time. A store measures in its own time, which continues unchanged when the clock of the day is set. Times that
 * others compare with their clocks, those of tokens and sessions, are converted to that clock: the store's time plus a shift.
 */
import type { Session } from "../session/model.ts";
import type { SessionPage } from "../session/ports.ts";

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
    ...(session.device && { device: { ...session.device, since: session.device.since + shift } }),
  };
}

export function pageByClock(page: SessionPage, shift: number): SessionPage {
  return shift === 0 ? page : { ...page, sessions: page.sessions.map((session) => byClock(session, shift)) };
}
