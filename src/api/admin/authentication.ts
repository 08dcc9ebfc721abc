import type { HandlerContext } from "@connectrpc/connect";
import type { AdminAccess } from "../../session/admin-access.ts";
import type { Audit } from "../../session/audit.ts";
import { ServiceError } from "../../session/errors.ts";
import type { RateLimit } from "../../session/ports.ts";
import { SHARED_ERRORS, toConnectError } from "../errors/connect-errors.ts";
import { refusal } from "../refusal.ts";
import { requestContextOf } from "../request-context.ts";
import { identifyAdmin } from "./credential.ts";
import { allows, isOpen, scopeOf } from "./scopes.ts";

const NOT_ALLOWED = "not allowed";

/**
 * Requires a credential with the scope of the RPC, before the message is read. A caller without a valid credential gets E001_AUTH_FAILURE
 * and learns nothing else. A caller whose credential lacks the scope gets E403_FORBIDDEN.
 */
export function adminAuthentication(
  access: AdminAccess,
  audit: Audit,
  failureLimit: RateLimit,
): (context: HandlerContext) => Promise<void> {
  return async (context) => {
    const { requestHeader, method } = context;
    if (isOpen(method)) return;
    const request = requestContextOf(context);
    const authorization = requestHeader.get("authorization");
    const identified = identifyAdmin(access, authorization, request.source.certificate());
    if (!identified.ok) {
      const { reason } = identified;
      const event = { event: "authn_failed", operation: method.name, reason, admin: true } as const;
      throw refusal({ audit, failureLimit }, event, context, SHARED_ERRORS.noCredential);
    }
    request.admin = identified.caller;
    const scope = scopeOf(method);
    if (scope !== undefined && !allows(identified.caller.may, scope)) {
      audit({ event: "authz_failed", operation: method.name, scope }, request);
      throw toConnectError(new ServiceError("E403_FORBIDDEN", NOT_ALLOWED), () => {});
    }
  };
}

/** @throws ServiceError if the credential of a running stream was withdrawn */
export function requireScopeStill(context: HandlerContext): void {
  const scope = scopeOf(context.method);
  const { admin } = requestContextOf(context);
  if (admin === undefined || scope === undefined || allows(admin.may, scope)) return;
  throw new ServiceError("E001_AUTH_FAILURE");
}
