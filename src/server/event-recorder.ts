/** The events of sessions that are kept, if they are. */
import type { Config } from "../config/config.ts";
import type { Logger } from "../observability/logger.ts";
import type { Audit } from "../session/audit.ts";
import type { SessionStore } from "../session/ports.ts";
import { createEventRecorder, type EventRecorder } from "../session/record-events.ts";

const NONE: EventRecorder = { audit: () => {}, close: async () => {} };

export function openEventRecorder(
  { eventRetention }: Pick<Config, "eventRetention">,
  store: SessionStore,
  log: Logger,
): EventRecorder {
  if (eventRetention === 0) return NONE;
  return createEventRecorder({
    log: store,
    clock: Date.now,
    retention: eventRetention,
    onLost: (count) => log.warn({ event: "session_events_lost", count }, "events of sessions were not kept"),
  });
}

/** One audit after the other. */
export function both(first: Audit, second: Audit): Audit {
  return (event, requester) => {
    first(event, requester);
    second(event, requester);
  };
}
