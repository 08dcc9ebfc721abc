import type { Handler } from "./exchange.ts";

/**
 * Keeps away requests of which no URL can be made: without `Host` (HTTP/1.0 may), or with one that is no host.
 * Connect makes one of each, and throws where nobody catches.
 */
export function withAuthority(next: Handler, otherwise: Handler): Handler {
  return (request, response) => {
    const authority = request.headers[":authority"] ?? request.headers.host;
    const usable = typeof authority === "string" && URL.canParse(request.url ?? "", `http://${authority}`);
    return usable ? next(request, response) : otherwise(request, response);
  };
}
