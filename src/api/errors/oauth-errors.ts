/** The errors of the OAuth endpoints: the closed error table in the form of RFC 6749 section 5.2. */
import type { DescMethod } from "@bufbuild/protobuf";
import type { FailureEncoder } from "connect-http-routes";
import { OAuthAdminService } from "../../../gen/auth/admin/v1/oauth_admin_pb.ts";
import { OAuthService } from "../../../gen/auth/v1/oauth_pb.ts";
import { ERRORS, type ErrorCode, ServiceError } from "../../session/errors.ts";
import { describeFailure, envelopeEncoder } from "./envelope.ts";

/** The token endpoint was called with a grant other than a refresh token. */
export class UnsupportedGrantType extends ServiceError {
  constructor() {
    super("E400_INVALID_REQUEST", "grant_type: only refresh_token is supported");
  }
}

/**
 * The DPoP proof of a request is refused (RFC 9449 section 5). The client may still have the right key, so the error does not mean that
 * the session has ended.
 */
export class BadProof extends ServiceError {
  constructor() {
    super("E400_INVALID_REQUEST", "the DPoP proof is not valid");
  }
}

/** The DPoP proof must contain the nonce of this response (RFC 9449 section 8). */
export class NonceRequired extends ServiceError {
  constructor() {
    super("E400_INVALID_REQUEST", "the DPoP proof needs the nonce of this response");
  }
}

type OAuthError = { readonly status: number; readonly error: string };

const of = (code: ErrorCode, error: string, status: number = ERRORS[code].http) => ({ status, error });

/** The OAuth errors by code (docs/clients.md has the same table). An outcome that is not known is never `invalid_grant`. */
export const OAUTH_ERRORS: Readonly<Record<ErrorCode, OAuthError>> = {
  E001_AUTH_FAILURE: of("E001_AUTH_FAILURE", "invalid_grant", 400),
  E400_INVALID_REQUEST: of("E400_INVALID_REQUEST", "invalid_request"),
  E403_FORBIDDEN: of("E403_FORBIDDEN", "invalid_request"),
  E404_NOT_FOUND: of("E404_NOT_FOUND", "invalid_request"),
  E405_METHOD_NOT_ALLOWED: of("E405_METHOD_NOT_ALLOWED", "invalid_request"),
  E413_TOO_LARGE: of("E413_TOO_LARGE", "invalid_request"),
  E415_UNSUPPORTED_MEDIA_TYPE: of("E415_UNSUPPORTED_MEDIA_TYPE", "invalid_request"),
  E429_RATE_LIMITED: of("E429_RATE_LIMITED", "temporarily_unavailable"),
  E499_CANCELED: of("E499_CANCELED", "temporarily_unavailable"),
  E504_DEADLINE_EXCEEDED: of("E504_DEADLINE_EXCEEDED", "temporarily_unavailable"),
  E500_INTERNAL: of("E500_INTERNAL", "server_error"),
  E503_UNAVAILABLE: of("E503_UNAVAILABLE", "temporarily_unavailable"),
};

export const UNSUPPORTED_GRANT_TYPE: OAuthError = { status: 400, error: "unsupported_grant_type" };
export const BAD_PROOF: OAuthError = { status: 400, error: "invalid_dpop_proof" };
export const NONCE_REQUIRED: OAuthError = { status: 400, error: "use_dpop_nonce" };

/** The OAuth errors of the admin API, where the credential is a separate bearer token (RFC 6750 section 3.1). */
export const OAUTH_ADMIN_ERRORS: Readonly<Record<ErrorCode, OAuthError>> = {
  ...OAUTH_ERRORS,
  E001_AUTH_FAILURE: of("E001_AUTH_FAILURE", "invalid_token"),
  E403_FORBIDDEN: of("E403_FORBIDDEN", "insufficient_scope"),
};

const TABLES = new Map<string, Readonly<Record<ErrorCode, OAuthError>>>([
  [OAuthService.typeName, OAUTH_ERRORS],
  [OAuthAdminService.typeName, OAUTH_ADMIN_ERRORS],
]);

/** RFC 6749 section 5.2 allows ASCII without the quotation mark and the backslash. */
const NOT_ALLOWED = /[^\x20-\x21\x23-\x5B\x5D-\x7E]/g;

/**
 * Encodes the failures of the OAuth endpoints in OAuth's format, and all others in the envelope.
 *
 * @param onBug as for `envelopeEncoder`
 */
export function apiErrorEncoder(onBug: (error: unknown) => void): FailureEncoder {
  const encode = envelopeEncoder(onBug);
  return (failure, context) => {
    const table = tableOf(context.rpc);
    if (table === undefined) return encode(failure, context);
    const { code, message, headers, cause } = describeFailure(failure, onBug);
    const { status, error } = ownErrorOf(cause) ?? table[code];
    return { status, headers, body: { error, error_description: message.replace(NOT_ALLOWED, "'") } };
  };
}

/** Returns the OAuth error of a failure whose error code stands for several OAuth errors; undefined for other failures. */
function ownErrorOf(cause: unknown): OAuthError | undefined {
  if (cause instanceof UnsupportedGrantType) return UNSUPPORTED_GRANT_TYPE;
  if (cause instanceof BadProof) return BAD_PROOF;
  return cause instanceof NonceRequired ? NONCE_REQUIRED : undefined;
}

const tableOf = (rpc: DescMethod | undefined) => (rpc === undefined ? undefined : TABLES.get(rpc.parent.typeName));
