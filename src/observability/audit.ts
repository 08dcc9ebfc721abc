/** Reports business events to log and metrics. It never throws: a failing audit must not fail the operation that it records. */
import type { Audit, AuditEvent } from "../session/audit.ts";
import { EVERYDAY_REFUSALS } from "../session/errors.ts";
import type { SessionStore } from "../session/ports.ts";
import { toWallClock } from "../session/time.ts";
import { type Logger, suppressLine } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** Returns the log level of an event. Everyday events, several a second per thousand users, are at level debug: the metrics count them. */
function levelOf(event: AuditEvent): "debug" | "info" | "warn" {
  switch (event.event) {
    case "session_created":
    case "session_ended":
    case "session_elevated":
    case "device_registered":
    case "device_bound":
    case "device_renewal_skipped":
    case "subscription_changed":
    case "subscription_tested":
      return "info";
    case "all_sessions_ended":
      return "warn";
    case "session_renewed":
    case "device_renewed":
      return "debug";
    case "device_key_refused":
    case "device_proof_refused":
    case "device_proof_missing":
    case "bound_key_missing":
    case "device_unbound":
      return "warn";
    case "authn_failed":
      return EVERYDAY_REFUSALS.has(event.reason) && !event.admin ? "debug" : "warn";
    case "authn_token_reuse":
    case "authz_failed":
    case "rate_limited":
      return "warn";
  }
}

/** @param shiftMs by how many ms the wall clock is ahead of the store's time, because log lines have times of the wall clock */
export function createAudit(log: Logger, metrics: Pick<Metrics, "count">, shiftMs: SessionStore["shiftMs"]): Audit {
  return (event, requester) => {
    try {
      metrics.count(event);
      const level = levelOf(event);
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
