/** The public door: for browsers and apps. */
import { type ConnectRouter, createContextValues } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { SessionServiceRoutes } from "../../gen/auth/v1/session_http.ts";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import type { Config } from "../config/config.ts";
import { callerOf } from "../door/caller.ts";
import { withCors } from "../door/cors.ts";
import { answer, type Handler, type Request } from "../door/listen.ts";
import { withNoStore } from "../door/no-store.ts";
import { healthz, jwks, type Render, readyz, withPages } from "../door/pages.ts";
import { createHttpHandler } from "../http/index.ts";
import type { Logger } from "../observability/logger.ts";
import { measure } from "../observability/measure.ts";
import type { Metrics } from "../observability/metrics.ts";
import { callerKey } from "../rpc/caller.ts";
import { crossSiteDefence } from "../rpc/cross-site.ts";
import { errorTranslation } from "../rpc/errors.ts";
import { jsonOptions } from "../rpc/json.ts";
import { type SessionServiceNeeds, sessionService } from "../rpc/session-service.ts";
import { docs } from "./docs.ts";
import { envelope, envelopeEncoder } from "./envelope.ts";

type Needs = SessionServiceNeeds & {
  readonly jwks: () => string;
  readonly metrics: Metrics;
  readonly stopping: AbortSignal;
  readonly log: Logger;
};

const NOT_FOUND = JSON.stringify(envelope("E404_NOT_FOUND"));
const NOT_FOUND_HEADERS = {
  "content-type": "application/json",
  "content-length": Buffer.byteLength(NOT_FOUND),
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
      measure(needs.metrics),
      errorTranslation((err, method) => log.error({ err, method }, "bug")),
      crossSiteDefence(rules, (header) => log.info({ event: "cross_site_refused", header }, "cross_site_refused")),
    ],
    contextValues: (request: Request) => createContextValues().set(callerKey, callerOf(request, config.trustProxy)),
    jsonOptions,
    readMaxBytes: config.maxBodyBytes,
  };
  const bug = (err: unknown) => log.error({ err }, "bug");
  const rpc = connectNodeAdapter({
    ...options,
    shutdownSignal: stopping,
    fallback: (_request, response) => answer(response, 404, NOT_FOUND_HEADERS, NOT_FOUND),
  });
  const json = createHttpHandler({
    ...options,
    tables: [SessionServiceRoutes],
    shutdownSignal: stopping,
    failureEncoder: envelopeEncoder(bug),
    fallback: rpc,
  });
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
    ...docs(config.docs),
  ]);
  return withPages(pages, withCors(config.allowedOrigins, withNoStore(json)));
}
