/** Ends the session of a browser at the service. */
import { distinctValues, fromBase64url, presentedBy } from "./cookies.ts";
import { call, isRefused } from "./refresh.ts";

type SignOutDeps = Parameters<typeof call>[0] & { readonly accessCookie: string; readonly refreshCookie: string };

/**
 * `absent`: the browser had no session. `other`: it has another one than that which the page shows. `unavailable`: the session may
 * continue. `headers` are those of the service's response.
 */
type SignedOut = { readonly state: "ended" | "absent" | "other" | "unavailable"; readonly headers: Headers };

const LOGOUT = "/v1/auth/logout";

export function createSignOut({ accessCookie, refreshCookie, ...deps }: SignOutDeps) {
  /** @param shown the session that the page shows, which alone may end; empty for any */
  return async function signOut(headers: Headers, shown = ""): Promise<SignedOut> {
    const query = shown && `?${new URLSearchParams({ session_id: shown })}`;
    const byCookie = await call(deps, LOGOUT + query, headers);
    if (!byCookie || !isRefused(byCookie.body)) return resultOf(byCookie);
    // The service has found no session by the refresh token. That of the access token may still be live, so it ends as well.
    const [token, ...others] = distinctValues(headers.get("cookie"), accessCookie);
    const isShown = shown === "" || (token !== undefined && sidIn(token) === shown);
    if (token !== undefined && others.length === 0 && isShown) {
      const bearer = new Headers(headers);
      bearer.set("authorization", `Bearer ${token}`);
      const byToken = await call(deps, LOGOUT, bearer, "DELETE");
      if (!byToken || !isRefused(byToken.body)) return resultOf(byToken);
    }
    // With the cookies of two users nothing has ended. The response removes one of them, so that a repetition succeeds.
    const isAmbiguous = distinctValues(headers.get("cookie"), refreshCookie).length > 1;
    const { headers: own } = byCookie.response;
    if (isAmbiguous) return { state: "unavailable", headers: own };
    // Without a refresh token, the access token says whose session the browser has.
    const isOwn = presentedBy(headers, refreshCookie)?.isOf(shown) ?? (token === undefined || isShown);
    return { state: shown === "" || isOwn ? "absent" : "other", headers: own };
  };
}

/** Returns the session id in an access token. Nothing proves that the token is authentic: the service verifies it. */
function sidIn(accessToken: string): unknown {
  try {
    const [, payload = ""] = accessToken.split(".");
    return JSON.parse(fromBase64url(payload)).sid;
  } catch {
    return undefined;
  }
}

/** An outage, or a response of another program in place of the service, ends nothing and sets no cookies. */
function resultOf(result: Awaited<ReturnType<typeof call>>): SignedOut {
  return result?.response.ok && result.body?.data
    ? { state: "ended", headers: result.response.headers }
    : { state: "unavailable", headers: new Headers() };
}
