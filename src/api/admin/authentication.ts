import type { HandlerContext } from "@connectrpc/connect";
import type { AdminAccess } from "../../session/admin-access.ts";
import type { Audit } from "../../session/audit.ts";
import { ServiceError } from "../../session/errors.ts";
import type { RateLimit } from "../../session/ports.ts";
import { SHARED_ERRORS, toConnectError } from "../errors/connect-errors.ts";
import { refusal } from "../refusal.ts";
import { requestContextOf } from "../request-context.ts";
import { identifyAdmin } from "./credential.ts";
import { allows, isForReceivers, isOpen, scopeOf } from "./scopes.ts";

const NOT_ALLOWED = "not allowed";

/**
 * Requires a credential with the scope of the RPC, before the message is read. Without a valid credential the caller gets
 * E001_AUTH_FAILURE, without the scope E403_FORBIDDEN. Receivers of SSF also get the challenges of RFC 6750 section 3.1.
 */
export function adminAuthentication(
  access: AdminAccess,
  audit: Audit,
  failureLimit: RateLimit,
): (context: HandlerContext) => Promise<undefined> {
  return async (context) => {
    const { requestHeader, method } = context;
    if (isOpen(method)) return undefined;
    const request = requestContextOf(context);
    const authorization = requestHeader.get("authorization");
    const identified = identifyAdmin(access, authorization, request.source.certificate());
    if (!identified.ok) {
      const { reason } = identified;
      const event = { event: "authn_failed", operation: method.name, reason, admin: true } as const;
      const isToken = isForReceivers(method) && reason !== "absent";
      const error = isToken ? SHARED_ERRORS.invalidToken : SHARED_ERRORS.noCredential;
      throw refusal({ audit, failureLimit }, event, context, error);
    }
    request.admin = identified.caller;
    const scope = scopeOf(method);
    if (scope !== undefined && !allows(identified.caller.may, scope)) {
      audit({ event: "authz_failed", operation: method.name, scope }, request);
      const error = toConnectError(new ServiceError("E403_FORBIDDEN", NOT_ALLOWED), () => {});
      const challenge = `Bearer error="insufficient_scope", scope="${scope}"`; // RFC 6750 section 3.1
      if (isForReceivers(method)) error.metadata.set("www-authenticate", challenge);
      throw error;
    }
  };
}

/** Returns a check that a stream makes before each message. It throws a ServiceError if the credential no longer has the scope. */
export function scopeCheckOf(context: HandlerContext): () => void {
  const scope = scopeOf(context.method);
  const { admin } = requestContextOf(context);
  return () => {
    if (admin === undefined || scope === undefined || allows(admin.may, scope)) return;
    throw new ServiceError("E001_AUTH_FAILURE");
  };
}
