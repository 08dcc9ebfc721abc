/** Reports business events to log and metrics: their levels, and their counters. */
import type { Counter } from "prom-client";
import type { Audit, AuditEvent } from "../session/audit.ts";
import { EVERYDAY_REFUSALS } from "../session/errors.ts";
import type { SessionStore } from "../session/ports.ts";
import { toWallClock } from "../session/time.ts";
import type { CookieAdvice } from "./cookie-advice.ts";
import type { MakeFastCounter } from "./log-counters.ts";
import { type Logger, suppressLine } from "./logger.ts";

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

/**
 * Returns an audit that never throws: its failure must not fail the operation that it records.
 * @param shiftMs by how many ms the wall clock is ahead of the store's time, because log lines have times of the wall clock
 */
export function createAudit(
  log: Logger,
  metrics: { count(event: AuditEvent): void },
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

export type MakeCounter = (name: string, help: string, labelNames?: string[]) => Counter;

/** Returns a function that counts events. */
export function createEventCount(counter: MakeCounter, fastCounter: MakeFastCounter): (event: AuditEvent) => void {
  const created = counter("session_created_total", "Sessions created");
  const refused = counter("session_refused_total", "Sessions that a limit refused, by what the limit counts", [
    "scope",
  ]);
  const renewed = fastCounter("session_renewed_total", "Refreshes served, by rotation outcome", ["outcome"]);
  const ended = counter("session_ended_total", "Sessions ended, by reason", ["reason"]);
  const exchanged = counter("session_token_exchanged_total", "Access tokens exchanged for narrower ones");
  const elevated = counter("session_elevated_total", "Later authentications recorded");
  const updated = counter("session_updated_total", "Sessions updated, by what happens to older access tokens", [
    "access_tokens",
  ]);
  const allEnded = counter("session_all_ended_total", "Times that everyone was logged out");
  const reused = counter("session_token_reuse_total", "Refresh tokens found reused");
  const failed = fastCounter("session_authn_failed_total", "Credentials refused", ["operation", "reason"]);
  const notAllowed = counter("session_authz_failed_total", "Admin calls outside the scopes of their credential", [
    "operation",
  ]);
  const device = createDeviceCount(counter);
  const limited = fastCounter("session_rate_limited_total", "Requests over a rate limit, by limit", ["limit"]);
  return (event) => {
    switch (event.event) {
      case "session_created":
        return created.inc();
      case "session_refused":
        return refused.inc({ scope: event.scope });
      case "session_renewed":
        return renewed.inc(event.outcome);
      case "session_ended":
        return ended.inc({ reason: event.reason });
      case "token_exchanged":
        return exchanged.inc();
      case "session_elevated":
        return elevated.inc();
      case "session_updated":
        return updated.inc({ access_tokens: event.accessTokens });
      case "all_sessions_ended":
        return allEnded.inc();
      case "authn_token_reuse":
        return reused.inc();
      case "authn_failed":
        return failed.inc(event.operation, event.reason);
      case "authz_failed":
        return notAllowed.inc({ operation: event.operation });
      case "rate_limited":
        return limited.inc(event.limit);
      case "subject_forgotten":
      case "subject_exported":
      case "subscription_changed":
      case "subscription_tested":
        return; // Events of this kind are logged only, because there are few of them.
      default:
        return device(event);
    }
  };
}

type DeviceEvent = Extract<AuditEvent, { event: `device_${string}` | "bound_key_missing" }>;

function createDeviceCount(counter: MakeCounter): (event: DeviceEvent) => void {
  const plain: Readonly<Record<Exclude<DeviceEvent["event"], `device_${string}_refused`>, Counter | undefined>> = {
    device_registered: counter("session_device_registered_total", "Device keys registered"),
    device_bound: counter("session_device_bound_total", "Device keys used for the first time"),
    device_renewed: counter("session_device_renewed_total", "Device cookies renewed"),
    device_renewal_skipped: counter(
      "session_device_renewal_skipped_total",
      "Refreshes of browsers that could not renew",
    ),
    device_proof_missing: counter(
      "session_device_proof_missing_total",
      "Refreshes of bound sessions without a device cookie",
    ),
    device_unbound: counter("session_device_unbound_total", "Device keys taken away"),
    // This event is not counted, because the refusal that it belongs to is counted, with its reason.
    bound_key_missing: undefined,
  };
  const refused = counter("session_device_refused_total", "Device keys and proofs refused", ["operation", "reason"]);
  return (event) => {
    if (event.event === "device_key_refused") refused.inc({ operation: "RegisterDevice", reason: event.reason });
    else if (event.event === "device_proof_refused") refused.inc({ operation: event.operation, reason: event.reason });
    else plain[event.event]?.inc();
  };
}
