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
   * The service has refused a call, or has not responded to it. What was asked for is then `unavailable`. If every call fails, `service` is
   * the URL of something else.
   */
  | {
      readonly event: "service_failed";
      readonly path: string;
      /** The status, with the code or the error of its body, or the error of the network: `503 E503_UNAVAILABLE`, `ECONNREFUSED`. */
      readonly cause: string;
    }
  /**
   * The verifier has refused a token that the service has just issued, so that its user is `unavailable`. `reason` is that of the verifier:
   * `wrong_issuer` and others show that both are configured differently.
   */
  | { readonly event: "token_refused"; readonly reason: string }
  /**
   * `current` was called for a request that no adapter has seen: in Next.js, `matcher` in `proxy.ts` leaves its path out. Reported once.
   */
  | { readonly event: "adapter_missing" };

export type RefusalStatus = 400 | 401 | 403 | 503;
export type Report = (event: ServerSessionsEvent) => void;

/** Wraps a report so that it never throws or rejects: a failing log must not fail a request. */
export function toSafeReport(report: Report = createWarnings()): Report {
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

/**
 * Creates the default report: it writes the first event of each kind to the console, except refused requests. Each reason of the verifier
 * is a kind: `unavailable`, as while it starts, must not hide that it is configured differently.
 */
function createWarnings(): Report {
  const written = new Set<string>();
  return (event) => {
    const text = textOf(event);
    const kind = event.event === "token_refused" ? event.reason : event.event;
    if (text === undefined || written.has(kind)) return;
    written.add(kind);
    console.warn(`@session-service/server: ${text}`);
  };
}

function textOf(event: ServerSessionsEvent): string | undefined {
  switch (event.event) {
    case "adapter_missing":
      return NO_ADAPTER;
    case "service_failed":
      return `the session service has failed at ${event.path}: ${event.cause}`;
    case "token_refused":
      return `the verifier does not accept a new token of the service: ${event.reason}`;
    case "request_refused":
      return undefined;
  }
}
