/** The public door: for browsers and apps. */
import { type ConnectRouter, createContextValues } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import type { Config } from "../config/config.ts";
import { withCors } from "../door/cors.ts";
import type { Handler, Request } from "../door/listen.ts";
import { ownOrigin } from "../door/own-origin.ts";
import { healthz, jwks, type Render, readyz, withPages } from "../door/pages.ts";
import type { Logger } from "../observability/logger.ts";
import { crossSiteDefence, ownOriginKey } from "../rpc/cross-site.ts";
import { errorTranslation } from "../rpc/errors.ts";
import { jsonOptions } from "../rpc/json.ts";
import { type SessionServiceNeeds, sessionService } from "../rpc/session-service.ts";

type Needs = SessionServiceNeeds & {
  readonly jwks: () => string;
  readonly stopping: AbortSignal;
  readonly log: Logger;
};

export function publicHandler(config: Config, needs: Needs): Handler {
  const { log, stopping } = needs;
  const rules = {
    allowedOrigins: config.allowedOrigins,
    allowSameSite: config.allowSameSite,
    // Whoever sets SameSite=None wants the listed origins to call from other sites.
    allowCrossSite: config.cookie.sameSite === "None",
  };
  const options = {
    routes: (router: ConnectRouter) => router.service(SessionService, sessionService(needs)),
    interceptors: [
      errorTranslation((err, method) => log.error({ err, method }, "bug")),
      crossSiteDefence(rules, (header) => log.info({ event: "cross_site_refused", header }, "cross_site_refused")),
    ],
    contextValues: (request: Request) =>
      createContextValues().set(ownOriginKey, () => ownOrigin(request, config.trustProxy)),
    jsonOptions,
    readMaxBytes: config.maxBodyBytes,
  };
  const rpc = connectNodeAdapter({ ...options, shutdownSignal: stopping });
  const pages = new Map<string, Render>([
    ["/healthz", healthz],
    [
      "/readyz",
      () =>
        readyz(
          () => needs.store.ping(),
          () => stopping.aborted,
        ),
    ],
    ["/.well-known/jwks.json", () => jwks(needs.jwks, config.jwksMaxAge / 1000)],
  ]);
  return withCors(config.allowedOrigins, withPages(pages, rpc));
}
