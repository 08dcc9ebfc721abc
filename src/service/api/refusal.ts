/** Refuses callers with a bad credential: with 401, and with 429 after their address has presented too many. */
import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import type { Audit, AuditEvent, Requester } from "../session/audit.ts";
import { UNCOUNTED_REFUSALS } from "../session/errors.ts";
import type { RateLimit } from "../session/ports.ts";
import { rateLimited } from "./errors/connect-errors.ts";
import { requestContextOf } from "./request-context.ts";

export type RefusalDeps = {
  readonly audit: Audit;
  /** Limits the requests without a valid credential by address. */
  readonly failureLimit: RateLimit;
};

/**
 * Reports a refused credential, and returns the error for its caller. A valid credential is never refused, even if its address is over the
 * limit. @param unauthenticated the error while the address is below the limit
 */
export function refusal(
  deps: RefusalDeps,
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
export function countFailure({ audit, failureLimit }: RefusalDeps, requester: Requester): ConnectError | undefined {
  const retryAfterMs = failureLimit.take(requester.address() ?? "");
  if (retryAfterMs === undefined) return undefined;
  audit({ event: "rate_limited", limit: "failures" }, requester);
  return rateLimited(retryAfterMs);
}
