import type { ProxyTrust } from "../net/proxy-trust.ts";
import type { Handler, Request, Response } from "./exchange.ts";
import { forwardedScheme } from "./request-source.ts";

/** Returns the headers of the response to this request. The lists are constant, because this function runs for each request. */
export type SecurityHeaders = (request: Request) => readonly (readonly [name: string, value: string])[];

const ALWAYS = [
  ["x-content-type-options", "nosniff"],
  ["cross-origin-resource-policy", "same-origin"],
] as const;

type Options = {
  readonly tls: boolean;
  readonly trust: ProxyTrust;
  /** How long browsers must use only https, in ms; with 0, `Strict-Transport-Security` is not sent. */
  readonly hstsMaxAgeMs: number;
};

/** `Strict-Transport-Security` is sent only to clients that used https (RFC 6797 section 7.2). */
export function securityHeaders({ tls, trust, hstsMaxAgeMs }: Options): SecurityHeaders {
  if (hstsMaxAgeMs === 0) return () => ALWAYS;
  const hsts = ["strict-transport-security", `max-age=${Math.floor(hstsMaxAgeMs / 1000)}`] as const;
  const secure = [...ALWAYS, hsts];
  const direct = tls ? secure : ALWAYS;
  if (trust === 0) return () => direct;
  return (request) => {
    const scheme = forwardedScheme(request, trust);
    return scheme === undefined ? direct : scheme === "https" ? secure : ALWAYS;
  };
}

/** Setting headers before the handler runs costs more than sending them with the others, but works with any handler. */
export function withSecurityHeaders(headersFor: SecurityHeaders, next: Handler): Handler {
  return (request: Request, response: Response) => {
    for (const [name, value] of headersFor(request)) response.setHeader(name, value);
    next(request, response);
  };
}

/** Forbids caches to keep responses, including errors: they contain credentials and short-lived facts (RFC 6749 section 5.1). */
export function withNoStore(next: Handler): Handler {
  return (request, response) => {
    response.setHeader("cache-control", "no-store");
    next(request, response);
  };
}
