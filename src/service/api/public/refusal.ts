/** Refuses callers of the public API whose credential is not accepted. */
import type { ConnectError, HandlerContext } from "@connectrpc/connect";
import { dpopToken } from "../../../platform/net/bearer-token.ts";
import type { FailureDeps } from "../../session/attempts.ts";
import type { Refused } from "../../session/errors.ts";
import type { RefreshTokens } from "../../session/ports.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";
import { refuseCredential } from "../refuse-credential.ts";
import { requestContextOf } from "../request-context.ts";
import type { RefreshCookie } from "./cookie.ts";
import { cookiesElsewhere, type SentCookies } from "./removed-cookies.ts";

export type RefusalDeps = FailureDeps & {
  readonly cookie: RefreshCookie;
  readonly refreshTokens: Pick<RefreshTokens, "parse">;
};

/** The operations that a cookie authenticates, except for those on device keys: these have errors of their own. */
const BY_COOKIE = new Set(["Refresh", "LogoutByCookie"]);

/**
 * Reports a refused call and its reason to the audit. Returns the error for the caller, which must not reveal the reason. Only a stale
 * token is named, because its client must refresh.
 */
export function refusalOf(deps: RefusalDeps, refused: Refused, context: HandlerContext): ConnectError {
  const { reason, sid } = refused;
  if (reason === "ambiguous") expireElsewhere(deps, context);
  const operation = context.method.name;
  const { noCredential, invalidToken, invalidBoundToken, staleToken, staleBoundToken } = SHARED_ERRORS;
  if (operation === "RegisterDevice") {
    // Failed registrations of a device key never get 429, because on 429 the browser would give up the device binding.
    deps.audit({ event: "authn_failed", operation, reason, sid }, requestContextOf(context));
    return noCredential;
  }
  if (reason === "absent" || BY_COOKIE.has(operation)) return refuseCredential(deps, refused, context, noCredential);
  const isBound = dpopToken(context.requestHeader.get("authorization")) !== undefined;
  const [bound, unbound] = reason === "stale" ? [staleBoundToken, staleToken] : [invalidBoundToken, invalidToken];
  return refuseCredential(deps, refused, context, isBound ? bound : unbound);
}

export function expireElsewhere(deps: RefusalDeps, context: HandlerContext): void {
  setCookies(context, cookiesElsewhere(deps, sentCookies(context)));
}

export const sentCookies = (context: HandlerContext): SentCookies => ({
  header: context.requestHeader.get("cookie"),
  origin: requestContextOf(context).source.origin(),
});

export function setCookies({ responseHeader }: HandlerContext, values: readonly string[]): void {
  for (const value of values) responseHeader.append("set-cookie", value);
}
