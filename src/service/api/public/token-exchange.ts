/** The grant of RFC 8693 at the token endpoint: a client exchanges an access token for one that can do less. */
import type { HandlerContext } from "@connectrpc/connect";
import type { GrantTokenRequest } from "../../../../gen/auth/v1/oauth_pb.ts";
import type { AdminAccess } from "../../session/admin/access.ts";
import { invalidRequest } from "../../session/errors.ts";
import type { ExchangePolicy } from "../../session/exchange/exchange.ts";
import { exchange } from "../../session/exchange/exchange.ts";
import type { AccessClaims } from "../../session/ports.ts";
import { basicCredential, identifyClient } from "../admin/credential.ts";
import { rateLimited } from "../errors/connect-errors.ts";
import {
  badProof,
  invalidScope,
  invalidTarget,
  invalidTokenClient,
  refusedToken,
  twoCredentials,
  unauthorizedClient,
} from "../errors/oauth-errors.ts";
import { refuseCredential } from "../refuse-credential.ts";
import { requestContextOf } from "../request-context.ts";
import { provenKey } from "./dpop.ts";
import { expiresIn, resourcesOf } from "./oauth-parameters.ts";
import type { SessionServiceDeps } from "./session-service.ts";

export const EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange";
const ACCESS_TOKEN_TYPE = "urn:ietf:params:oauth:token-type:access_token";
const TYPES: readonly string[] = [ACCESS_TOKEN_TYPE, "urn:ietf:params:oauth:token-type:jwt"];
const SCOPE = "tokens:exchange";

export type TokenExchange = {
  /** The credentials of clients are those of the admin API, with the scope `tokens:exchange`. */
  readonly access: AdminAccess;
  /** Returns the policies in force, one for each client that may exchange tokens. */
  readonly policies: () => readonly ExchangePolicy[];
};

type Deps = SessionServiceDeps & { readonly tokenExchange: TokenExchange };

export async function exchangeToken(deps: Deps, request: GrantTokenRequest, context: HandlerContext) {
  const policy = authenticateClient(deps, request, context);
  const audiences = [...request.audience, ...resourcesOf(request)];
  const issuedTokenType = checkTypes(request);
  const subject = verify(deps, "subject_token", request.subjectToken, context);
  const actor = request.actorToken === "" ? undefined : verify(deps, "actor_token", request.actorToken, context);
  const proof = provenKey(deps, context, subject.sid);
  const result = await exchange(deps, policy, { subject, actor, audiences, proof }, requestContextOf(context));
  if (result.ok) {
    const { accessToken, isKeyBound, now } = result;
    return {
      accessToken: accessToken.token,
      tokenType: isKeyBound ? "DPoP" : "Bearer",
      expiresIn: expiresIn(deps.store, subject.sid, accessToken, now),
      issuedTokenType,
    };
  }
  if (result.reason === "rate_limited") throw rateLimited(result.retryAfterMs);
  if ("parameter" in result) {
    const error = refuseCredential(deps, result, context, refusedToken(result.parameter));
    throw result.reason === "proof_missing" || result.reason === "other_key" ? badProof() : error;
  }
  reportNotAllowed(deps, context);
  throw result.reason === "invalid_target"
    ? invalidTarget("audience, resource: the client may not have a token for these, or has to name some")
    : refusedToken("actor_token");
}

/** Returns the policy of the client that makes the request. @throws the errors of RFC 6749 section 5.2 */
function authenticateClient(deps: Deps, request: GrantTokenRequest, context: HandlerContext): ExchangePolicy {
  const { clientId, clientSecret } = request;
  const basic = basicCredential(context.requestHeader.get("authorization"));
  if (basic !== undefined && clientSecret !== "") throw twoCredentials();
  const credential = basic ?? { id: clientId, secret: clientSecret };
  const identified = identifyClient(deps.tokenExchange.access, credential);
  if (!identified.ok) {
    const reason = credential.secret === "" ? "absent" : identified.reason;
    throw refuseCredential(deps, { reason }, context, invalidTokenClient);
  }
  const { caller } = identified;
  if (clientId !== "" && clientId !== caller.name) throw invalidRequest("client_id", "is not that of the credential");
  requestContextOf(context).admin = caller;
  const policy = deps.tokenExchange.policies().find((each) => each.clientId === caller.name);
  if (policy !== undefined && caller.may(SCOPE)) return policy;
  reportNotAllowed(deps, context);
  throw unauthorizedClient();
}

/** Checks the types of the tokens. @returns the type of the new one */
function checkTypes(request: GrantTokenRequest): string {
  const { subjectToken, subjectTokenType, actorToken, actorTokenType, requestedTokenType } = request;
  if (subjectToken === "") throw invalidRequest("subject_token", "is required");
  if ((actorToken === "") !== (actorTokenType === "")) {
    throw invalidRequest("actor_token_type", "is required with actor_token, and goes with nothing else");
  }
  const types = {
    subject_token_type: subjectTokenType,
    actor_token_type: actorTokenType || ACCESS_TOKEN_TYPE,
    requested_token_type: requestedTokenType || ACCESS_TOKEN_TYPE,
  };
  for (const [name, type] of Object.entries(types)) {
    if (!TYPES.includes(type)) throw invalidRequest(name, `must be one of ${TYPES.join(", ")}`);
  }
  if (request.scope !== "") throw invalidScope();
  return types.requested_token_type;
}

function verify(deps: Deps, parameter: string, text: string, context: HandlerContext): AccessClaims {
  const verified = deps.accessTokens.verify(text);
  if (verified.ok) return verified.claims;
  const sid = "claims" in verified ? verified.claims.sid : undefined;
  throw refuseCredential(deps, { reason: verified.reason, sid }, context, refusedToken(parameter));
}

/** Reports that an authentic client asks for more than its policy allows. */
function reportNotAllowed({ audit }: Deps, context: HandlerContext): void {
  audit({ event: "authz_failed", operation: context.method.name, scope: SCOPE }, requestContextOf(context));
}
