/** The responses to requests that the application must not handle. */
import type { RefusalStatus } from "./report.ts";

export type Refusal = {
  readonly status: RefusalStatus;
  /** The code that the service has for this error. */
  readonly code: string;
  /** A sentence for people. */
  readonly message: string;
};

const REFUSALS: Readonly<Record<RefusalStatus, readonly [code: string, message: string]>> = {
  400: ["E400_INVALID_REQUEST", "the path cannot be decoded"],
  401: ["E001_AUTH_FAILURE", "not signed in"],
  403: ["E403_FORBIDDEN", "cross-site request"],
  503: ["E503_UNAVAILABLE", "the session service cannot be reached"],
};

export function refusalOf(status: RefusalStatus): Refusal {
  const [code, message] = REFUSALS[status];
  return { status, code, message };
}

/** Returns the response in the form of the service's errors. */
export function respondTo({ status, code, message }: Refusal): Response {
  const headers = status === 503 ? { "retry-after": "1" } : {};
  return Response.json({ error: { code, message } }, { status, headers });
}
