import type { Handler } from "./exchange.ts";

/** Forbids caches to keep responses, including errors: they contain credentials and short-lived facts (RFC 6749 section 5.1). */
export function withNoStore(next: Handler): Handler {
  return (request, response) => {
    response.setHeader("cache-control", "no-store");
    next(request, response);
  };
}
