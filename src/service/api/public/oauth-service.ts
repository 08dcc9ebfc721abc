/** auth.v1.OAuthService: the token, revocation and metadata endpoints. Neither reads nor sets a cookie. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import type { GrantTokenRequest, OAuthService } from "../../../../gen/auth/v1/oauth_pb.ts";
import { PROOF_ALGORITHMS } from "../../../platform/dpop/proof-key.ts";
import { revokeToken } from "../../session/endings/revoke-token.ts";
import { invalidRequest } from "../../session/errors.ts";
import type { SessionId } from "../../session/model.ts";
import { authenticateRefreshTokens } from "../../session/rotation/presented-cookie.ts";
import { refresh } from "../../session/rotation/refresh.ts";
import { rateLimited, SHARED_ERRORS } from "../errors/connect-errors.ts";
import { badProof, invalidTarget, METADATA_PATH, unsupportedGrantType } from "../errors/oauth-errors.ts";
import { refuseCredential } from "../refuse-credential.ts";
import { requestContextOf } from "../request-context.ts";
import { provenKey } from "./dpop.ts";
import { expiresIn, resourcesOf } from "./oauth-parameters.ts";
import type { SessionServiceDeps } from "./session-service.ts";
import { EXCHANGE_GRANT, exchangeToken, type TokenExchange } from "./token-exchange.ts";

export type OAuthServiceDeps = SessionServiceDeps & {
  /** Absent if no policies are configured. */
  readonly tokenExchange?: TokenExchange | undefined;
  /** `iss` of the access tokens. The endpoints are below it. */
  readonly issuer: string;
  /** The URL of the admin API as others reach it; undefined if that is not configured. */
  readonly adminUrl: string | undefined;
  readonly keyAlgorithms: () => readonly string[];
};

/** The size limit of a request in bytes. It is enough for an access token, the longest token that a request may contain. */
export const MAX_OAUTH_REQUEST_BYTES = 20_480;

/** The paths of these routes are also in proto/auth/v1/oauth.proto, and must be equal to those. */
const TOKEN_PATH = "/v1/oauth/token";
const REVOKE_PATH = "/v1/oauth/revoke";

/** The path in proto/auth/admin/v1/oauth_admin.proto. */
const INTROSPECT_PATH = "/v1/oauth/introspect";
const OPENID_PATH = "/.well-known/openid-configuration";

const REFRESH_GRANT = "refresh_token";
const CLIENT_AUTHENTICATION = ["client_secret_basic", "client_secret_post"];

export function oauthService(deps: OAuthServiceDeps): ServiceImpl<typeof OAuthService> {
  return {
    grantToken: (request, context) => grantToken(deps, request, context),
    async revokeToken({ token }, context) {
      const sid = sessionOf(deps, token);
      const proof = sid && provenKey(deps, context, sid);
      const result = await revokeToken(deps, token, requestContextOf(context), proof);
      if (result.ok) return {};
      // An invalid token is no error (RFC 7009 section 2.2), but an address may present only a limited number of them.
      const error = refuseCredential(deps, result, context, SHARED_ERRORS.invalidGrant);
      if (error !== SHARED_ERRORS.invalidGrant) throw error;
      // A session that is bound to a key ends only with a proof of that key, so this session stays live.
      if (result.reason === "proof_missing" || result.reason === "other_key") throw badProof();
      requestContextOf(context).source.noteUnauthenticated();
      return {};
    },
    getMetadata(_request, context) {
      requestContextOf(context).source.noteUnauthenticated();
      return metadataOf(deps);
    },
  };
}

function grantToken(deps: OAuthServiceDeps, request: GrantTokenRequest, context: HandlerContext) {
  if (request.grantType === REFRESH_GRANT) return refreshTokens(deps, request, context);
  const { tokenExchange } = deps;
  if (request.grantType !== EXCHANGE_GRANT || !isOffered(tokenExchange)) throw unsupportedGrantType();
  return exchangeToken({ ...deps, tokenExchange }, request, context);
}

