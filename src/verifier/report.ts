/** What an operator of a service that verifies may want to log. */
export type VerifierEvent =
  | { readonly event: "keys_read"; readonly kids: readonly string[] }
  /** Told when it begins. The keys at hand stay in force for an hour. */
  | { readonly event: "keys_unreadable"; readonly error: unknown }
  | { readonly event: "feed_following" }
  /** Told when it begins: revocations are not seen until the next `feed_following`. */
  | { readonly event: "feed_lost"; readonly error: unknown };

export type Report = (event: VerifierEvent) => void;

/** A report that never throws or rejects: what goes wrong with a log must not end the process that logs. */
export function harmless(report: Report | undefined): Report {
  return (event) => {
    try {
      // An async function is a Report too.
      Promise.resolve(report?.(event)).catch(() => {});
    } catch {
      // Nobody is left to be told.
    }
  };
}
