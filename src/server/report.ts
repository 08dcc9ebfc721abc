/** What the kit reports to the application, for its log. */

export type ServerSessionsEvent =
  /** The gate has refused a request. This is reported for each request, so a log must limit it. */
  | {
      readonly event: "request_refused";
      /** 400: the path cannot be decoded. 401: nobody is signed in. 403: a page of another site. 503: the state cannot be determined. */
      readonly status: RefusalStatus;
      readonly method: string;
      /** At most 200 characters of the path, as it was sent. It has no query. */
      readonly path: string;
      /** The reading of the path that `isPublic` does not name, if the status is 401 or 503. */
      readonly reading?: string;
    }
  /**
   * `current` was called for a request that no adapter has seen: in Next.js, `matcher` in `proxy.ts` leaves its path out. Reported once, on
   * the console if there is no `report`.
   */
  | { readonly event: "adapter_missing" };

export type RefusalStatus = 400 | 401 | 403 | 503;
export type Report = (event: ServerSessionsEvent) => void;

/** Wraps a report so that it never throws or rejects: a failing log must not fail a request. */
export function toSafeReport(report: Report = warnOfMissingAdapter): Report {
  return (event) => {
    try {
      // The type allows async functions too.
      Promise.resolve(report(event)).catch(() => {});
    } catch {
      // An error of `report` is ignored, because it cannot be reported.
    }
  };
}

export const NO_ADAPTER =
  "the session's adapter did not run for this request: in Next.js, the matcher in proxy.ts leaves its path out";

function warnOfMissingAdapter({ event }: ServerSessionsEvent): void {
  if (event === "adapter_missing") console.warn(`@session-service/server: ${NO_ADAPTER}`);
}
