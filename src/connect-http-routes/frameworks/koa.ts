import type { IncomingMessage, ServerResponse } from "node:http";
import { createHttpHandler, type HttpHandlerOptions } from "../node/node-handler.ts";

/** The parts of Koa's context that the middleware uses. They are declared here because the package `koa` contains no types. */
export type KoaContext = {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  readonly request: object & { readonly body?: unknown };
  respond?: boolean;
};

/**
 * Koa middleware that serves route tables, and calls the next middleware for requests that match no route:
 *
 *     app.use(koaHttpRoutes({ routes, tables: [LibraryServiceRoutes] }));
 *
 * Headers that earlier middleware has set are sent. A body that earlier middleware has parsed is taken from `ctx.request.body`.
 */
export function koaHttpRoutes(
  options: HttpHandlerOptions,
): (ctx: KoaContext, next: () => Promise<unknown>) => Promise<unknown> {
  const handler = createHttpHandler(options);
  return async (ctx, next) => {
    const { req: request, res: response } = ctx;
    if ("body" in ctx.request && !("body" in request)) Object.assign(request, { body: ctx.request.body });
    let hasRoute = true;
    handler(request, response, () => {
      hasRoute = false;
    });
    if (!hasRoute) return next();
    ctx.respond = false;
    // Middleware around this one measures until the response has been sent.
    if (!response.closed) await new Promise((resolve) => response.once("close", resolve));
    return undefined;
  };
}
