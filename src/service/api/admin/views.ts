/** Converts values of the domain to messages of the admin API: its revocations and events. */
import { RevocationReason, SessionEventType } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { SessionEvent } from "../../session/events/events.ts";
import type { Revocation, StaleMark } from "../../session/model.ts";
import { numberOf } from "../messages.ts";
import { feedTime, wallTime } from "../times.ts";

export function revocationMessage(revocation: Revocation) {
  return {
    sessionId: revocation.sid,
    revokeTime: feedTime(revocation.revokedAt),
    expireTime: feedTime(revocation.expiresAt),
    reason: revocation.reason,
    revocationReason: numberOf(RevocationReason, revocation.reason),
  };
}

export function staleMessage({ sid, minVersion, markedAt, expiresAt }: StaleMark) {
  return { sessionId: sid, minVersion, markTime: feedTime(markedAt), expireTime: feedTime(expiresAt) };
}

export function eventMessage(event: SessionEvent) {
  const { reason, revokedUntil, client } = event;
  return {
    eventTime: wallTime(event.time),
    type: numberOf(SessionEventType, event.type),
    sessionId: event.sid ?? "",
    subject: event.subject ?? "",
    actor: event.actor ?? "",
    ipAddress: event.address ?? "",
    admin: event.admin ?? "",
    clientId: event.clientId ?? "",
    ...(reason !== undefined && { revocationReason: numberOf(RevocationReason, reason) }),
    ...(revokedUntil !== undefined && { revokedUntilTime: wallTime(revokedUntil) }),
    ...(client !== undefined && { client }),
  };
}
