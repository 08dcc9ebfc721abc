/** Decides about requests of browsers. Cookies that expire are renewed, and pages lead to the sign-in if there is no session. */
import { refusalOf } from "../../server/refusals.ts";
import { READ_WITHOUT_DEVICES } from "../../server/request-headers.ts";
import type { ServerSessions } from "../../server/sessions.ts";
import { type AuthCheck, type AuthDecision, type AuthRefusal, type HeaderOf, identityOf } from "./check.ts";
import type { SignInRedirect } from "./sign-in.ts";

type Deps = {
  /** The server kit: one refresh for all requests with the same token. */
  readonly sessions: Pick<ServerSessions, "authenticate">;
  /** Leads to the sign-in; undefined if requests without a session get 401 alone. */
  readonly signIn?: SignInRedirect | undefined;
};

export function createBrowserCheck({ sessions, signIn }: Deps): AuthCheck {
  return async (headerOf, target): Promise<AuthDecision> => {
    const { method = "GET", path = "/" } = target;
    const request = { method, url: path, headers: headersOf(headerOf) };
    const { user, setCookies: cookies } = await sessions.authenticate(request, target.gateway);
    if (user.state === "active") return { ok: true, identity: identityOf(user.claims), cookies };
    if (user.state === "unavailable") return refuse(503, "unavailable", { "retry-after": "1" });
    const led = signIn?.(headerOf, target);
    if (led !== undefined) return { ...led, cookies: [...cookies, ...led.cookies] };
    const reason = headerOf("cookie") === undefined ? "absent" : "ended";
    return { ...refuse(401, reason, { "www-authenticate": "Bearer" }), cookies };
  };
}

function refuse(status: 401 | 503, reason: AuthRefusal["reason"], headers: AuthRefusal["headers"]): AuthRefusal {
  const { code, message } = refusalOf(status);
  const body = JSON.stringify({ error: { code, message } });
  return { ok: false, status, reason, headers: { "content-type": "application/json", ...headers }, body };
}

/**
 * Returns the headers for the server kit, without those of device binding: no gateway passes its responses on. A request for a part of a
 * page counts as one for the page, because it may be the first request after a pause, and must then cause a refresh.
 */
function headersOf(headerOf: HeaderOf): Headers {
  const headers = new Headers();
  for (const name of READ_WITHOUT_DEVICES) {
    const value = headerOf(name);
    // Over gRPC, a header may have characters that no header of HTTP has.
    if (value !== undefined && !/[^\t\x20-\xff]/.test(value)) headers.set(name, value);
  }
  if (headers.get("sec-fetch-site") === "same-origin") headers.delete("sec-fetch-dest");
  return headers;
}
