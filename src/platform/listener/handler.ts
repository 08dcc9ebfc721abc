/** What a listener passes requests to: handlers, with the types of requests and responses of every version of HTTP. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** How long a request may have waited to be accepted and read, in ms (late-connections.ts). Absent if that was not long. */
export const WAITED_MS = Symbol("waited");

export type HttpRequest = (IncomingMessage | Http2ServerRequest) & { [WAITED_MS]?: number };
export type HttpResponse = ServerResponse | Http2ServerResponse;
export type Handler = (request: HttpRequest, response: HttpResponse) => void;

/** The methods that all types of responses have in common. */
export type WritableResponse = {
  writeHead(status: number, headers: OutgoingHttpHeaders): unknown;
  end(): unknown;
  end(body: string | Buffer): unknown;
};

export type Responder = (request: unknown, response: WritableResponse) => void;

export function respond(
  response: WritableResponse,
  status: number,
  headers: OutgoingHttpHeaders,
  body?: string | Buffer,
) {
  response.writeHead(status, headers);
  if (body === undefined) response.end();
  else response.end(body);
}

/** Returns the value of `Retry-After`, at least one second. The wait is rounded up, so that a caller that waits is served. */
export const retryAfter = (ms: number): string => String(Math.max(1, Math.ceil(ms / 1000)));

/** Returns the handler of a request, or undefined if the next route must handle it. */
export type Route = (request: HttpRequest) => Handler | undefined;
