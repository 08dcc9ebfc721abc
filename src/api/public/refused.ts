/** What a caller of the public API gets whose credential is refused. */
import type { HandlerContext } from "@connectrpc/connect";
import type { Refused } from "../../session/errors.ts";
import type { RefreshTokens } from "../../session/ports.ts";
import { SHARED_ERRORS } from "../errors/connect-errors.ts";
import { type RefusalDeps, refusal } from "../refusal.ts";
import { requestContextOf } from "../request-context.ts";
import type { RefreshCookie } from "./cookie.ts";

export type RefusedDeps = RefusalDeps & {
  readonly cookie: RefreshCookie;
  readonly refreshTokens: Pick<RefreshTokens, "parse">;
};

/** Operations without a bearer credential. `RegisterDevice` is refused apart, and `RenewDevice` never is. */
const BY_COOKIE = new Set(["Refresh", "LogoutByCookie"]);

/** The reason goes to the audit; the caller gets one error for all of them. */
export async function refuse(deps: RefusedDeps, { reason, sid }: Refused, context: HandlerContext): Promise<never> {
  if (reason === "ambiguous") expireElsewhere(deps, context);
  const operation = context.method.name;
  const event = { event: "authn_failed", operation, reason, sid } as const;
  const { noCredential, invalidToken } = SHARED_ERRORS;
  if (operation === "RegisterDevice") {
    // Never 429: it would end what the browser has of the session.
    deps.audit(event, requestContextOf(context));
    throw noCredential;
  }
  throw refusal(deps, event, context, reason === "absent" || BY_COOKIE.has(operation) ? noCredential : invalidToken);
}

/**
 * Removes the cookies that a changed `COOKIE_DOMAIN` or `COOKIE_PATH` has left, where a request brings several. Not if one of them is no
 * token of ours: it may belong to another service below the same domain.
 */
export function expireElsewhere({ cookie, refreshTokens }: RefusedDeps, context: HandlerContext): void {
  const presented = cookie.read(context.requestHeader.get("cookie"));
  if (typeof presented !== "object" || presented.some((value) => !refreshTokens.parse(value).ok)) return;
  const url = URL.parse(requestContextOf(context).source.origin() ?? "");
  if (url !== null) setCookies(context, cookie.expireElsewhere(url.hostname));
}

export function setCookies({ responseHeader }: HandlerContext, values: readonly string[]): void {
  for (const value of values) responseHeader.append("set-cookie", value);
}
