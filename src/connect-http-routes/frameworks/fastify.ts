import type { FastifyPluginAsync } from "fastify";
import { createHttpHandler, type HttpHandlerOptions } from "../node/node-handler.ts";

/** The methods of google.api.http. Preflights (OPTIONS) stay with the plugin for CORS. */
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];

/**
 * A Fastify plugin that serves route tables, below the `prefix` with which it is registered:
 *
 *     await app.register(fastifyHttpRoutes, { prefix: "/api", routes, tables: [LibraryServiceRoutes] });
 *
 * It reads bodies itself, also those that Fastify has no parser for, and sends the headers that hooks and other plugins have set on the
 * reply. Hooks before the handler run as usual; `preSerialization` and `onSend` do not, since Fastify does not see the response. Requests
 * that match no route get Fastify's 404.
 */
export const fastifyHttpRoutes: FastifyPluginAsync<HttpHandlerOptions> = async (scope, options) => {
  const handler = createHttpHandler(scope.prefix === "" ? options : { ...options, requestPathPrefix: scope.prefix });
  // Parsers belong to the scope of a plugin, so those of the application stay as they are.
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser("*", (_request, _payload, done) => done(null));
  scope.route({
    method: METHODS,
    url: "/*",
    exposeHeadRoute: false,
    handler(request, reply) {
      for (const [name, value] of Object.entries(reply.getHeaders())) {
        if (value !== undefined) reply.raw.setHeader(name, value);
      }
      let hasRoute = true;
      handler(request.raw, reply.raw, () => {
        hasRoute = false;
      });
      if (hasRoute) reply.hijack();
      else reply.callNotFound();
    },
  });
};
