/** The errors of the OAuth endpoints: those of docs/errors.md in the form of RFC 6749 section 5.2. */
import type { FailureEncoder } from "connect-http-routes";
import { OAuthAdminService } from "../../../gen/auth/admin/v1/oauth_admin_pb.ts";
import { OAuthService } from "../../../gen/auth/v1/oauth_pb.ts";
import { ERRORS, type ErrorCode, ServiceError } from "../../session/errors.ts";
import { describeFailure, envelopeEncoder } from "./envelope.ts";

type OAuthError = { readonly status: number; readonly error: string };

/** An invalid request for which OAuth has an error of its own. */
class OAuthFailure extends ServiceError {
  readonly oauth: OAuthError;
  constructor(message: string, oauth: OAuthError) {
    super("E400_INVALID_REQUEST", message);
    this.oauth = oauth;
  }
}

export const unsupportedGrantType = () =>
  new OAuthFailure("grant_type: only refresh_token is supported", UNSUPPORTED_GRANT_TYPE);

/** The error for a refused DPoP proof (RFC 9449 section 5). The session goes on, because the client may still have the right key. */
export const badProof = () => new OAuthFailure("the DPoP proof is not valid", BAD_PROOF);

/** The client has to repeat its request with the nonce of this response (RFC 9449 section 8). */
export const nonceRequired = () => new OAuthFailure("the DPoP proof needs the nonce of this response", NONCE_REQUIRED);

const of = (code: ErrorCode, error: string, status: number = ERRORS[code].http) => ({ status, error });

/** docs/clients.md has the same table. An unknown outcome is never `invalid_grant`, because clients then sign the user out. */
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

/** Encodes failures of the OAuth endpoints in OAuth's format, and all others as `{"error":{"code":"…","message":"…"}}` (envelope.ts). */
export function apiErrorEncoder(onBug: (error: unknown) => void): FailureEncoder {
  const encode = envelopeEncoder(onBug);
  return (failure, context) => {
    const table = context.rpc && TABLES.get(context.rpc.parent.typeName);
    if (table === undefined) return encode(failure, context);
    const { code, message, headers, cause } = describeFailure(failure, onBug);
    const { status, error } = cause instanceof OAuthFailure ? cause.oauth : table[code];
    return { status, headers, body: { error, error_description: message.replace(NOT_ALLOWED, "'") } };
  };
}
