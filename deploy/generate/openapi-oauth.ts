/** The parts of both OpenAPI documents that describe OAuth's endpoints: their forms, and their errors (api/errors/oauth-errors.ts). */

import {
  BAD_PROOF,
  INVALID_CLIENT,
  INVALID_SCOPE,
  INVALID_TARGET,
  NONCE_REQUIRED,
  OAUTH_ADMIN_ERRORS,
  OAUTH_ERRORS,
  type OAuthError,
  UNAUTHORIZED_CLIENT,
  UNSUPPORTED_GRANT_TYPE,
} from "../../src/service/api/errors/oauth-errors.ts";
import type { ErrorCode } from "../../src/service/session/errors.ts";
import { headersOfFailure } from "./openapi-errors.ts";

const COMMON = [
  "E400_INVALID_REQUEST",
  "E413_TOO_LARGE",
  "E415_UNSUPPORTED_MEDIA_TYPE",
  "E429_RATE_LIMITED",
  "E500_INTERNAL",
  "E503_UNAVAILABLE",
  "E504_DEADLINE_EXCEEDED",
] satisfies ErrorCode[];

/** Describes the body of an OAuth error (RFC 6749 section 5.2). */
const body = (errors: readonly string[]) => ({
  type: "object",
  required: ["error"],
  properties: {
    error: { type: "string", enum: errors, description: "Stable, for programs." },
    error_description: { type: "string", description: "For people; it may change." },
  },
});

function failure(status: number, errors: readonly string[]) {
  return {
    $ref: null, // null removes the reference to the general response that all operations have by default.
    description: errors.map((error) => `\`${error}\``).join(" or "),
    ...headersOfFailure(status),
    content: { "application/json": { schema: body(errors) } },
  };
}

function failures(table: typeof OAUTH_ERRORS, codes: readonly ErrorCode[], further: readonly OAuthError[] = []) {
  const byStatus = new Map<number, Set<string>>();
  for (const { status, error } of [...codes.map((code) => table[code]), ...further]) {
    byStatus.set(status, (byStatus.get(status) ?? new Set()).add(error));
  }
  const described = [...byStatus].map(([status, errors]) => [status, failure(status, [...errors])]);
  const all = [...new Set([...Object.values(table), ...further].map(({ error }) => error))];
  return { ...Object.fromEntries(described), default: failure(0, all) };
}

type Example = Readonly<Record<string, string | readonly string[]>>;

const form = (
  message: string,
  required: readonly string[],
  example: Example,
  others?: Readonly<Record<string, Example>>,
) => ({
  requestBody: {
    required: true,
    content: {
      "application/x-www-form-urlencoded": {
        schema: { allOf: [{ $ref: `#/components/schemas/${message}` }, { required }] },
        ...(others === undefined ? { example } : { examples: namedExamples({ refresh: example, ...others }) }),
      },
    },
  },
});

const namedExamples = (examples: Readonly<Record<string, Example>>) =>
  Object.fromEntries(Object.entries(examples).map(([name, value]) => [name, { value }]));

const PROOF_ERRORS = [BAD_PROOF, NONCE_REQUIRED];

/** The request needs no credential other than the token in its body. */
const NO_CREDENTIAL = { security: [{}], responses: { 401: null, 403: null } };

const REFRESH = { grant_type: "refresh_token", refresh_token: "…", client_id: "cli" };

const EXCHANGE = {
  grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
  client_id: "gateway",
  client_secret: "…",
  subject_token: "…",
  subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
  resource: ["https://orders.example"],
};

const GRANT_ERRORS = [UNSUPPORTED_GRANT_TYPE, ...PROOF_ERRORS, INVALID_TARGET, INVALID_SCOPE, UNAUTHORIZED_CLIENT];

/** A response has only the members that belong to its grant (src/service/composition/public-api.ts). */
export const PUBLIC_SCHEMAS = { "auth.v1.GrantTokenResponse": { required: ["access_token", "token_type"] } };

export const PUBLIC_OPERATIONS = {
  "auth.v1.OAuthService.GrantToken": {
    ...form("auth.v1.GrantTokenRequest", ["grant_type"], REFRESH, { exchange: EXCHANGE }),
    ...NO_CREDENTIAL,
    responses: {
      ...NO_CREDENTIAL.responses,
      ...failures(OAUTH_ERRORS, ["E001_AUTH_FAILURE", ...COMMON], [...GRANT_ERRORS, INVALID_CLIENT]),
    },
  },
  "auth.v1.OAuthService.RevokeToken": {
    ...form("auth.v1.RevokeTokenRequest", ["token"], { token: "…" }),
    ...NO_CREDENTIAL,
    responses: { ...NO_CREDENTIAL.responses, ...failures(OAUTH_ERRORS, COMMON, PROOF_ERRORS) },
  },
  "auth.v1.OAuthService.GetMetadata": {
    ...NO_CREDENTIAL,
    responses: {
      ...NO_CREDENTIAL.responses,
      ...failures(OAUTH_ERRORS, ["E500_INTERNAL", "E503_UNAVAILABLE", "E504_DEADLINE_EXCEEDED"]),
      400: null,
      429: null,
    },
  },
};

const ADMIN_CODES = ["E001_AUTH_FAILURE", "E403_FORBIDDEN", ...COMMON] satisfies ErrorCode[];

export const ADMIN_OPERATIONS = {
  "auth.admin.v1.OAuthAdminService.Introspect": {
    ...form("auth.admin.v1.IntrospectRequest", ["token"], { token: "an access token or a refresh token" }),
    responses: failures(OAUTH_ADMIN_ERRORS, ADMIN_CODES, [INVALID_CLIENT]),
  },
  "auth.admin.v1.OAuthAdminService.RevokeGlobally": {
    requestBody: {
      required: true,
      content: { "application/json": { example: { sub_id: { format: "opaque", id: "alice" } } } },
    },
    responses: {
      200: null,
      204: { description: "The sessions have ended." },
      ...failures(OAUTH_ADMIN_ERRORS, ADMIN_CODES),
    },
  },
};
