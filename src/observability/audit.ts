/** Business events to log and metrics. Never throws: an audit that fails must not fail what it tells of. */
import type { Audit, AuditEvent } from "../session/audit.ts";
import type { RefusalReason } from "../session/errors.ts";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** Reasons of a refusal that come with everyday life: tokens age, cookies are gone. The rest somebody has made. */
const EVERYDAY = new Set<RefusalReason>(["absent", "expired", "idle", "revoked", "unknown_session", "reuse"]);

/** Everyday events, several a second per thousand users, are told by the metrics, and by the log only when asked for. */
function levelOf(event: AuditEvent): "debug" | "info" | "warn" {
  switch (event.event) {
    case "session_created":
    case "session_ended":
      return "info";
    case "session_renewed":
      return "debug";
    case "authn_failed":
      return EVERYDAY.has(event.reason) && !event.admin ? "debug" : "warn";
    case "authn_token_reuse":
      return "warn";
  }
}

export function createAudit(log: Logger, metrics: Metrics): Audit {
  return (event, address) => {
    try {
      metrics.count(event);
      const level = levelOf(event);
      if (log.isLevelEnabled(level)) log[level]({ ...event, address: address?.() }, event.event);
    } catch {
      // Nothing to be done: the deed it tells of is done.
    }
  };
}
