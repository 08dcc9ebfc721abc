/** Refuses callers with a bad credential: with 401, and with 429 after their address has presented too many. */
import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import type { Audit, AuditEvent } from "../session/audit.ts";
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
 * limit. @param unauthenticated the error below the limit
 */
export function refusal(
  { audit, failureLimit }: RefusalDeps,
  event: Extract<AuditEvent, { event: "authn_failed" }>,
  context: Pick<HandlerContext, "values">,
  unauthenticated: ConnectError,
): ConnectError {
  const requester = requestContextOf(context);
  audit(event, requester);
  if (UNCOUNTED_REFUSALS.has(event.reason)) return unauthenticated;
  const retryAfterMs = failureLimit.take(requester.address() ?? "");
  if (retryAfterMs === undefined) return unauthenticated;
  audit({ event: "rate_limited", limit: "failures" }, requester);
  return rateLimited(retryAfterMs);
}
