import type { SessionId } from "./model.ts";

/**
 * The closed list of errors that a caller can see. A test compares it with docs/reference/errors.md. `message` is the public text. It does
 * not depend on the cause, so that an attacker learns nothing from it.
 */
export const ERRORS = {
  E001_AUTH_FAILURE: { http: 401, rpc: "unauthenticated", message: "authentication failed" },
  E400_INVALID_REQUEST: { http: 400, rpc: "invalid_argument", message: "the request is not valid" },
  E400_FAILED_PRECONDITION: {
    http: 400,
    rpc: "failed_precondition",
    message: "the state of the session does not allow it",
  },
  E403_FORBIDDEN: { http: 403, rpc: "permission_denied", message: "cross-site requests are not allowed" },
  E404_NOT_FOUND: { http: 404, rpc: "not_found", message: "not found" },
  E405_METHOD_NOT_ALLOWED: { http: 405, rpc: "unimplemented", message: "method not allowed" },
  E409_CONFLICT: { http: 409, rpc: "aborted", message: "the session was changed in the meantime" },
  E413_TOO_LARGE: { http: 413, rpc: "resource_exhausted", message: "the request is too large" },
  E415_UNSUPPORTED_MEDIA_TYPE: { http: 415, rpc: "invalid_argument", message: "the content type is not supported" },
  E429_RATE_LIMITED: { http: 429, rpc: "resource_exhausted", message: "too many requests" },
  E429_SESSION_LIMIT: { http: 429, rpc: "resource_exhausted", message: "the user has too many sessions" },
  E499_CANCELED: { http: 499, rpc: "canceled", message: "the request was canceled" },
  E504_DEADLINE_EXCEEDED: { http: 504, rpc: "deadline_exceeded", message: "the deadline was exceeded" },
  E500_INTERNAL: { http: 500, rpc: "internal", message: "internal error" },
  E503_UNAVAILABLE: { http: 503, rpc: "unavailable", message: "temporarily unavailable, try again" },
} as const;

export type ErrorCode = keyof typeof ERRORS;

export type FieldViolation = {
  /** The path of the field by the names of the contract, such as `client.user_agent`; empty for the request as a whole. */
  readonly field: string;
  readonly description: string;
  /** The rule, as the contract's rules are named; empty for a rule that only code can check. */
  readonly ruleId: string;
};

/** A failure on its way to a caller. Anything else that is thrown is a bug and becomes `E500_INTERNAL`. */
export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ErrorCode;
  /** With `E400_INVALID_REQUEST`: what is wrong with which field. */
  readonly fieldViolations: readonly FieldViolation[];

  /** @param message a public text that is more specific than that of the table, such as one that names an invalid field */
  constructor(
    code: ErrorCode,
    message: string = ERRORS[code].message,
    { fieldViolations = [], ...options }: ErrorOptions & { readonly fieldViolations?: readonly FieldViolation[] } = {},
  ) {
    super(message, options);
    this.code = code;
    this.fieldViolations = fieldViolations;
  }
}

/** Returns the error for one bad field of a request. @param field its path by the names of the contract */
export function invalidRequest(field: string, description: string): ServiceError {
  return invalidFields([{ field, description, ruleId: "" }]);
}

export function invalidFields(fieldViolations: readonly FieldViolation[]): ServiceError {
  const message = fieldViolations.map(({ field, description }) => (field ? `${field}: ${description}` : description));
  return new ServiceError("E400_INVALID_REQUEST", message.join("; "), { fieldViolations });
}

/** Why a credential was refused. Only the log and the metrics have the reason; the caller gets `E001_AUTH_FAILURE`. */
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
  | "stale"
  | "reuse"
  | "two_holders"
  | "device_proof_missing"
  | "device_required"
  | "proof_missing"
  | "other_key"
  | "wrong_transport"
  | "wrong_client"
  | "unknown_session";

/** Refusals of authentic credentials, which do not count towards an address's limit: many clients behind one address may present them. */
export const UNCOUNTED_REFUSALS: ReadonlySet<RefusalReason> = new Set<RefusalReason>([
  "expired",
  "idle",
  "revoked",
  "stale",
  "unknown_session",
  "reuse",
  // For the following reasons, the client may be a browser that has lost its key.
  "two_holders",
  "device_proof_missing",
  "device_required",
  "proof_missing",
  // For the following reasons, the client is probably configured wrongly.
  "wrong_transport",
  "wrong_client",
]);

/** Refusals in normal operation, at times of many clients at once: tokens age, sessions end, keys are lost. All others are suspicious. */
export const EVERYDAY_REFUSALS: ReadonlySet<RefusalReason> = new Set<RefusalReason>(["absent", ...UNCOUNTED_REFUSALS]);

/** The refusal of a credential that is known to be invalid. */
export type Refused = { readonly ok: false; readonly reason: RefusalReason; readonly sid?: SessionId | undefined };

export type RateLimitName = "refresh" | "failures" | "create" | "update";

/** The rate limit is exceeded until `retryAfterMs` have passed. */
export type Limited = {
  readonly ok: false;
  readonly reason: "rate_limited";
  readonly limit: RateLimitName;
  readonly retryAfterMs: number;
};
