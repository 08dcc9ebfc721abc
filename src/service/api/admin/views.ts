/** Converts values of the domain to messages of the admin API: its enums, sessions and revocations. */
import type { JsonObject } from "@bufbuild/protobuf";
import {
  DeviceBindingPolicy,
  RevocationReason,
  SessionEventType,
  TokenType,
  Transport as TransportEnum,
} from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { Introspection } from "../../session/admin/introspect.ts";
import { type DeviceBinding, thumbprintOf } from "../../session/devices/key.ts";
import type { SessionEvent } from "../../session/events/events.ts";
import {
  type Actor,
  type Authentication,
  audiencesOf,
  type EndReason,
  type Revocation,
  type Session,
  type StaleMark,
  type Transport,
} from "../../session/model.ts";
import { timesOf } from "../messages.ts";
import { feedTime, shownTime, wallTime } from "../times.ts";
import { clientMessage } from "./session-limit.ts";

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

const TRANSPORTS: { readonly [transport in Transport]: TransportEnum } = {
  cookie: TransportEnum.COOKIE,
  token: TransportEnum.TOKEN,
};

/** Returns how a requested session is to be refreshed, by cookie or at the token endpoint; undefined if the request allows both. */
export function transportOf(asked: TransportEnum): Transport | undefined {
  if (asked === TransportEnum.COOKIE) return "cookie";
  return asked === TransportEnum.TOKEN ? "token" : undefined;
}

/** @param shiftMs by how many ms the wall clock is ahead of the time of the session's store */
export function sessionMessage(session: Session, shiftMs: number) {
  return {
    sessionId: session.sid,
    subject: session.subject,
    clientId: session.clientId,
    audience: audiencesOf(session.audience)[0],
    audiences: [...audiencesOf(session.audience)],
    claims: JSON.parse(session.claims) as JsonObject,
    client: clientMessage(session),
    ...timesOf(session, shiftMs),
    ...(session.authentication && authenticationFields(session.authentication)),
    ...(session.device && { deviceBinding: deviceFields(session.device, shiftMs) }),
    ...(session.transport && { transport: TRANSPORTS[session.transport] }),
    ...(session.persistent === false && { persistent: false }),
    ...(session.lastSeen && { lastSeenClient: session.lastSeen }),
    etag: String(session.version ?? 0),
    ...(session.actor && { actor: actorFields(session.actor) }),
    ...(session.upstream && { upstream: session.upstream }),
    ...(session.deviceRequired && { deviceBindingPolicy: DeviceBindingPolicy.REQUIRED }),
  };
}

function actorFields({ subject, reason = "", sessionId, endsWithSession }: Actor) {
  return { subject, reason, sessionId: sessionId ?? "", endWithSession: endsWithSession === true };
}

function deviceFields(device: DeviceBinding, shiftMs: number) {
  return {
    algorithm: device.key.algorithm,
    thumbprint: thumbprintOf(device),
    bound: device.state === "bound",
    sinceTime: shownTime(device.since, shiftMs),
  };
}

function authenticationFields({ time, methods, contextClass }: Authentication) {
  return { ...(time > 0 && { authTime: wallTime(time) }), amr: [...methods], acr: contextClass };
}

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
