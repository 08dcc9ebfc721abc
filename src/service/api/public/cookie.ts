/** Reads, sets and clears the refresh token cookie (RFC 6265bis), and with it the hint cookie and the access token cookie. */

import { cookieValues } from "../../../platform/net/cookie-values.ts";
import { type CookieScope, type CookieSettings, cookiePath, plainName } from "../../config/cookie.ts";
import type { IssuedTokens } from "../../session/issued.ts";
import type { AccessToken } from "../../session/ports.ts";
import type { PresentedCookie } from "../../session/rotation/presented-cookie.ts";
import { cookieAttributes, expireIn, expiry, scopesOfHost } from "./cookie-scopes.ts";

export type RefreshCookie = {
  /** Returns the refresh tokens of a `Cookie` header. */
  read(header: string | null): PresentedCookie;
  /** Returns the `Set-Cookie` values, the refresh token's first. */
  set(issued: IssuedTokens): readonly [string, ...string[]];
  readonly setsAccess: boolean;
  /** Returns the size of the access cookie with its name, its value and its attributes, in bytes. */
  accessBytes(access: AccessToken): number;
  /** Returns the `Set-Cookie` values that remove the cookies. */
  clear(): readonly string[];
  /** Returns the `Set-Cookie` values that remove cookies with this name from all scopes of a host except the current scope. */
  expireElsewhere(host: string): readonly string[];
};

/** Returns the value of a cookie, or a list of several different values. An empty value is ignored if there is another. */
function distinct(values: readonly string[]): PresentedCookie {
  if (values.length < 2) return values[0];
  const different = [...new Set(values)].filter((value) => value !== "");
  return different.length < 2 ? (different[0] ?? "") : different;
}

/**
 * Until `migrateUntilMs` the plain name is read beside a prefixed one (`__Secure-refresh_token`), so that sessions survive the change of
 * the name. Later it is ignored, because a sibling domain can set such a cookie. @param clock ms since the epoch
 */
export function createRefreshCookie(settings: CookieSettings, clock: () => number): RefreshCookie {
  const { name, migrateUntilMs, hintName, accessName, previousScopes } = settings;
  const plain = { ...settings, name: plainName(settings.name) };
  const migrating = () => migrateUntilMs !== undefined && clock() < migrateUntilMs;
  const attributes = cookieAttributes(settings);
  // The hint cookie and the access token cookie have Path=/, because pages of every path are rendered with them. Scripts may read the hint
  // cookie: it contains only a session id, which is not a credential, and a tab compares that id with the id in its token.
  const attributesAtRoot = cookieAttributes({ ...settings, path: "/" });
  const hintAttributes = attributesAtRoot.replace("; HttpOnly", "");
  const withMaxAge = (cookie: string, maxAge: number | undefined) =>
    maxAge === undefined ? cookie : `${cookie}; Max-Age=${maxAge}`;
  const hintCookie = (sid: string, maxAge: number | undefined) =>
    hintName === undefined ? [] : [withMaxAge(`${hintName}=${sid}; ${hintAttributes}`, maxAge)];
  const accessCookie = (token: string, maxAge: number | undefined) =>
    accessName === undefined ? [] : [withMaxAge(`${accessName}=${token}; ${attributesAtRoot}`, maxAge)];
  const lifeOf = ({ expiresAt }: AccessToken) => Math.max(0, Math.floor((expiresAt - clock()) / 1000));
  const companionNames = [hintName, accessName].filter((one) => one !== undefined);
  const hasMore = companionNames.length > 0 || previousScopes.length > 0;
  const elsewhere = (scopes: CookieSettings["previousScopes"], hasBoth?: (scope: CookieScope) => boolean) => [
    ...expireIn(scopes, settings, hasBoth),
    ...(migrating() ? expireIn(scopes, plain, hasBoth) : []),
    ...companionNames.flatMap((companion) =>
      expireIn(
        scopes.map(({ domain }) => ({ domain, path: "/" })),
        { ...settings, name: companion, path: "/" },
        // They are short-lived or say little, and many scopes would make the response larger than proxies allow.
        hasBoth && (() => false),
      ),
    ),
  ];
  const previous = previousScopes.length === 0 ? () => [] : () => elsewhere(previousScopes);
  return {
    read(header) {
      if (header === null) return undefined;
      const values = cookieValues(header, name);
      if (values.length === 1) return values[0];
      return distinct(values) ?? (migrating() ? distinct(cookieValues(header, plain.name)) : undefined);
    },
    set({ sid, accessToken, refreshToken, secondsLeft, isPersistent }) {
      const refreshCookie = `${name}=${refreshToken}; ${attributes}${isPersistent ? `; Max-Age=${secondsLeft}` : ""}`;
      if (!hasMore) return [refreshCookie];
      const [maxAge, accessMaxAge] = isPersistent ? [secondsLeft, lifeOf(accessToken)] : [];
      return [
        refreshCookie,
        ...hintCookie(sid, maxAge),
        ...accessCookie(accessToken.token, accessMaxAge),
        ...previous(),
      ];
    },
    setsAccess: accessName !== undefined,
    accessBytes: (access) => accessCookie(access.token, lifeOf(access)).join("").length,
    clear() {
      const cleared = [expiry(settings)];
      // The cookie with the unprefixed name was set with other attributes than a prefix requires, and is removed with those attributes.
      if (migrating()) cleared.push(expiry(plain));
      return [...cleared, ...hintCookie("", 0), ...accessCookie("", 0), ...previous()];
    },
    // Cookies from before they were partitioned are removed from the current path alone, or proxies would refuse so many headers.
    expireElsewhere: (host) => elsewhere(scopesOfHost(host), ({ path }) => path === cookiePath(settings)),
  };
}
