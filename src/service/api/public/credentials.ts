/** Verifies the credential of a call before its message is read. Whether the session is live is decided later, by the store. */
import type { HandlerContext } from "@connectrpc/connect";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { bearerToken, dpopToken } from "../../../platform/net/bearer-token.ts";
import { authenticate, authenticateLogout, type PresentedAccessToken } from "../../session/authenticate.ts";
import type { Limited, Refused } from "../../session/errors.ts";
import type { AccessTokens, PeekableRateLimit } from "../../session/ports.ts";
import { authenticateRefreshTokens } from "../../session/rotation/presented-cookie.ts";
import { peekRefreshLimit } from "../../session/rotation/refresh.ts";
import { rateLimited, SHARED_ERRORS } from "../errors/connect-errors.ts";
import type { Gate } from "../gates/gates.ts";
import type { ReportRefusal } from "../gates/observed-refusals.ts";
import { requestContextOf } from "../request-context.ts";
import type { DeviceCookie } from "./device-cookie.ts";
import { PROOF } from "./device-headers.ts";
import { DPOP, type DpopDeps, provenKey } from "./dpop.ts";
import { type RefusalDeps, refusalOf } from "./refusal.ts";

export type CredentialDeps = RefusalDeps &
  DpopDeps & {
    readonly accessTokens: Pick<AccessTokens, "verify">;
    /** Access tokens may act on sessions if their `aud` contains one of these. */
    readonly audiences: ReadonlySet<string>;
    readonly device: { readonly offers: boolean; readonly cookie: Pick<DeviceCookie, "read"> };
    /** The rate limit of refreshes by session. */
    readonly refreshLimit: Pick<PeekableRateLimit, "peek">;
    /** Finds what a refused call presents of another system, whose sessions are migrated; undefined if none are. */
    readonly migration?:
      | {
          find(refused: Refused, context: HandlerContext): Other | undefined;
          expireAfter(refused: Refused, context: HandlerContext): void;
        }
      | undefined;
  };

/** A credential of another system. */
type Other = { readonly ok: true };

type Rpc = keyof typeof SessionService.method;
type Check = (
  deps: CredentialDeps,
  headers: Headers,
  context: HandlerContext,
) => { readonly ok: true } | Refused | Limited;

const byCookie = ({ refreshTokens, cookie }: CredentialDeps, headers: Headers) =>
  authenticateRefreshTokens(refreshTokens, cookie.read(headers.get("cookie")));

function byAccessToken(deps: CredentialDeps, headers: Headers, context: HandlerContext) {
  return authenticate(deps, accessTokenOf(deps, headers, context));
}

/** Returns the access token of a request, and with the scheme DPoP (RFC 9449 section 7.1) the key that it proves. */
function accessTokenOf(deps: CredentialDeps, headers: Headers, context: HandlerContext): PresentedAccessToken {
  const authorization = headers.get("authorization");
  const token = dpopToken(authorization);
  if (token === undefined) return { token: bearerToken(authorization) };
  const verified = deps.accessTokens.verify(token);
  const proof = "claims" in verified ? provenKey(deps, context, verified.claims.sid, token) : undefined;
  return { token, needsProof: true, ...(proof && { proof }) };
}

/** How each RPC is authenticated. If one is missing, this does not compile. */
const CHECKS = {
  refresh(deps: CredentialDeps, headers: Headers, context: HandlerContext) {
    const cookie = deps.cookie.read(headers.get("cookie"));
    const checked = authenticateRefreshTokens(deps.refreshTokens, cookie);
    if (!checked.ok) return checked;
    const presentsDevice = () =>
      headers.get(DPOP) !== null || deps.device.cookie.read(headers.get("cookie")).length > 0;
    const limited = peekRefreshLimit(deps, checked.tokens, presentsDevice, requestContextOf(context));
    return limited ?? { ...checked, hasSeveral: typeof cookie === "object" };
  },
  logoutByCookie: byCookie,
  registerDevice(deps: CredentialDeps, headers: Headers) {
    // A proof is accepted even if this instance offers no device binding, because another instance may have offered it. A request without
    // a proof would get a challenge, which is an offer, so it is refused.
    if (!deps.device.offers && !headers.get(PROOF)) throw SHARED_ERRORS.notFound;
    return byCookie(deps, headers);
  },
  /**
   * A request without a refresh token passes, so that the handler can respond that there is nothing to renew. The browser then deletes its
   * device key, which it would keep after a refusal.
   */
  renewDevice: (deps: CredentialDeps, headers: Headers) => ({ ok: true, presented: byCookie(deps, headers) }) as const,
  logout(deps: CredentialDeps, headers: Headers, context: HandlerContext) {
    return authenticateLogout(deps, accessTokenOf(deps, headers, context), deps.cookie.read(headers.get("cookie")));
  },
  listSessions: byAccessToken,
  revokeSession: byAccessToken,
  revokeOtherSessions: byAccessToken,
} as const satisfies { readonly [rpc in Rpc]: Check };

type Credential<R extends Rpc> = Extract<ReturnType<(typeof CHECKS)[R]>, { readonly ok: true }>;

/** Returns a gate that verifies credentials. @param report reports calls that are refused */
export function requireCredential(deps: CredentialDeps, report: ReportRefusal): Gate {
  return (context) => {
    const { method, requestHeader } = context;
    // Only SessionService is checked here. OAuthService takes its credential from the body; health and reflection have none.
    if (method.parent.typeName !== SessionService.typeName) return undefined;
    const checked: ReturnType<Check> = CHECKS[method.localName as Rpc](deps, requestHeader, context);
    if (checked.ok) {
      requestContextOf(context).credential = checked;
      return undefined;
    }
    if (checked.reason === "rate_limited") return report(context, rateLimited(checked.retryAfterMs));
    const other = deps.migration?.find(checked, context);
    if (other === undefined) {
      deps.migration?.expireAfter(checked, context);
      return report(context, refusalOf(deps, checked, context));
    }
    requestContextOf(context).credential = other;
    return undefined;
  };
}

/** Returns the verified credential of a call. @throws Error for a call that did not pass `requireCredential` */
export function credentialOf<R extends Rpc>(context: Pick<HandlerContext, "values">, _rpc: R): Credential<R> {
  const { credential } = requestContextOf(context);
  if (credential === undefined) throw new Error("the call has not been authenticated");
  return credential as Credential<R>;
}
