import type { Handler } from "./exchange.ts";

/** Answers hold credentials and what is true only now: no cache may keep them, errors included (RFC 6749 section 5.1). */
export function withNoStore(next: Handler): Handler {
  return (request, response) => {
    response.setHeader("cache-control", "no-store");
    next(request, response);
  };
}
