import type { Handler } from "./exchange.ts";

/** Responses, errors included, hold credentials and short-lived facts, so no cache may keep them (RFC 6749 section 5.1). */
export function withNoStore(next: Handler): Handler {
  return (request, response) => {
    response.setHeader("cache-control", "no-store");
    next(request, response);
  };
}
