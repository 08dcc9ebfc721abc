import type { Handler, Request } from "./exchange.ts";

/** Returns the handler of a request, or undefined for a request that others serve. */
export type Route = (request: Request) => Handler | undefined;

/** @param wrap what `route` serves is wrapped in; the requests of `next` do not pass it */
export function withRoute(route: Route, wrap: (handler: Handler) => Handler, next: Handler): Handler {
  const served = wrap((request, response) => route(request)?.(request, response));
  return (request, response) => (route(request) === undefined ? next : served)(request, response);
}
