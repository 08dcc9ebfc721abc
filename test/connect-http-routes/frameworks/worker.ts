/** What Bun, Deno and Workers serve: the line of docs/reference/http-layer.md, with CORS in front and a page of its own. */
import { createFetchHandler } from "../../../src/connect-http-routes/fetch/index.ts";
import { RichServiceRoutes } from "../gen/rich/v1/rich_http.ts";
import { richRoutes } from "../support/rich-service.ts";
import { ORIGIN, OWN_PAGE } from "./own.ts";

const handler = createFetchHandler({
  ...{ routes: richRoutes, tables: [{ ...RichServiceRoutes, multipart: true }], requestPathPrefix: "/api" },
  fallback: ({ url }) =>
    new URL(url).pathname === "/own" ? new Response(OWN_PAGE) : new Response("not here", { status: 404 }),
  onInternalError: () => {},
});

export default {
  async fetch(request: Request): Promise<Response> {
    const isPreflight = request.method === "OPTIONS" && request.headers.has("access-control-request-method");
    const response = isPreflight ? new Response(null, { status: 204 }) : await handler(request);
    response.headers.set("access-control-allow-origin", ORIGIN);
    return response;
  },
  /** Bun serves the default export of a program at this port: any that is free. */
  port: 0,
};
