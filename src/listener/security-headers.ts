import type { Handler, Request, Response } from "./exchange.ts";
import { forwardedScheme } from "./request-source.ts";

/** Returns the headers of the response to this request. The lists are constant, because this function runs for each request. */
export type SecurityHeaders = (request: Request) => readonly (readonly [name: string, value: string])[];

const ALWAYS = [
  ["x-content-type-options", "nosniff"],
  ["cross-origin-resource-policy", "same-origin"],
] as const;

type Options = {
  /** Whether the listener itself speaks TLS. */
  readonly tls: boolean;
  readonly trustedProxies: number;
  /** How long browsers must use only https, in ms; with 0, `Strict-Transport-Security` is not sent. */
  readonly hstsMaxAgeMs: number;
};

/** Creates the function that returns the headers. `Strict-Transport-Security` is sent only to clients that used https (RFC 6797, 7.2). */
export function securityHeaders({ tls, trustedProxies, hstsMaxAgeMs }: Options): SecurityHeaders {
  if (hstsMaxAgeMs === 0) return () => ALWAYS;
  const hsts = ["strict-transport-security", `max-age=${Math.floor(hstsMaxAgeMs / 1000)}`] as const;
  const secure = [...ALWAYS, hsts];
  const direct = tls ? secure : ALWAYS;
  if (trustedProxies === 0) return () => direct;
  return (request) => {
    const scheme = forwardedScheme(request, trustedProxies);
    return scheme === undefined ? direct : scheme === "https" ? secure : ALWAYS;
  };
}

/**
 * Sets the headers before the handler runs. That costs more than sending them together with the other headers of a response, but works
 * with any handler.
 */
export function withSecurityHeaders(headersFor: SecurityHeaders, next: Handler): Handler {
  return (request: Request, response: Response) => {
    for (const [name, value] of headersFor(request)) response.setHeader(name, value);
    next(request, response);
  };
}
