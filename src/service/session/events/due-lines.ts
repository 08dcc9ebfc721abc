/** Converts audit events to the events that the store keeps. Events that were left unrecorded (due records) also become audit lines. */
import type { AuditEvent, Requester } from "../audit.ts";
import type { SessionStore } from "../ports.ts";
import { storeMs, toWallClock, type WallClock } from "../time.ts";
import { type DueRecord, dueKeyOf, type EventRecord, type Origin } from "./events.ts";

/** Describes the request. An operation that creates or ends a session stores this description, in case the event is recorded later. */
export function originOf(requester: Requester): Origin {
  return { ...sourceOf(requester), ...requester.correlation?.() };
}

/** Returns the address of a requester and the name of its admin API credential, if they are known. */
function sourceOf(requester: Requester): Pick<Origin, "address" | "admin"> {
  const address = requester.address();
  const { adminName: admin } = requester;
  return { ...(address !== undefined && { address }), ...(admin !== undefined && { admin }) };
}

/** The clocks from which stored events get their times: the wall clock, and its difference from the store's time (`shiftMs`). */
export type Keeping = { readonly clock: WallClock; readonly shiftMs: SessionStore["shiftMs"] };

/** Returns the event to keep for an audit event, or undefined if that kind is not kept. */
export function keptOf(event: AuditEvent, requester: Requester, keeping: Keeping): EventRecord | undefined {
  switch (event.event) {
    case "session_created": {
      const { client, clientId } = event.session;
      const own = { ...keptNames(event), client, clientId, ...(event.newDevice && { newDevice: event.newDevice }) };
      const created = { ...common(requester, keeping), type: "created", ...own } as const;
      return { event: created, dueKey: dueKeyOf(created) };
    }
    case "session_ended": {
      const { reason } = event;
      const ended = { ...common(requester, keeping), type: "ended", ...keptNames(event), reason } as const;
      return { event: ended, dueKey: dueKeyOf(ended) };
    }
    case "session_elevated":
    case "session_updated":
    case "device_bound":
    case "device_unbound": {
      const { event: name } = event;
      const type = name === "session_elevated" ? "elevated" : name === "session_updated" ? "updated" : name;
      return { event: { ...common(requester, keeping), type, ...keptNames(event) } };
    }
    case "all_sessions_ended": {
      const { revokedUntil } = event;
      const until = toWallClock(revokedUntil, keeping.shiftMs());
      return {
        event: { ...common(requester, keeping), type: "all_ended", revokedUntil: until },
        dueKey: dueKeyOf({ type: "all_ended", revokedUntil }),
      };
    }
    default:
      return undefined;
  }
}

type Names = Pick<Extract<AuditEvent, { readonly event: "session_ended" }>, "sid" | "subject" | "actor">;

function keptNames({ sid, subject, actor }: Names) {
  return { sid, ...(subject !== undefined && { subject }), ...(actor !== undefined && { actor }) };
}

function common(requester: Requester, { clock }: Keeping) {
  return { time: clock(), ...sourceOf(requester) };
}

export function keptOfDue({ key, event }: DueRecord, { shiftMs }: Pick<Keeping, "shiftMs">): EventRecord {
  const { time, revokedUntil, ...rest } = event;
  const shift = shiftMs(rest.sid === undefined ? undefined : { sid: rest.sid });
  const until = revokedUntil === undefined ? {} : { revokedUntil: toWallClock(revokedUntil, shift) };
  return { event: { ...rest, ...until, time: toWallClock(time, shift) }, dueKey: key };
}

/** Returns the audit lines to write for a due record, an event that was not recorded at once. */
export function dueLines({ event, cause }: DueRecord): readonly AuditEvent[] {
  const {
    type,
    sid,
    subject = "",
    actor,
    reason,
    revokedUntil = storeMs(0),
    time: happenedAt,
    client,
    clientId = "",
    newDevice,
  } = event;
  if (type === "all_ended") return [{ event: "all_sessions_ended", revokedUntil, happenedAt }];
  if (sid === undefined) return [];
  const names = { sid, subject, ...(actor !== undefined && { actor }) };
  if (type === "created" && client) {
    return [
      {
        event: "session_created",
        ...names,
        session: { client, clientId },
        ...(newDevice && { newDevice }),
        happenedAt,
      },
    ];
  }
  if (type !== "ended" || reason === undefined) return [];
  const ended: AuditEvent = { event: "session_ended", ...names, reason, happenedAt };
  if (reason !== "reuse") return [ended];
  return [{ event: "authn_token_reuse", ...names, ...(cause && { cause }), happenedAt }, ended];
}

export function requesterOf({ event, ids }: DueRecord): Requester {
  const { requestId, traceId } = ids;
  return {
    address: () => event.address,
    adminName: event.admin,
    ...(requestId !== undefined && { correlation: () => ({ requestId, ...(traceId !== undefined && { traceId }) }) }),
  };
}
