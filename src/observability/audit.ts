/** Business events to log and metrics. Never throws: an audit that fails must not fail what it tells of. */
import type { Audit, AuditEvent } from "../session/audit.ts";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";

/** What somebody may have to look at; the rest is routine. */
const WARNINGS = new Set<AuditEvent["event"]>(["authn_token_reuse"]);
/** Several a second per thousand users: told by the metrics, and by the log only when asked for. */
const ROUTINE = new Set<AuditEvent["event"]>(["session_renewed", "authn_failed"]);

export function createAudit(log: Logger, metrics: Metrics): Audit {
  return (event, address) => {
    try {
      metrics.count(event);
      const level = WARNINGS.has(event.event) ? "warn" : ROUTINE.has(event.event) ? "debug" : "info";
      if (log.isLevelEnabled(level)) log[level]({ ...event, address: address?.() }, event.event);
    } catch {
      // Nothing to be done: the deed it tells of is done.
    }
  };
}
