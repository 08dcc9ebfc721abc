/** Business events to log and metrics. Never throws: a failing audit must not fail the operation that it records. */
import type { Audit, AuditEvent } from "../session/audit.ts";
import { EVERYDAY_REFUSALS } from "../session/errors.ts";
import type { SessionStore } from "../session/ports.ts";
import { toWallClock } from "../session/time.ts";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** Everyday events, several a second per thousand users, are in the metrics, and in the log at level debug only. */
function levelOf(event: AuditEvent): "debug" | "info" | "warn" {
  switch (event.event) {
    case "session_created":
    case "session_ended":
    case "session_elevated":
    case "device_registered":
    case "device_bound":
    case "device_renewal_skipped":
      return "info";
    case "all_sessions_ended":
      return "warn";
    case "session_renewed":
    case "device_renewed":
      return "debug";
    case "device_key_refused":
    case "device_proof_refused":
    case "device_proof_missing":
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

/** @param shiftMs that of the store: lines have the times of the wall clock */
export function createAudit(log: Logger, metrics: Pick<Metrics, "count">, shiftMs: SessionStore["shiftMs"]): Audit {
  return (event, requester) => {
    try {
      metrics.count(event);
      const level = levelOf(event);
      if (!log.isLevelEnabled(level)) return;
      const { adminName: by } = requester;
      const address = requester.address();
      const ids = requester.correlation?.();
      // Not the session: what its client sent is not for logs.
      const shown = { ...event, ...shownTimes(event, shiftMs), session: undefined };
      log[level]({ ...shown, address, ...(by !== undefined && { by }), ...ids }, event.event);
    } catch {
      // The operation that it records is done.
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
