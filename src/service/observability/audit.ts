/** Reports business events to log and metrics. It never throws: a failing audit must not fail the operation that it records. */
import type { Audit, AuditEvent } from "../session/audit.ts";
import { EVERYDAY_REFUSALS } from "../session/errors.ts";
import type { SessionStore } from "../session/ports.ts";
import { toWallClock } from "../session/time.ts";
import type { CookieAdvice } from "./cookie-advice.ts";
import { type Logger, suppressLine } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** The log levels of events. Everyday events, several a second per thousand users, are at level debug: the metrics count them. */
const LEVELS: Readonly<Record<AuditEvent["event"], "debug" | "info" | "warn">> = {
  session_created: "info",
  session_refused: "info",
  session_renewed: "debug",
  session_ended: "info",
  token_exchanged: "info",
  session_elevated: "info",
  session_updated: "info",
  all_sessions_ended: "warn",
  subject_forgotten: "info",
  subject_exported: "info",
  device_registered: "info",
  device_bound: "info",
  device_renewed: "debug",
  device_renewal_skipped: "info",
  device_key_refused: "warn",
  device_proof_refused: "warn",
  device_proof_missing: "warn",
  bound_key_missing: "warn",
  device_unbound: "warn",
  authn_failed: "warn",
  authn_token_reuse: "warn",
  authz_failed: "warn",
  rate_limited: "warn",
  subscription_changed: "info",
  subscription_tested: "info",
};

/** @param shiftMs by how many ms the wall clock is ahead of the store's time, because log lines have times of the wall clock */
export function createAudit(
  log: Logger,
  metrics: Pick<Metrics, "count">,
  advice: Pick<CookieAdvice, "created" | "renewed" | "noteMissing">,
  shiftMs: SessionStore["shiftMs"],
): Audit {
  return (event, requester) => {
    try {
      metrics.count(event);
      if (event.event === "session_renewed") advice.renewed++;
      else if (event.event === "session_created") advice.created++;
      else if (event.event === "authn_failed" && event.reason === "absent" && event.operation === "Refresh") {
        advice.noteMissing();
      }
      const isEveryday = event.event === "authn_failed" && EVERYDAY_REFUSALS.has(event.reason) && !event.admin;
      const level = isEveryday ? "debug" : LEVELS[event.event];
      if (!log.isLevelEnabled(level) || suppressLine(log, level, event)) return;
      const { adminName: by } = requester;
      const address = requester.address();
      const ids = requester.correlation?.();
      // The session is omitted, because data that its client sent does not belong in logs.
      const rest = { ...shownTimes(event, shiftMs), session: undefined, address, ...(by !== undefined && { by }) };
      log[level]({ ...event, ...rest, ...ids }, event.event);
    } catch {
      // An error here is ignored, because the operation itself is done.
    }
  };
}

/** Returns the times of an event by the wall clock. */
function shownTimes(event: AuditEvent, shiftMs: SessionStore["shiftMs"]) {
  const { happenedAt } = { happenedAt: undefined, ...event };
  const place = "sid" in event && event.sid !== undefined ? { sid: event.sid } : undefined;
  return {
    ...(event.event === "all_sessions_ended" && { revokedUntil: toWallClock(event.revokedUntil, shiftMs()) }),
    ...(happenedAt !== undefined && { happenedAt: toWallClock(happenedAt, shiftMs(place)) }),
  };
}