/** Returns whether the policies allow the exchange of tokens to any client. */
function isOffered(exchange: TokenExchange | undefined): exchange is TokenExchange {
  return exchange !== undefined && exchange.policies().length > 0;
}

async function refreshTokens(deps: OAuthServiceDeps, request: GrantTokenRequest, context: HandlerContext) {
  if (request.refreshToken === "") throw invalidRequest("refresh_token", "is required");
  if (request.clientId === "") throw invalidRequest("client_id", "is required");
  const resources = resourcesOf(request);
  const parsed = authenticateRefreshTokens(deps.refreshTokens, request.refreshToken);
  if (!parsed.ok) throw refuseCredential(deps, parsed, context, SHARED_ERRORS.invalidGrant);
  const { clientId } = request;
  const proof = provenKey(deps, context, parsed.tokens[0].sid);
  const result = await refresh(deps, parsed.tokens, requestContextOf(context), undefined, {
    clientId,
    proof,
    resources,
  });
  if (!result.ok) {
    if (result.reason === "rate_limited") throw rateLimited(result.retryAfterMs);
    if (result.reason === "invalid_target") throw invalidTarget("resource: is not an audience of the session");
    if (result.reason === "device_cookie_stale" || result.reason === "device_renewal_skipped") {
      throw new Error("no device cookie was presented");
    }
    const error = refuseCredential(deps, result, context, SHARED_ERRORS.invalidGrant);
    // A missing proof does not sign the client out, because another client that has the key may use the same session.
    throw result.reason === "proof_missing" ? badProof() : error;
  }
  const { sid, accessToken, refreshToken, secondsLeft, isKeyBound } = result;
  return {
    accessToken: accessToken.token,
    tokenType: isKeyBound ? "DPoP" : "Bearer",
    expiresIn: expiresIn(deps.store, sid, accessToken, deps.store.now(sid)),
    refreshToken,
    refreshTokenExpiresIn: secondsLeft,
  };
}

/** Returns the session of an authentic token; undefined for any other text. */
function sessionOf({ refreshTokens, accessTokens }: OAuthServiceDeps, text: string): SessionId | undefined {
  const refreshToken = refreshTokens.parse(text);
  if (refreshToken.ok) return refreshToken.token.sid;
  const accessToken = accessTokens.verify(text);
  return accessToken.ok ? accessToken.claims.sid : undefined;
}

/** Returns the other paths at which clients look for the metadata (RFC 8414 section 3.1, OpenID Connect Discovery section 4). */
export function metadataAliases(issuer: string): readonly string[] {
  const path = new URL(issuer).pathname.replace(/\/$/, "");
  const own = path === "" ? [] : [METADATA_PATH + path, path + METADATA_PATH, OPENID_PATH + path, path + OPENID_PATH];
  return [OPENID_PATH, ...own];
}

function metadataOf(deps: OAuthServiceDeps) {
  const { issuer, adminUrl, keyAlgorithms } = deps;
  const exchanges = isOffered(deps.tokenExchange);
  const base = issuer.replace(/\/$/, "");
  return {
    issuer,
    tokenEndpoint: base + TOKEN_PATH,
    revocationEndpoint: base + REVOKE_PATH,
    jwksUri: `${base}/.well-known/jwks.json`,
    grantTypesSupported: [REFRESH_GRANT, ...(exchanges ? [EXCHANGE_GRANT] : [])],
    responseTypesSupported: [],
    tokenEndpointAuthMethodsSupported: ["none", ...(exchanges ? CLIENT_AUTHENTICATION : [])],
    revocationEndpointAuthMethodsSupported: ["none"],
    dpopSigningAlgValuesSupported: [...PROOF_ALGORITHMS],
    subjectTypesSupported: ["public"],
    idTokenSigningAlgValuesSupported: [...new Set(keyAlgorithms())],
    introspectionEndpoint: adminUrl && adminUrl + INTROSPECT_PATH,
    // RFC 8414 section 2 also allows types of access tokens here.
    introspectionEndpointAuthMethodsSupported: [...CLIENT_AUTHENTICATION, "Bearer"],
  };
}
