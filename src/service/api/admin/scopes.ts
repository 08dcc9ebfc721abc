import type { DescMethod } from "@bufbuild/protobuf";
import { OAuthAdminService } from "../../../../gen/auth/admin/v1/oauth_admin_pb.ts";
import { SessionAdminService } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SharedSignalsService } from "../../../../gen/auth/admin/v1/shared_signals_pb.ts";
import { SignalsAdminService } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { Health } from "../../../../gen/grpc/health/v1/health_pb.ts";
import type { Scope } from "../../session/admin/access.ts";

/** The scope that each RPC requires. An RPC without one does not compile. */
const RPC_SCOPES = {
  createSession: "sessions:create",
  getSession: "sessions:read",
  listSessions: "sessions:read",
  listSessionEvents: "sessions:read",
  revokeSession: "sessions:revoke",
  revokeSubjectSessions: "sessions:revoke",
  revokeAllSessions: "sessions:revoke",
  elevateSession: "sessions:create", // An elevation states how the user signed in, as creating a session does.
  updateSession: "sessions:update",
  updateSubjectSessions: "sessions:update",
  // An unbound session needs only its cookie. The right to create such sessions therefore includes the right to unbind others.
  unbindDevice: "sessions:create",
  forgetSubject: "subjects:forget",
  exportSubject: "subjects:export",
  introspectToken: "introspect",
  watchRevocations: "watch",
} as const satisfies { readonly [rpc in keyof typeof SessionAdminService.method]: Scope };

const OAUTH_SCOPES = {
  introspect: "introspect",
  revokeGlobally: "sessions:revoke",
} as const satisfies { readonly [rpc in keyof typeof OAuthAdminService.method]: Scope };

const SIGNALS_SCOPES = {
  createSubscription: "signals:manage",
  getSubscription: "signals:read",
  listSubscriptions: "signals:read",
  deleteSubscription: "signals:manage",
  pauseSubscription: "signals:manage",
  resumeSubscription: "signals:manage",
  testSubscription: "signals:manage",
} as const satisfies { readonly [rpc in keyof typeof SignalsAdminService.method]: Scope };

const TABLES = new Map<string, Readonly<Record<string, Scope>>>([
  [SessionAdminService.typeName, RPC_SCOPES],
  [OAuthAdminService.typeName, OAUTH_SCOPES],
  [SignalsAdminService.typeName, SIGNALS_SCOPES],
]);

/** Scopes that are included in another one. */
const INCLUDED_IN: Partial<Record<Scope, Scope>> = { "signals:receive": "signals:manage" };

/** Services of the same listener that any admin may call. */
const WITHOUT_SCOPES: ReadonlySet<string> = new Set([
  "grpc.reflection.v1.ServerReflection",
  "grpc.reflection.v1alpha.ServerReflection",
]);

/** Returns the scope of an RPC; undefined if any admin may call it. @throws TypeError for a service without scopes: nobody may call it */
export function scopeOf(method: DescMethod): Scope | undefined {
  if (isForReceivers(method)) return "signals:receive";
  const { typeName } = method.parent;
  const scope = TABLES.get(typeName)?.[method.localName];
  if (scope === undefined && !WITHOUT_SCOPES.has(typeName)) throw new TypeError(`${typeName} has no scopes`);
  return scope;
}

export function allows(may: (scope: Scope) => boolean, scope: Scope): boolean {
  if (may(scope)) return true;
  const wider = INCLUDED_IN[scope];
  return wider !== undefined && may(wider);
}

/** Returns whether an RPC is an endpoint of SSF, which receivers of other organisations call. */
export const isForReceivers = (method: DescMethod): boolean => method.parent.typeName === SharedSignalsService.typeName;

/** Returns whether callers of an RPC may authenticate as OAuth clients do, by an id and a secret (RFC 7662 section 2.1). */
export const isForClients = (method: DescMethod): boolean => method === OAuthAdminService.method.introspect;

/** Returns whether an RPC needs no credential. Only the health check needs none, because probes of orchestrators cannot present one. */
export const isOpen = (method: DescMethod): boolean => method.parent.typeName === Health.typeName;
