import type { DescMethod } from "@bufbuild/protobuf";
import { OAuthAdminService } from "../../../gen/auth/admin/v1/oauth_admin_pb.ts";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SignalsAdminService } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { Health } from "../../../gen/grpc/health/v1/health_pb.ts";
import type { Scope } from "../../session/admin-access.ts";

/** The scope that each RPC requires. An RPC without one does not compile. */
export const RPC_SCOPES = {
  createSession: "sessions:create",
  getSession: "sessions:read",
  listSessions: "sessions:read",
  listSessionEvents: "sessions:read",
  revokeSession: "sessions:revoke",
  revokeSubjectSessions: "sessions:revoke",
  revokeAllSessions: "sessions:revoke",
  elevateSession: "sessions:create", // like creating a session, an elevation states how the user signed in
  unbindDevice: "sessions:create", // unbinding makes the cookie enough again, as if the session were created without a device key
  introspectToken: "introspect",
  watchRevocations: "watch",
} as const satisfies { readonly [rpc in keyof typeof SessionAdminService.method]: Scope };

export const OAUTH_SCOPES = {
  introspect: "introspect",
  revokeGlobally: "sessions:revoke",
} as const satisfies { readonly [rpc in keyof typeof OAuthAdminService.method]: Scope };

export const SIGNALS_SCOPES = {
  createSubscription: "signals:manage",
  getSubscription: "signals:read",
  listSubscriptions: "signals:read",
  deleteSubscription: "signals:manage",
  pauseSubscription: "signals:manage",
  resumeSubscription: "signals:manage",
  testSubscription: "signals:manage",
} as const satisfies { readonly [rpc in keyof typeof SignalsAdminService.method]: Scope };

/** Undefined for other services on the same listener (reflection), which any admin may call. */
export function scopeOf({ parent, localName }: DescMethod): Scope | undefined {
  if (parent.typeName === OAuthAdminService.typeName) return OAUTH_SCOPES[localName as keyof typeof OAUTH_SCOPES];
  if (parent.typeName === SignalsAdminService.typeName) return SIGNALS_SCOPES[localName as keyof typeof SIGNALS_SCOPES];
  return parent.typeName === SessionAdminService.typeName
    ? RPC_SCOPES[localName as keyof typeof RPC_SCOPES]
    : undefined;
}

/** Whether an RPC needs no credential: only health, as `/readyz`. Probes of orchestrators cannot present one. */
export const isOpen = (method: DescMethod): boolean => method.parent.typeName === Health.typeName;
