/** The types of requests and responses that a listener passes to its handlers, for every version of HTTP. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

export type Request = IncomingMessage | Http2ServerRequest;
export type Response = ServerResponse | Http2ServerResponse;
export type Handler = (request: Request, response: Response) => void;

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

/** Returns the handler of a request, or undefined if the next route must handle it. */
export type Route = (request: Request) => Handler | undefined;

/** @param wrap wraps the handlers of `route`; requests for `next` do not pass through it */
export function withRoute(route: Route, wrap: (handler: Handler) => Handler, next: Handler): Handler {
  const ownHandler = wrap((request, response) => route(request)?.(request, response));
  return (request, response) => (route(request) === undefined ? next : ownHandler)(request, response);
}
