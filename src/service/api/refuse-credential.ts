/** Refuses callers with a bad credential: with 401, and with 429 after their address has presented too many. */
import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import { type FailureDeps, takeFailure } from "../session/attempts.ts";
import type { AuditEvent, Requester } from "../session/audit.ts";
import { UNCOUNTED_REFUSALS } from "../session/errors.ts";
import { rateLimited } from "./errors/connect-errors.ts";
import { requestContextOf } from "./request-context.ts";

/**
 * Reports a refused credential, and returns the error for its caller. A valid credential is never refused, even if its address is over the
 * limit. @param unauthenticated the error while the address is below the limit
 */
export function refuseCredential(
  deps: FailureDeps,
  { reason, sid, admin }: Pick<Extract<AuditEvent, { event: "authn_failed" }>, "reason" | "sid" | "admin">,
  context: HandlerContext,
  unauthenticated: ConnectError,
): ConnectError {
  const requester = requestContextOf(context);
  deps.audit(
    { event: "authn_failed", operation: context.method.name, reason, sid, ...(admin && { admin }) },
    requester,
  );
  if (UNCOUNTED_REFUSALS.has(reason)) return unauthenticated;
  return countFailure(deps, requester) ?? unauthenticated;
}

/** Counts a failure of an address. Returns the error for its caller if the address has had too many. */
export function countFailure(deps: FailureDeps, requester: Requester): ConnectError | undefined {
  const retryAfterMs = takeFailure(deps, requester);
  return retryAfterMs === undefined ? undefined : rateLimited(retryAfterMs);
}
