/**
 * The endpoints for gateways that call over HTTP. `/check`: `forward_auth` of Caddy, `forwardAuth` of Traefik, HAProxy's Lua, and Envoy's
 * `http_service`, which appends the path of the request. `/auth-request`: `auth_request` of nginx, which knows no other statuses than 2xx,
 * 401 and 403, and passes no header on by itself. They send the headers of the request, with any method, and no body. The headers
 * `X-Forwarded-Method`, `-Host` and `-Uri` describe the request.
 */
import { type Handler, type HttpRequest, respond } from "../../platform/listener/listener.ts";
import { isSafe } from "../../server/same-origin.ts";
import type { AuthCheck, AuthDecision } from "./check.ts";
import type { Outcomes } from "./outcomes.ts";

const NO_STORE = { "cache-control": "no-store" };

export const isCheck = (url: string | undefined): boolean =>
  url !== undefined && /^\/(?:check|auth-request)(?:[/?]|$)/.test(url);

export function createHttpEndpoint(check: AuthCheck, outcomes: Outcomes, onBug: (error: unknown) => void): Handler {
  return (request, response) => {
    const headerOf = (name: string) => {
      if (name === "authorization") return authorizationOf(request);
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(", ") : value;
    };
    const target = {
      method: headerOf("x-forwarded-method") ?? changingMethodOf(request),
      host: headerOf("x-forwarded-host"),
      path: headerOf("x-forwarded-uri"),
      gateway: request.socket.remoteAddress,
    };
    const isNginx = request.url?.startsWith("/auth-request") === true;
    const decided = check(headerOf, target).then((decision) => {
      outcomes.count(decision.ok ? "accepted" : decision.reason);
      if (response.destroyed) return;
      const cookies = cookieHeaders(decision, isNginx);
      if (decision.ok) return respond(response, 200, { ...decision.identity, ...cookies, ...NO_STORE });
      const { status, headers, reason, body } = decision;
      const shown = isNginx && status === 302 ? 401 : status;
      respond(response, shown, { ...headers, ...cookies, "x-auth-reason": reason, ...NO_STORE }, body);
    });
    decided.catch((error: unknown) => {
      onBug(error);
      response.destroy();
    });
  };
}

/**
 * Returns the cookies for the browser as `Set-Cookie`. Most gateways can copy only headers with one value, so each cookie has also a header
 * of its own, where the gateway does not pass the response on: a script could read that one.
 */
function cookieHeaders(
  { ok, cookies = [] }: AuthDecision,
  isNginx: boolean,
): Readonly<Record<string, string | string[]>> {
  if (cookies.length === 0) return {};
  const numbered = ok || isNginx ? cookies.map((cookie, at) => [`x-auth-set-cookie-${at + 1}`, cookie]) : [];
  // No cache may keep a response that sets a cookie, even if the application allows it.
  return { "set-cookie": [...cookies], ...Object.fromEntries(numbered), "x-auth-cache-control": "no-store" };
}

/**
 * Returns the method of the check itself, if it is not safe; otherwise undefined. A gateway that does not report the method of the request,
 * as Envoy's `http_service`, asks by the same method. Others ask by GET.
 */
function changingMethodOf({ method = "GET" }: HttpRequest): string | undefined {
  return isSafe({ method }) ? undefined : method;
}

/**
 * Returns the header `Authorization`. Node keeps only the first of several, but the upstream may read another. So all are joined with
 * commas, which no token contains, and are refused.
 */
function authorizationOf({ headers, rawHeaders }: HttpRequest): string | undefined {
  if (headers.authorization === undefined) return undefined;
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "authorization");
  return values.join(", ");
}
