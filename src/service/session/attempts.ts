/** Attempts that a rate limit counts. One that is over its limit is recorded. */
import type { Audit, AuditEvent, Requester } from "./audit.ts";
import type { Limited } from "./errors.ts";
import type { RateLimit } from "./ports.ts";

/** The name of the limit, and whose attempt it is. */
type About = Omit<Extract<AuditEvent, { readonly event: "rate_limited" }>, "event">;

type Attempt = {
  readonly rateLimit: RateLimit;
  /** What the attempt is counted under. */
  readonly key: string;
  readonly about: About;
  readonly requester: Requester;
  readonly audit: Audit;
};

/** Makes an attempt within its limit. If the store did not respond, the attempt does not count. */
export async function attemptWithin<T>(
  { rateLimit, key, about, requester, audit }: Attempt,
  work: () => Promise<T>,
): Promise<T | Limited> {
  const retryAfterMs = rateLimit.take(key);
  if (retryAfterMs !== undefined) return overLimit(audit, about, retryAfterMs, requester);
  return work().catch((error: unknown) => {
    rateLimit.giveBack(key);
    throw error;
  });
}

/** Records and refuses an attempt that is over its limit. */
export function overLimit(audit: Audit, about: About, retryAfterMs: number, requester: Requester): Limited {
  audit({ event: "rate_limited", ...about }, requester);
  return { ok: false, reason: "rate_limited", limit: about.limit, retryAfterMs };
}

export type FailureDeps = {
  readonly audit: Audit;
  /** Limits the requests without a valid credential by address. */
  readonly failureLimit: RateLimit;
};

/** Counts a bad credential of an address. Returns for how long its sender has to wait, in ms, if the address has sent too many. */
export function takeFailure({ audit, failureLimit }: FailureDeps, requester: Requester): number | undefined {
  const retryAfterMs = failureLimit.take(requester.address() ?? "");
  if (retryAfterMs !== undefined) overLimit(audit, { limit: "failures" }, retryAfterMs, requester);
  return retryAfterMs;
}
