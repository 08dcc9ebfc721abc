export type VerifierEvent =
  | { readonly event: "keys_read"; readonly kids: readonly string[] }
  /** The key set cannot be read. This is reported once per outage. The known keys stay in use for an hour. */
  | { readonly event: "keys_unreadable"; readonly error: unknown }
  | { readonly event: "feed_following" }
  /** The feed was interrupted. This is reported once per outage. No revocations are received until the next `feed_following`. */
  | { readonly event: "feed_lost"; readonly error: unknown }
  | { readonly event: "status_lists_read" }
  /** A status list cannot be read. This is reported once per outage. Known lists stay in use for as long as they allow. */
  | { readonly event: "status_lists_unreadable"; readonly error: unknown };

export type Report = (event: VerifierEvent) => void;

/** Wraps a report so that it never throws or rejects: a failing log must not stop the process. */
export function toSafeReport(report: Report | undefined): Report {
  return (event) => {
    try {
      // The type allows async functions too.
      Promise.resolve(report?.(event)).catch(() => {});
    } catch {
      // An error of `report` is ignored, because it cannot be reported.
    }
  };
}
