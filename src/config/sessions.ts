import type { AddFault, Read } from "./reader.ts";
import { DAY_MS, duration, integer, SECOND_MS } from "./values.ts";

export function readSessions(read: Read, addFault: AddFault) {
  const sessions = {
    accessTokenTtlMs: read("ACCESS_TOKEN_TTL", duration(SECOND_MS, DAY_MS), 300 * SECOND_MS),
    sessionIdleTtlMs: read("SESSION_IDLE_TTL", duration(SECOND_MS, 3660 * DAY_MS), 14 * DAY_MS),
    sessionAbsoluteTtlMs: read("SESSION_ABSOLUTE_TTL", duration(SECOND_MS, 3660 * DAY_MS), 90 * DAY_MS),
    reuseIntervalMs: read("REUSE_INTERVAL", duration(0, 300 * SECOND_MS), 10 * SECOND_MS),
    maxSessionsPerSubject: read("MAX_SESSIONS_PER_SUBJECT", integer(1, 10_000), 100),
  };
  if (sessions.sessionIdleTtlMs > sessions.sessionAbsoluteTtlMs) {
    addFault("SESSION_IDLE_TTL must not exceed SESSION_ABSOLUTE_TTL");
  }
  if (sessions.reuseIntervalMs * 3 > sessions.sessionIdleTtlMs) {
    addFault("REUSE_INTERVAL must be at most a third of SESSION_IDLE_TTL");
  }
  return sessions;
}
