/** What a caller with a bad credential gets: 401, and once its address has presented too many, 429. */
import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import type { Audit, AuditEvent } from "../session/audit.ts";
import { UNCOUNTED_REFUSALS } from "../session/errors.ts";
import type { RateLimit } from "../session/ports.ts";
import { rateLimited } from "./errors/connect-errors.ts";
import { requestContextOf } from "./request-context.ts";

export type RefusalDeps = {
  readonly audit: Audit;
  /** How many requests with a bad credential, or with none, an address may make. */
  readonly failureLimit: RateLimit;
};

/**
 * Reports a refused credential, and returns the error for its caller. Valid credentials never come here: an address over its
 * limit, with all clients that share it, is still served when its credential is valid.
 *
 * @param unauthenticated the error below the limit
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
