import type { Audit, AuditEvent, Requester } from "./audit.ts";
import type { SessionEvent, SessionEventLog } from "./events.ts";
import type { Clock } from "./ports.ts";

/** How long events wait for others, to be written with them, ms. */
const GATHER_MS = 20;
/** How long events wait for a store that did not take them, ms. */
const RETRY_MS = 2_000;
/** Events that wait; more of them are lost. */
const MAX_WAITING = 5_000;

type Deps = {
  readonly log: Pick<SessionEventLog, "recordEvents">;
  readonly clock: Clock;
  /** How long events are kept, ms. */
  readonly retention: number;
  readonly onLost: (count: number) => void;
};

export type EventRecorder = {
  readonly audit: Audit;
  /** Writes what waits, if the store takes it. */
  close(): Promise<void>;
};

/** Records the events of sessions that are kept. Beside the operations, which never wait for it. */
export function createEventRecorder({ log, clock, retention, onLost }: Deps): EventRecorder {
  let waiting: SessionEvent[] = [];
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  /** One at a time: `timer` is set until it has ended. */
  async function write(): Promise<void> {
    const batch = waiting;
    waiting = [];
    let delay = GATHER_MS;
    try {
      if (batch.length > 0) await log.recordEvents(batch, retention);
    } catch {
      keep([...batch, ...waiting]);
      delay = RETRY_MS;
    }
    timer = undefined;
    if (waiting.length > 0) schedule(delay);
  }
  function keep(events: SessionEvent[]): void {
    const lost = Math.max(0, events.length - MAX_WAITING);
    waiting = lost === 0 ? events : events.slice(lost);
    if (lost > 0) onLost(lost);
  }
  function schedule(delay: number): void {
    timer ??= setTimeout(() => {
      writing = write();
    }, delay).unref();
  }

  return {
    audit(event, requester) {
      const kept = keptOf(event, requester, clock);
      if (kept === undefined) return;
      if (waiting.length < MAX_WAITING) waiting.push(kept);
      else onLost(1);
      schedule(GATHER_MS);
    },
    async close() {
      clearTimeout(timer);
      await writing;
      await write();
      clearTimeout(timer);
      if (waiting.length > 0) onLost(waiting.length);
    },
  };
}

/** What is kept of an audit event; undefined of those that are not. Refreshes come here, too. */
function keptOf(event: AuditEvent, requester: Requester, clock: Clock): SessionEvent | undefined {
  switch (event.event) {
    case "session_created": {
      const { sid, subject, client, clientId } = event.session;
      return { ...common(requester, clock), type: "created", sid, subject, client, clientId };
    }
    case "session_ended": {
      const { sid, subject, reason } = event;
      return { ...common(requester, clock), type: "ended", sid, reason, ...(subject !== undefined && { subject }) };
    }
    case "session_elevated":
      return { ...common(requester, clock), type: "elevated", sid: event.sid, subject: event.subject };
    case "device_bound":
    case "device_unbound":
      return { ...common(requester, clock), type: event.event, sid: event.sid, subject: event.subject };
    case "all_sessions_ended":
      return { ...common(requester, clock), type: "all_ended", revokedUntil: event.revokedUntil };
    default:
      return undefined;
  }
}

function common(requester: Requester, clock: Clock) {
  const address = requester.address();
  const { adminName } = requester;
  return {
    time: clock(),
    ...(address !== undefined && { address }),
    ...(adminName !== undefined && { admin: adminName }),
  };
}
