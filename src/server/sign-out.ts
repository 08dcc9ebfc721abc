/** Ends the session of a browser at the service. */
import { distinctValues } from "./cookies.ts";
import { call, isRefused } from "./refresh.ts";

type SignOutDeps = Parameters<typeof call>[0] & { readonly accessCookie: string; readonly refreshCookie: string };

/** `absent`: the browser had no session. `unavailable`: the session may continue. `headers` are those of the service's response. */
type SignedOut = { readonly state: "ended" | "absent" | "unavailable"; readonly headers: Headers };

const LOGOUT = "/v1/auth/logout";

export function createSignOut({ accessCookie, refreshCookie, ...deps }: SignOutDeps) {
  return async function signOut(headers: Headers): Promise<SignedOut> {
    const byCookie = await call(deps, LOGOUT, headers);
    if (!byCookie || !isRefused(byCookie.body)) return resultOf(byCookie);
    // The service has found no session by the refresh token. That of the access token may still be live, so it ends as well.
    const [token, ...others] = distinctValues(headers.get("cookie"), accessCookie);
    if (token !== undefined && others.length === 0) {
      const bearer = new Headers(headers);
      bearer.set("authorization", `Bearer ${token}`);
      const byToken = await call(deps, LOGOUT, bearer, "DELETE");
      if (!byToken || !isRefused(byToken.body)) return resultOf(byToken);
    }
    // With the cookies of two users nothing has ended. The response removes one of them, so that a repetition succeeds.
    const isAmbiguous = distinctValues(headers.get("cookie"), refreshCookie).length > 1;
    return { state: isAmbiguous ? "unavailable" : "absent", headers: byCookie.response.headers };
  };
}

/** An outage, or a response of another program in place of the service, ends nothing and sets no cookies. */
function resultOf(result: Awaited<ReturnType<typeof call>>): SignedOut {
  return result?.response.ok && result.body?.data
    ? { state: "ended", headers: result.response.headers }
    : { state: "unavailable", headers: new Headers() };
}
