/** Header fields of every response, whatever it is a response to. */

import type { Handler, Request, Response } from "./exchange.ts";
import { forwardedScheme } from "./request-source.ts";

/** What a response to this request carries. Constant lists: this is called for each request. */
export type SecurityHeaders = (request: Request) => readonly (readonly [name: string, value: string])[];

const ALWAYS = [
  ["x-content-type-options", "nosniff"],
  ["cross-origin-resource-policy", "same-origin"],
] as const;

type Options = {
  /** Whether the listener itself speaks TLS. */
  readonly tls: boolean;
  readonly trustedProxies: number;
  /** How long browsers are to use https alone, ms; 0: as they like. */
  readonly hstsMaxAgeMs: number;
};

/** `Strict-Transport-Security` only where the client came by https (RFC 6797 section 7.2). */
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

/** Sets them before the handler runs. Costs more than to have them among the other fields of a response. */
export function withSecurityHeaders(headersFor: SecurityHeaders, next: Handler): Handler {
  return (request: Request, response: Response) => {
    for (const [name, value] of headersFor(request)) response.setHeader(name, value);
    next(request, response);
  };
}
