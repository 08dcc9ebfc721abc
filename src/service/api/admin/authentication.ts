import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import type { AdminAccess } from "../../session/admin/access.ts";
import type { FailureDeps } from "../../session/attempts.ts";
import { ServiceError } from "../../session/errors.ts";
import { errorOf, SHARED_ERRORS } from "../errors/connect-errors.ts";
import { invalidClient, twoCredentials } from "../errors/oauth-errors.ts";
import type { Gate } from "../gates/gates.ts";
import { refuseCredential } from "../refuse-credential.ts";
import { requestContextOf } from "../request-context.ts";
import {
  basicCredential,
  type ClientCredential,
  type Identified,
  identifyAdmin,
  identifyClient,
} from "./credential.ts";
import { allows, isForClients, isForReceivers, isOpen, scopeOf } from "./scopes.ts";

export type AuthenticationDeps = FailureDeps & { readonly access: AdminAccess };

const NOT_ALLOWED = "not allowed";
const FORM = /^application\/x-www-form-urlencoded\b/i;

/**
 * Requires a credential with the scope of the RPC, before the message is read. Without a valid credential the caller gets
 * E001_AUTH_FAILURE, without the scope E403_FORBIDDEN. Receivers of SSF also get the challenges of RFC 6750 section 3.1. Only a form that
 * is sent to the introspection endpoint without another credential is read first: it may contain one (`authenticateByForm`).
 */
export function adminAuthentication(deps: AuthenticationDeps): Gate {
  return async (context) => {
    const { requestHeader, method } = context;
    if (isOpen(method)) return undefined;
    const authorization = requestHeader.get("authorization");
    const request = requestContextOf(context);
    const certificate = request.source.certificate();
    if (isForClients(method)) {
      const client = basicCredential(authorization);
      if (client !== undefined) return admit(deps, context, identifyClient(deps.access, client), invalidClient);
      const isForm = FORM.test(requestHeader.get("content-type") ?? "");
      if (isForm && authorization === null && certificate === undefined) return undefined;
    }
    const identified = identifyAdmin(deps.access, authorization, certificate);
    const isToken = isForReceivers(method) && !identified.ok && identified.reason !== "absent";
    return admit(deps, context, identified, isToken ? SHARED_ERRORS.invalidToken : SHARED_ERRORS.noCredential);
  };
}

/** Authenticates the caller of the introspection endpoint by the form, unless the request has another credential. */
export function authenticateByForm(deps: AuthenticationDeps, context: HandlerContext, client: ClientCredential): void {
  if (client.secret !== "") {
    if (context.requestHeader.has("authorization")) throw twoCredentials();
    admit(deps, context, identifyClient(deps.access, client), invalidClient);
  } else if (requestContextOf(context).admin === undefined) {
    admit(deps, context, { ok: false, reason: "absent" }, SHARED_ERRORS.noCredential);
  }
}

/** @param unauthenticated the error for a caller that is not identified @throws ConnectError unless the caller has the scope of the RPC */
function admit(
  deps: AuthenticationDeps,
  context: HandlerContext,
  identified: Identified,
  unauthenticated: ConnectError,
) {
  const { method } = context;
  if (!identified.ok)
    throw refuseCredential(deps, { reason: identified.reason, admin: true }, context, unauthenticated);
  const request = requestContextOf(context);
  request.admin = identified.caller;
  const scope = scopeOf(method);
  if (scope === undefined || allows(identified.caller.may, scope)) return undefined;
  deps.audit({ event: "authz_failed", operation: method.name, scope }, request);
  const challenge = `Bearer error="insufficient_scope", scope="${scope}"`; // RFC 6750 section 3.1
  const headers = isForReceivers(method) ? { "www-authenticate": challenge } : undefined;
  throw errorOf(new ServiceError("E403_FORBIDDEN", NOT_ALLOWED), headers);
}

/** Returns a check for calls that wait, such as before each message of a stream. @throws ServiceError if the credential lost the scope */
export function scopeCheckOf(context: HandlerContext): () => void {
  const scope = scopeOf(context.method);
  const { admin } = requestContextOf(context);
  return () => {
    if (admin === undefined || scope === undefined || allows(admin.may, scope)) return;
    throw new ServiceError("E001_AUTH_FAILURE");
  };
}
