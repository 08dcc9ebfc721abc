/** Reports business events to log and metrics: their levels, and their counters. */
import type { Audit, AuditEvent } from "../session/audit.ts";
import { EVERYDAY_REFUSALS } from "../session/errors.ts";
import type { SessionStore } from "../session/ports.ts";
import { toWallClock } from "../session/time.ts";
import type { CookieAdvice } from "./cookie-advice.ts";
import type { FastCounter, MetricOptions } from "./fast-metrics.ts";
import { type Logger, suppressLine } from "./logger.ts";

/** What an event causes: a line of this level, and an increment of this counter, whose labels are fields of the event. */
type Effects<Event> = readonly [
  level: "debug" | "info" | "warn",
  counter?: string,
  help?: string,
  ...labels: (keyof Event & string)[],
];

/**
 * Everyday events, several a second per thousand users, are at level debug: the metrics count them. Events without a counter are few, or
 * belong to a refusal that is counted with its reason.
 */
const EFFECTS: { readonly [name in AuditEvent["event"]]: Effects<Extract<AuditEvent, { readonly event: name }>> } = {
  session_created: ["info", "session_created_total", "Sessions created"],
  session_refused: ["info", "session_refused_total", "Sessions that a limit refused, by what it counts", "scope"],
  session_renewed: ["debug", "session_renewed_total", "Refreshes served, by rotation outcome", "outcome"],
  session_ended: ["info", "session_ended_total", "Sessions ended, by reason", "reason"],
  token_exchanged: ["info", "session_token_exchanged_total", "Access tokens exchanged for narrower ones"],
  session_elevated: ["info", "session_elevated_total", "Later authentications recorded"],
  session_updated: ["info", "session_updated_total", "Sessions updated, by what older tokens become", "accessTokens"],
  all_sessions_ended: ["warn", "session_all_ended_total", "Times that everyone was logged out"],
  subject_forgotten: ["info"],
  subject_exported: ["info"],
  device_registered: ["info", "session_device_registered_total", "Device keys registered"],
  device_bound: ["info", "session_device_bound_total", "Device keys used for the first time"],
  device_renewed: ["debug", "session_device_renewed_total", "Device cookies renewed"],
  device_renewal_skipped: [
    "info",
    "session_device_renewal_skipped_total",
    "Refreshes of browsers that could not renew",
  ],
  device_key_refused: ["warn"],
  device_proof_refused: [
    "warn",
    "session_device_refused_total",
    "Device keys and proofs refused",
    "operation",
    "reason",
  ],
  device_proof_missing: ["warn", "session_device_proof_missing_total", "Refreshes of bound sessions without a cookie"],
  bound_key_missing: ["warn"],
  device_unbound: ["warn", "session_device_unbound_total", "Device keys taken away"],
  authn_failed: ["warn", "session_authn_failed_total", "Credentials refused", "operation", "reason"],
  authn_token_reuse: ["warn", "session_token_reuse_total", "Refresh tokens found reused"],
  authz_failed: ["warn", "session_authz_failed_total", "Admin calls outside the scopes of their caller", "operation"],
  rate_limited: ["warn", "session_rate_limited_total", "Requests over a rate limit, by limit", "limit"],
  subscription_changed: ["info"],
  subscription_tested: ["info"],
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
      const level = isEveryday ? "debug" : EFFECTS[event.event][0];
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

function shownTimes(event: AuditEvent, shiftMs: SessionStore["shiftMs"]) {
  const { happenedAt } = { happenedAt: undefined, ...event };
  const place = "sid" in event && event.sid !== undefined ? { sid: event.sid } : undefined;
  return {
    ...(event.event === "all_sessions_ended" && { revokedUntil: toWallClock(event.revokedUntil, shiftMs()) }),
    ...(happenedAt !== undefined && { happenedAt: toWallClock(happenedAt, shiftMs(place)) }),
  };
}

export type MakeCounter = (name: string, help: string, labelNames?: MetricOptions["labelNames"]) => FastCounter;

type Counted = { readonly counter: FastCounter; readonly first: string; readonly second: string };

export function createEventCount(makeCounter: MakeCounter): (event: AuditEvent) => void {
  const counters = new Map<string, Counted>();
  for (const [event, [, name, help = "", ...fields]] of Object.entries(EFFECTS)) {
    const labels = fields.map((field) => field.replace(/[A-Z]/, (letter) => `_${letter.toLowerCase()}`));
    const [first = "", second = ""] = fields;
    if (name !== undefined)
      counters.set(event, { counter: makeCounter(name, help, labels as [string?]), first, second });
  }
  const device = counters.get("device_proof_refused");
  return (event) => {
    // Only one operation refuses keys, so the event does not name it.
    if (event.event === "device_key_refused") return device?.counter.inc("RegisterDevice", event.reason);
    const values: Readonly<Record<string, unknown>> = event;
    const counted = counters.get(event.event);
    counted?.counter.inc(values[counted.first] as string, values[counted.second] as string);
  };
}
