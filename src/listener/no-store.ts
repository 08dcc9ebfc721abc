import type { Handler } from "./exchange.ts";

/** Responses hold credentials and short-lived facts: no cache may keep them, errors included (RFC 6749 section 5.1). */
export function withNoStore(next: Handler): Handler {
  return (request, response) => {
    response.setHeader("cache-control", "no-store");
    next(request, response);
  };
}
