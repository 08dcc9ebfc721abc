/** The errors of the OAuth endpoints: those of docs/reference/errors.md in the form of RFC 6749 section 5.2. */
import type { ConnectError } from "@connectrpc/connect";
import type { FailureContext, FailureEncoder } from "connect-http-routes";
import { OAuthAdminService } from "../../../../gen/auth/admin/v1/oauth_admin_pb.ts";
import { OAuthService } from "../../../../gen/auth/v1/oauth_pb.ts";
import { ERRORS, type ErrorCode, invalidRequest, ServiceError } from "../../session/errors.ts";
import { errorOf } from "./connect-errors.ts";
import { describeFailure, envelope, envelopeEncoder } from "./envelope.ts";

export type OAuthError = { readonly status: number; readonly error: string };

/** An invalid request for which OAuth has an error of its own. */
class OAuthFailure extends ServiceError {
  readonly oauth: OAuthError;
  constructor(message: string, oauth: OAuthError, code: ErrorCode = "E400_INVALID_REQUEST") {
    super(code, message);
    this.oauth = oauth;
  }
}

export const unsupportedGrantType = () =>
  new OAuthFailure("grant_type: is not one of grant_types_supported", UNSUPPORTED_GRANT_TYPE);

/** The client may not have a token for the audiences that it asks for (RFC 8707 section 2, RFC 8693 section 2.2.2). */
export const invalidTarget = (description: string) => new OAuthFailure(description, INVALID_TARGET);

/** Access tokens have no scopes, so none can be granted (RFC 6749 section 3.3). */
export const invalidScope = () => new OAuthFailure("scope: access tokens have no scopes", INVALID_SCOPE);

export const unauthorizedClient = () => new OAuthFailure("the client may not exchange tokens", UNAUTHORIZED_CLIENT);

/** A token of the request is refused (RFC 8693 section 2.2.2). */
export const refusedToken = (parameter: string): ConnectError => errorOf(invalidRequest(parameter, "is not accepted"));

/** The error for a refused DPoP proof (RFC 9449 section 5). The session goes on, because the client may still have the right key. */
export const badProof = () => new OAuthFailure("the DPoP proof is not valid", BAD_PROOF);

/** The client has to repeat its request with the nonce of this response (RFC 9449 section 8). */
export const nonceRequired = () => new OAuthFailure("the DPoP proof needs the nonce of this response", NONCE_REQUIRED);

/** A caller of the introspection endpoint has presented two credentials (RFC 6749 section 2.3). */
export const twoCredentials = () =>
  new ServiceError("E400_INVALID_REQUEST", "more than one method of authentication: send one credential");

const of = (code: ErrorCode, error: string, status: number = ERRORS[code].http) => ({ status, error });

/** docs/tasks/clients.md has the same table. An unknown outcome is never `invalid_grant`, because clients then sign the user out. */
export const OAUTH_ERRORS: Readonly<Record<ErrorCode, OAuthError>> = {
  E001_AUTH_FAILURE: of("E001_AUTH_FAILURE", "invalid_grant", 400),
  E400_INVALID_REQUEST: of("E400_INVALID_REQUEST", "invalid_request"),
  E400_FAILED_PRECONDITION: of("E400_FAILED_PRECONDITION", "invalid_request"),
  E403_FORBIDDEN: of("E403_FORBIDDEN", "invalid_request"),
  E404_NOT_FOUND: of("E404_NOT_FOUND", "invalid_request"),
  E405_METHOD_NOT_ALLOWED: of("E405_METHOD_NOT_ALLOWED", "invalid_request"),
  E409_CONFLICT: of("E409_CONFLICT", "invalid_request"),
  E413_TOO_LARGE: of("E413_TOO_LARGE", "invalid_request"),
  E415_UNSUPPORTED_MEDIA_TYPE: of("E415_UNSUPPORTED_MEDIA_TYPE", "invalid_request"),
  E429_RATE_LIMITED: of("E429_RATE_LIMITED", "temporarily_unavailable"),
  E429_SESSION_LIMIT: of("E429_SESSION_LIMIT", "temporarily_unavailable"),
  E499_CANCELED: of("E499_CANCELED", "temporarily_unavailable"),
  E504_DEADLINE_EXCEEDED: of("E504_DEADLINE_EXCEEDED", "temporarily_unavailable"),
  E500_INTERNAL: of("E500_INTERNAL", "server_error"),
  E503_UNAVAILABLE: of("E503_UNAVAILABLE", "temporarily_unavailable"),
};

