import { steadyClock } from "../../platform/clock/turns.ts";
import type { Config } from "../config/config.ts";
import { cookiePath } from "../config/cookie.ts";
import { createAudit } from "../observability/audit.ts";
import { CookieAdvice } from "../observability/cookie-advice.ts";
import type { Logger } from "../observability/logger.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { Audit } from "../session/audit.ts";
import { createAttachedEndings } from "../session/endings/attached.ts";
import { createExpiry } from "../session/endings/expiry.ts";
import { EventRecorder } from "../session/events/record-events.ts";
import type { SessionStore } from "../session/ports.ts";
import { systemClock } from "../session/time.ts";
import type { Entropy } from "../tokens/random.ts";

/** An operation of the store may take this many timeouts of a command: it may run several scripts, and wait for replicas after each. */
const COMMANDS_PER_STEP = 20;

const ID_BYTES = 4;

/** Returns a steady time that includes the sleep of this machine, because other instances may be awake then. */
function steady(): number {
  steadyClock.refresh();
  return steadyClock();
}

type RecorderDeps = {
  readonly store: SessionStore;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly entropy: Pick<Entropy, "text">;
};

/** Returns the audit of sessions: its lines are logged and counted, and kept as the events of their sessions. */
export function openEventRecorder(
  {
    cookie,
    eventRetentionMs,
    redisCommandTimeoutMs,
  }: Pick<Config, "cookie" | "eventRetentionMs" | "redisCommandTimeoutMs">,
  { store, log, metrics, entropy }: RecorderDeps,
): EventRecorder {
  const advice = new CookieAdvice({ ...cookie, path: cookiePath(cookie) }, log);
  return new EventRecorder({
    log: store,
    lines: createAudit(log, metrics, advice, (place) => store.shiftMs(place)),
    clock: systemClock,
    steady,
    newId: () => entropy.text(ID_BYTES),
    retentionMs: eventRetentionMs,
    maxStepMs: COMMANDS_PER_STEP * redisCommandTimeoutMs,
    onLost: (count) => log.warn({ event: "session_events_lost", count }, "events of sessions were not kept"),
  });
}

/** Ends the sessions that end by themselves: those that have expired, and those whose actors' sessions have ended. */
export function openExpiry(
  store: Pick<SessionStore, "expire" | "endAttached" | "onAttachedEnd">,
  audit: Audit,
  log: Logger,
) {
  const onError = (err: unknown) =>
    log.warn({ event: "expiry_delayed", err }, "expired sessions cannot be looked for until the store responds");
  const expiry = createExpiry({ store, audit, onError });
  const attached = createAttachedEndings({ store, audit, onError });
  return {
    async close(): Promise<void> {
      await Promise.all([expiry.close(), attached.close()]);
    },
  };
}
