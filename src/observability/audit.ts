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

/** Refusals that are logged in one second: a stranger can make any number of them. The metrics count them all. */
const REFUSALS_PER_SECOND = 10;

/** How many refusals were left out since the last one that was let through; undefined for one to leave out. */
function refusalGate(clock: () => number): () => number | undefined {
  let second = 0;
  let passed = 0;
  let leftOut = 0;
  return () => {
    const now = Math.floor(clock() / 1000);
    if (now !== second) [second, passed] = [now, 0];
    if (passed === REFUSALS_PER_SECOND) {
      leftOut++;
      return undefined;
    }
    const since = leftOut;
    [passed, leftOut] = [passed + 1, 0];
    return since;
  };
}

export function createAudit(log: Logger, metrics: Metrics, clock: () => number = Date.now): Audit {
  const gate = refusalGate(clock);
  return (event, address) => {
    try {
      metrics.count(event);
      const level = levelOf(event);
      if (!log.isLevelEnabled(level)) return;
      const leftOut = event.event === "authn_failed" ? gate() : 0;
      if (leftOut === undefined) return;
      log[level]({ ...event, address: address?.(), ...(leftOut > 0 && { leftOut }) }, event.event);
    } catch {
      // Nothing to be done: the deed it tells of is done.
    }
  };
}
