/** Finds what a response must remove from the browser: what other scopes hold, what a logout leaves, and cookies of another system. */
import type { CookieSettings } from "../../config/cookie.ts";
import type { RefreshTokens } from "../../session/ports.ts";
import type { RefreshCookie } from "./cookie.ts";
import { expireOld, scopesOfHost } from "./cookie-scopes.ts";
import type { DeviceCookie } from "./device-cookie.ts";
import { findOldCookies } from "./old-cookies.ts";

/** What the browser has sent, and where to. */
export type SentCookies = { readonly header: string | null; readonly origin: string | null };

type ElsewhereDeps = {
  readonly cookie: Pick<RefreshCookie, "read" | "expireElsewhere">;
  readonly refreshTokens: Pick<RefreshTokens, "parse">;
};

/**
 * Returns the `Set-Cookie` values that remove refresh tokens which were set before a change of `COOKIE_DOMAIN` or `COOKIE_PATH`, if the
 * browser has sent several. If one of the values is not a token of this service, no cookie is removed, because that one may belong to
 * another service below the same domain.
 */
export function cookiesElsewhere(
  { cookie, refreshTokens }: ElsewhereDeps,
  { header, origin }: SentCookies,
): readonly string[] {
  const presented = cookie.read(header);
  if (typeof presented !== "object" || presented.some((value) => !refreshTokens.parse(value).ok)) return [];
  const url = URL.parse(origin ?? "");
  return url === null ? [] : cookie.expireElsewhere(url.hostname);
}

export type LogoutDeps = ElsewhereDeps & {
  readonly cookie: Pick<RefreshCookie, "clear">;
  readonly device: { readonly offers: boolean; readonly cookie: Pick<DeviceCookie, "read" | "clear"> };
};

/** Returns the `Set-Cookie` values of the response to a logout. */
export function cookiesAfterLogout(deps: LogoutDeps, sent: SentCookies): readonly string[] {
  const { cookie, device } = deps;
  const usesDevice = device.offers || device.cookie.read(sent.header).length > 0;
  return [...cookie.clear(), ...(usesDevice ? device.cookie.clear() : []), ...cookiesElsewhere(deps, sent)];
}

/**
 * Returns the `Set-Cookie` values that remove the cookies of another system, whose sessions are migrated, from all domains that may have
 * set them. If they stayed after a logout, the next refresh would sign the user in again.
 */
export function oldCookiesAfterLogout(
  names: readonly string[],
  settings: CookieSettings,
  { header, origin }: SentCookies,
): readonly string[] {
  const old = findOldCookies(header, names);
  const url = URL.parse(origin ?? "");
  if (old === undefined || url === null) return [];
  const scopes = scopesOfHost(url.hostname).filter(({ path }) => path === "/");
  return old.names.flatMap((name) => scopes.flatMap((scope) => expireOld({ ...settings, name }, scope)));
}
