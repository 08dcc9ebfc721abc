/** Counts bad credentials by address. */
import type { Audit, Requester } from "./audit.ts";
import type { RateLimit } from "./ports.ts";

export type FailureDeps = {
  readonly audit: Audit;
  /** Limits the requests without a valid credential by address. */
  readonly failureLimit: RateLimit;
};

/** Counts a bad credential of an address. Returns for how long its sender has to wait, in ms, if the address has sent too many. */
export function takeFailure({ audit, failureLimit }: FailureDeps, requester: Requester): number | undefined {
  const retryAfterMs = failureLimit.take(requester.address() ?? "");
  if (retryAfterMs !== undefined) audit({ event: "rate_limited", limit: "failures" }, requester);
  return retryAfterMs;
}
