import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { AdminAccess } from "../../session/admin-access.ts";
import type { Audit } from "../../session/audit.ts";
import { ServiceError } from "../../session/errors.ts";
import type { RateLimit } from "../../session/ports.ts";
import { callerKey } from "../caller.ts";
import { SHARED_ERRORS, toConnectError } from "../errors/connect-errors.ts";
import { refusal } from "../refusal.ts";
import { type AdminCaller, identifyAdmin } from "./credential.ts";
import { scopeOf } from "./scopes.ts";

/** The caller of an admin RPC, once it is known. */
export const adminKey = createContextKey<AdminCaller | undefined>(undefined, { description: "admin caller" });

const NOT_ALLOWED = "not allowed";

/**
 * Asks every RPC for a credential and its scope, before its message is read. A caller without a credential learns
 * nothing else; one whose credential lacks the scope, only that.
 */
export function adminAuthentication(
  access: AdminAccess,
  audit: Audit,
  failureLimit: RateLimit,
): (context: HandlerContext) => Promise<void> {
  return async (context) => {
    const { requestHeader, method, values } = context;
    const { address, certificate } = values.get(callerKey);
    const identified = identifyAdmin(access, requestHeader, certificate());
    if (!identified.ok) {
      const { reason } = identified;
      const event = { event: "authn_failed", operation: method.name, reason, admin: true } as const;
      throw await refusal({ audit, failureLimit }, event, context, SHARED_ERRORS.noCredential);
    }
    const { caller } = identified;
    const scope = scopeOf(method);
    if (scope !== undefined && !caller.may(scope)) {
      audit({ event: "authz_failed", operation: method.name, scope }, address, caller.name);
      throw toConnectError(new ServiceError("E403_FORBIDDEN", NOT_ALLOWED), () => {});
    }
    values.set(adminKey, caller);
  };
}

/** @throws ServiceError when the credential of a running stream was withdrawn */
export function stillAllowed(context: HandlerContext): void {
  const scope = scopeOf(context.method);
  const caller = context.values.get(adminKey);
  if (caller === undefined || scope === undefined || caller.may(scope)) return;
  throw new ServiceError("E001_AUTH_FAILURE");
}

/** What a use case needs, its events reported with the address and the name of the admin who calls. */
export function withAdmin<Deps extends { readonly audit: Audit }>(deps: Deps, { values }: HandlerContext): Deps {
  const { address } = values.get(callerKey);
  const by = values.get(adminKey)?.name;
  return { ...deps, audit: (event) => deps.audit(event, address, by) };
}