export const UNSUPPORTED_GRANT_TYPE: OAuthError = { status: 400, error: "unsupported_grant_type" };
export const INVALID_TARGET: OAuthError = { status: 400, error: "invalid_target" };
export const INVALID_SCOPE: OAuthError = { status: 400, error: "invalid_scope" };
export const UNAUTHORIZED_CLIENT: OAuthError = { status: 400, error: "unauthorized_client" };
export const BAD_PROOF: OAuthError = { status: 400, error: "invalid_dpop_proof" };
export const NONCE_REQUIRED: OAuthError = { status: 400, error: "use_dpop_nonce" };

/** The OAuth errors of the admin API, where the credential is a separate bearer token (RFC 6750 section 3.1). */
export const OAUTH_ADMIN_ERRORS: Readonly<Record<ErrorCode, OAuthError>> = {
  ...OAUTH_ERRORS,
  E001_AUTH_FAILURE: of("E001_AUTH_FAILURE", "invalid_token"),
  E403_FORBIDDEN: of("E403_FORBIDDEN", "insufficient_scope"),
};

/** The client's own credential, by Basic or in the form, is wrong (RFC 6749 section 5.2). */
export const INVALID_CLIENT: OAuthError = { status: 401, error: "invalid_client" };

/** The error for a wrong `client_secret`, at each of the two endpoints. Requests share it, so it must not be changed. */
export const invalidClient = createInvalidClient("admin");
export const invalidTokenClient = createInvalidClient("token");

function createInvalidClient(realm: string): ConnectError {
  const { message } = ERRORS.E001_AUTH_FAILURE;
  const failure = new OAuthFailure(message, INVALID_CLIENT, "E001_AUTH_FAILURE");
  return errorOf(failure, { "www-authenticate": `Basic realm="${realm}"` });
}

const TABLES = new Map<string, Readonly<Record<ErrorCode, OAuthError>>>([
  [OAuthService.typeName, OAUTH_ERRORS],
  [OAuthAdminService.typeName, OAUTH_ADMIN_ERRORS],
]);

/** RFC 6749 section 5.2 allows ASCII without the quotation mark and the backslash. */
const NOT_ALLOWED = /[^\x20-\x21\x23-\x5B\x5D-\x7E]/g;

/** The paths of the OAuth endpoints begin with this text, and so do those that clients expect, but that do not exist. */
const OAUTH_PATHS = "/v1/oauth/";
/** The path of the metadata (RFC 8414 section 3). */
export const METADATA_PATH = "/.well-known/oauth-authorization-server";

export const isOAuthPath = (path: string) => path.startsWith(OAUTH_PATHS) || path.startsWith(METADATA_PATH);

/** Returns the body of an error without a cause, in the format of the API to which a path belongs. */
export function errorBodyOf(path: string, code: ErrorCode): string {
  return JSON.stringify(isOAuthPath(path) ? oauthBody(OAUTH_ERRORS[code].error, ERRORS[code].message) : envelope(code));
}

function oauthBody(error: string, message: string) {
  return { error, error_description: message.replace(NOT_ALLOWED, "'") };
}

/** Returns the errors of the OAuth endpoint that a request was sent to; undefined if that is none. */
function tableOf({ rpc, path }: FailureContext) {
  if (rpc !== undefined) return TABLES.get(rpc.parent.typeName);
  return isOAuthPath(path) ? OAUTH_ERRORS : undefined;
}

/** Encodes failures of the OAuth endpoints in OAuth's format, others as `{"error":{"code":"…","message":"…"}}` (envelope.ts). */
export function apiErrorEncoder(onBug: (error: unknown) => void): FailureEncoder {
  const encode = envelopeEncoder(onBug);
  return (failure, context) => {
    const table = tableOf(context);
    if (table === undefined) return encode(failure, context);
    const { code, message, headers, cause } = describeFailure(failure, onBug);
    const { status, error } = cause instanceof OAuthFailure ? cause.oauth : table[code];
    return { status, headers, body: oauthBody(error, message) };
  };
}
