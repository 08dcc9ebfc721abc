/** Maps the closed lists of the domain to the enums of the contract. A value without an enum does not compile. */
import {
  RevocationReason,
  SessionEventType,
  TokenType,
  Transport as TransportEnum,
} from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import type { SessionEvent } from "../../session/events.ts";
import type { Introspection } from "../../session/introspect.ts";
import type { EndReason, Transport } from "../../session/model.ts";

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
};

export const EVENT_TYPES: { readonly [type in SessionEvent["type"]]: SessionEventType } = {
  created: SessionEventType.CREATED,
  ended: SessionEventType.ENDED,
  elevated: SessionEventType.ELEVATED,
  all_ended: SessionEventType.ALL_ENDED,
  device_bound: SessionEventType.DEVICE_BOUND,
  device_unbound: SessionEventType.DEVICE_UNBOUND,
};

type IntrospectedType = Extract<Introspection, { readonly active: true }>["tokenType"];

export const TOKEN_TYPES: { readonly [type in IntrospectedType]: TokenType } = {
  access_token: TokenType.ACCESS_TOKEN,
  refresh_token: TokenType.REFRESH_TOKEN,
};

export const TRANSPORTS: { readonly [transport in Transport]: TransportEnum } = {
  cookie: TransportEnum.COOKIE,
  token: TransportEnum.TOKEN,
};

/** Returns the transport that a request asks for; undefined if it allows both. */
export function transportOf(asked: TransportEnum): Transport | undefined {
  if (asked === TransportEnum.COOKIE) return "cookie";
  return asked === TransportEnum.TOKEN ? "token" : undefined;
}
