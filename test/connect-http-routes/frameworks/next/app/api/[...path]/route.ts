import { createFetchHandler } from "connect-http-routes/fetch";
import { RichServiceRoutes } from "../../../gen/rich/v1/rich_http.ts";
import { richRoutes } from "../../../support/rich-service.ts";

const handler = createFetchHandler({
  ...{ routes: richRoutes, tables: [{ ...RichServiceRoutes, multipart: true }], requestPathPrefix: "/api" },
  onInternalError: () => {},
});

export {
  handler as GET,
  handler as HEAD,
  handler as POST,
  handler as PUT,
  handler as PATCH,
  handler as DELETE,
  handler as OPTIONS,
};
