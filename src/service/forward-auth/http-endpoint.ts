/**
 * The endpoint for gateways that call over HTTP: `auth_request` of nginx, `forward_auth` of Caddy, `forwardAuth` of Traefik, HAProxy's
 * Lua, and Envoy's `http_service`, which appends the path of the request. They send the headers of the request, with any method, and no
 * body. The headers `X-Forwarded-Method`, `-Host` and `-Uri` describe the request; only tokens that are bound to a key need them.
 */
import { type Handler, type Request, respond } from "../../platform/listener/listener.ts";
import type { Check } from "./check.ts";
import type { Outcomes } from "./outcomes.ts";

const NO_STORE = { "cache-control": "no-store" };

export const isCheck = (url: string | undefined): boolean => url !== undefined && /^\/check(?:[/?]|$)/.test(url);

export function createHttpEndpoint(check: Check, outcomes: Outcomes, onBug: (error: unknown) => void): Handler {
  return (request, response) => {
    const headerOf = (name: string) => {
      if (name === "authorization") return authorizationOf(request);
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(", ") : value;
    };
    const target = {
      method: headerOf("x-forwarded-method"),
      host: headerOf("x-forwarded-host"),
      path: headerOf("x-forwarded-uri"),
    };
    const decided = check(headerOf, target).then((decision) => {
      outcomes.count(decision.ok ? "accepted" : decision.reason);
      if (response.destroyed) return;
      if (decision.ok) return respond(response, 200, { ...decision.identity, ...NO_STORE });
      const { status, headers, reason, body } = decision;
      respond(response, status, { ...headers, "x-auth-reason": reason, ...NO_STORE }, body);
    });
    decided.catch((error: unknown) => {
      onBug(error);
      response.destroy();
    });
  };
}

/**
 * Returns the header `Authorization`. Node keeps only the first of several, but the upstream may read another. So all are joined with
 * commas, which no token contains, and are refused.
 */
function authorizationOf({ headers, rawHeaders }: Request): string | undefined {
  if (headers.authorization === undefined) return undefined;
  const values = rawHeaders.filter((_, at) => at % 2 === 1 && rawHeaders[at - 1]?.toLowerCase() === "authorization");
  return values.join(", ");
}
