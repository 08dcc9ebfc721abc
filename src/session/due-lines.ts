/** Between audit events and the events that are kept: what a due record tells is recorded as the instance that asked would have. */
import type { AuditEvent, Requester } from "./audit.ts";
import type { DueRecord, Origin, SessionEvent } from "./events.ts";
import type { Clock } from "./ports.ts";

/** What a step that creates or ends sessions takes along, to be recorded with it. */
export function originOf(requester: Requester): Origin {
  const address = requester.address();
  const { adminName: admin } = requester;
  const ids = requester.correlation?.();
  return { ...(address !== undefined && { address }), ...(admin !== undefined && { admin }), ...ids };
}

/** What is kept of an audit event; undefined of those that are not. Refreshes come here, too. */
export function keptOf(event: AuditEvent, requester: Requester, clock: Clock): SessionEvent | undefined {
  switch (event.event) {
    case "session_created": {
      const { sid, subject } = event;
      const { client, clientId } = event.session;
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

/** The lines that are due. */
export function dueLines({ event, cause }: DueRecord): readonly AuditEvent[] {
  const { type, sid, subject = "", reason, revokedUntil = 0, time: happenedAt, client, clientId = "" } = event;
  if (type === "all_ended") return [{ event: "all_sessions_ended", revokedUntil, happenedAt }];
  if (sid === undefined) return [];
  if (type === "created" && client) {
    return [{ event: "session_created", sid, subject, session: { client, clientId }, happenedAt }];
  }
  if (type !== "ended" || reason === undefined) return [];
  const ended: AuditEvent = { event: "session_ended", sid, subject, reason, happenedAt };
  if (reason !== "reuse") return [ended];
  return [{ event: "authn_token_reuse", sid, subject, ...(cause && { cause }), happenedAt }, ended];
}

/** Who asked for it. */
export function requesterOf({ event, ids }: DueRecord): Requester {
  const { requestId, traceId } = ids;
  return {
    address: () => event.address,
    adminName: event.admin,
    ...(requestId !== undefined && { correlation: () => ({ requestId, ...(traceId !== undefined && { traceId }) }) }),
  };
}
