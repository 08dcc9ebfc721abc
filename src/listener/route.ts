import type { Handler, Request } from "./exchange.ts";

/** Returns the handler of a request, or undefined if the next route must handle it. */
export type Route = (request: Request) => Handler | undefined;

/** @param wrap wraps the handlers of `route`; requests for `next` do not pass through it */
export function withRoute(route: Route, wrap: (handler: Handler) => Handler, next: Handler): Handler {
  const ownHandler = wrap((request, response) => route(request)?.(request, response));
  return (request, response) => (route(request) === undefined ? next : ownHandler)(request, response);
}
