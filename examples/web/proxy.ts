/**
 * Passes `/v1/auth/` on to the session service, so that pages and service share an origin: no CORS, and the cookie is a
 * first-party one everywhere. In production your reverse proxy does this (docs/tasks/browser.md has a configuration for nginx).
 */
import { request as forward, type IncomingMessage, type ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { respond } from "./responses.ts";

export function passOn(publicUrl: string, request: IncomingMessage, response: ServerResponse): void {
  const headers = {
    // `host` stays as the browser has sent it, because the service compares it with `Origin`.
    ...request.headers,
    "x-forwarded-proto": "http",
    // The header is replaced and not extended, because the client may have sent a forged one.
    "x-forwarded-for": request.socket.remoteAddress,
    connection: "close",
  };
  const upstream = forward(publicUrl + request.url, { method: request.method, headers }, (reply) => {
    // These headers describe the connection to the upstream, so they are not passed on.
    const { connection: _, "keep-alive": __, "transfer-encoding": ___, ...passed } = reply.headers;
    response.writeHead(reply.statusCode ?? 502, passed);
    // Ends both streams when one of them ends early, so that half a response is not passed off as a whole one.
    pipeline(reply, response, () => {});
  });
  // If the service cannot be reached, the response is 502. The browser kit treats 502 as an outage and not as a logout.
  upstream.on("error", () => {
    if (response.headersSent) response.destroy();
    else respond(response, 502, { error: "the session service cannot be reached" });
  });
  // If the browser disconnects, the request to the service is aborted.
  response.on("close", () => upstream.destroy());
  request.pipe(upstream);
}
