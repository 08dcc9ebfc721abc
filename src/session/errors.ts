import type { SessionId } from "./model.ts";

/**
 * The closed list of errors that a caller can see (docs/errors.md has the same table, and a test compares
 * them). `message` is the public text: the same for every cause, so that it tells an attacker nothing.
 */
export const ERRORS = {
  E001_AUTH_FAILURE: { http: 401, rpc: "unauthenticated", message: "authentication failed" },
  E400_INVALID_REQUEST: { http: 400, rpc: "invalid_argument", message: "the request is not valid" },
  E403_FORBIDDEN: { http: 403, rpc: "permission_denied", message: "cross-site requests are not allowed" },
  E404_NOT_FOUND: { http: 404, rpc: "not_found", message: "not found" },
  E405_METHOD_NOT_ALLOWED: { http: 405, rpc: "unimplemented", message: "method not allowed" },
  E413_TOO_LARGE: { http: 413, rpc: "resource_exhausted", message: "the request is too large" },
  E415_UNSUPPORTED_MEDIA_TYPE: { http: 415, rpc: "invalid_argument", message: "the content type is not supported" },
  E429_RATE_LIMITED: { http: 429, rpc: "resource_exhausted", message: "too many requests" },
  E499_CANCELED: { http: 499, rpc: "canceled", message: "the request was canceled" },
  E504_DEADLINE_EXCEEDED: { http: 504, rpc: "deadline_exceeded", message: "the deadline was exceeded" },
  E500_INTERNAL: { http: 500, rpc: "internal", message: "internal error" },
  E503_UNAVAILABLE: { http: 503, rpc: "unavailable", message: "temporarily unavailable, try again" },
} as const;

export type ErrorCode = keyof typeof ERRORS;

/** A failure on its way to a caller. Anything else that is thrown is a bug and becomes `E500_INTERNAL`. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;

  /** @param message public text where it says more than the table's, such as the name of a bad field */
  constructor(code: ErrorCode, message: string = ERRORS[code].message, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** A request that names its own fault: `field` is the path of the bad field as the caller spells it. */
export function invalidRequest(field: string, fault: string): ServiceError {
  return new ServiceError("E400_INVALID_REQUEST", `${field}: ${fault}`);
}

/** Why a credential was refused. For the log and the metrics only; the caller is told `E001_AUTH_FAILURE`. */
export type RefusalReason =
  | "absent"
  | "ambiguous"
  | "malformed"
  | "unknown_key"
  | "forged"
  | "wrong_issuer"
  | "wrong_audience"
  | "expired"
  | "idle"
  | "revoked"
  | "reuse"
  | "unknown_session";

/** A credential that is proven bad: an expected outcome, so a value. */
export type Refused = { readonly refused: RefusalReason; readonly sid?: SessionId | undefined };

/** What is limited by rate. */
export type RateLimitName = "refresh" | "failures" | "create";

/** Too often, for the time being: an expected outcome, so a value. */
export type Limited = { readonly limited: RateLimitName; readonly retryAfterMs: number };
