/** Converts values of the domain to messages of the admin API: its enums, revocations and events. */
import { RevocationReason, SessionEventType, TokenType } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { Introspection } from "../../session/admin/introspect.ts";
import type { SessionEvent } from "../../session/events/events.ts";
import type { EndReason, Revocation, StaleMark } from "../../session/model.ts";
import { feedTime, wallTime } from "../times.ts";

// The types of these tables make sure that every value that the service uses has an enum value in the .proto files.

export const REVOCATION_REASONS: { readonly [reason in EndReason]: RevocationReason } = {
  logout: RevocationReason.LOGOUT,
  revoked_by_owner: RevocationReason.REVOKED_BY_OWNER,
  revoked_others: RevocationReason.REVOKED_OTHERS,
  revoked_by_admin: RevocationReason.REVOKED_BY_ADMIN,
  revoked_subject: RevocationReason.REVOKED_SUBJECT,
  session_limit: RevocationReason.SESSION_LIMIT,
  replaced: RevocationReason.REPLACED,
  reuse: RevocationReason.REUSE,
  expired: RevocationReason.EXPIRED,
  actor_ended: RevocationReason.ACTOR_ENDED,
  upstream_logout: RevocationReason.UPSTREAM_LOGOUT,
};

const EVENT_TYPES: { readonly [type in SessionEvent["type"]]: SessionEventType } = {
  created: SessionEventType.CREATED,
  ended: SessionEventType.ENDED,
  elevated: SessionEventType.ELEVATED,
  updated: SessionEventType.UPDATED,
  all_ended: SessionEventType.ALL_ENDED,
  device_bound: SessionEventType.DEVICE_BOUND,
  device_unbound: SessionEventType.DEVICE_UNBOUND,
  new_device: SessionEventType.NEW_DEVICE,
};

type IntrospectedType = Extract<Introspection, { readonly active: true }>["tokenType"];

export const TOKEN_TYPES: { readonly [type in IntrospectedType]: TokenType } = {
  access_token: TokenType.ACCESS_TOKEN,
  refresh_token: TokenType.REFRESH_TOKEN,
};

export function revocationMessage(revocation: Revocation) {
  return {
    sessionId: revocation.sid,
    revokeTime: feedTime(revocation.revokedAt),
    expireTime: feedTime(revocation.expiresAt),
    reason: revocation.reason,
    revocationReason: REVOCATION_REASONS[revocation.reason],
  };
}

export function staleMessage({ sid, minVersion, markedAt, expiresAt }: StaleMark) {
  return { sessionId: sid, minVersion, markTime: feedTime(markedAt), expireTime: feedTime(expiresAt) };
}

export function eventMessage(event: SessionEvent) {
  const { reason, revokedUntil, client } = event;
  return {
    eventTime: wallTime(event.time),
    type: EVENT_TYPES[event.type],
    sessionId: event.sid ?? "",
    subject: event.subject ?? "",
    actor: event.actor ?? "",
    ipAddress: event.address ?? "",
    admin: event.admin ?? "",
    clientId: event.clientId ?? "",
    ...(reason !== undefined && { revocationReason: REVOCATION_REASONS[reason] }),
    ...(revokedUntil !== undefined && { revokedUntilTime: wallTime(revokedUntil) }),
    ...(client !== undefined && { client }),
  };
}
