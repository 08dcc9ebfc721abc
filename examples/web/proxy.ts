/**
 * Passes `/v1/auth/` on to the session service, so that pages and service share an origin: no CORS, and the cookie is a
 * first-party one everywhere. In production your reverse proxy does this (docs/browser.md has a configuration for nginx).
 */
import { request as forward, type IncomingMessage, type ServerResponse } from "node:http";

export function passOn(publicUrl: string, request: IncomingMessage, response: ServerResponse): void {
  const headers = {
    // `host` as the browser sent it: the service compares it with `Origin`.
    ...request.headers,
    "x-forwarded-proto": "http",
    // Set, not appended: what a client claims about its address is worth nothing.
    "x-forwarded-for": request.socket.remoteAddress,
    connection: "close",
  };
  const upstream = forward(publicUrl + request.url, { method: request.method, headers }, (reply) => {
    response.writeHead(reply.statusCode ?? 502, reply.headers);
    reply.pipe(response);
  });
  // The kit takes it for what it is: an outage, no logout.
  upstream.on("error", () => (response.headersSent ? response.destroy() : response.writeHead(502).end()));
  request.pipe(upstream);
}
