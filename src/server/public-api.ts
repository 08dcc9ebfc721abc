/** The public API: for browsers and apps. */
import type { ConnectRouter, HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { SessionServiceRoutes } from "../../gen/auth/v1/session_http.ts";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { acceptCompression, compressMinBytes } from "../api/compression.ts";
import { errorTranslation } from "../api/errors/connect-errors.ts";
import { envelope, envelopeEncoder } from "../api/errors/envelope.ts";
import { withOurErrors } from "../api/errors/framework-errors.ts";
import { admissionControl } from "../api/interceptors/admission.ts";
import { crossSiteDefence, type MissingPermission } from "../api/interceptors/cross-site.ts";
import { requestValidation } from "../api/interceptors/request-validation.ts";
import { jsonOptions } from "../api/json.ts";
import { type SessionServiceDeps, sessionService } from "../api/public/session-service.ts";
import { contextValuesOf } from "../api/request-context.ts";
import type { Config } from "../config/config.ts";
import { createHttpHandler } from "../http/index.ts";
import { withAuthority, withOneHost } from "../listener/authority.ts";
import { withCors } from "../listener/cors.ts";
import { type Answerable, answer, type Handler, type Request } from "../listener/listener.ts";
import { withNoStore } from "../listener/no-store.ts";
import { healthz, jwks, type Render, readyz, withPages } from "../listener/pages.ts";
import { NodeRequestSource } from "../listener/request-source.ts";
import { withSecurityHeaders } from "../listener/security-headers.ts";
import type { Logger } from "../observability/logger.ts";
import { measure } from "../observability/measure.ts";
import type { Metrics } from "../observability/metrics.ts";
import { ERRORS, type ErrorCode } from "../session/errors.ts";
import { docs } from "./docs.ts";
import { responseHeaders } from "./response-headers.ts";

type Deps = SessionServiceDeps & {
  readonly jwks: () => string;
  /** Resolves when requests can be served and what they store is kept. */
  readonly ready: () => Promise<void>;
  readonly metrics: Metrics;
  readonly isDraining: () => boolean;
  readonly stopping: AbortSignal;
  readonly onUnavailable: (error: Error) => void;
  /** Accepts an ordinary call, or not: overload control. */
  readonly accept: () => boolean;
  readonly log: Logger;
};

/** Answers with an error of the table, whatever was asked. */
function always(code: ErrorCode) {
  const body = JSON.stringify(envelope(code));
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return (_request: unknown, response: Answerable) => answer(response, ERRORS[code].http, headers, body);
}

/** The settings that let in what cross-site defence refuses. */
const PERMISSIONS: Record<MissingPermission, string> = {
  origin: "ALLOWED_ORIGINS with this origin",
  same_site: "ALLOW_SAME_SITE=true",
  cross_site: "COOKIE_SAMESITE=None",
};

export function publicHandler(config: Config, deps: Deps): Handler {
  const { log, stopping } = deps;
  const rules = {
    allowedOrigins: config.allowedOrigins,
    allowSameSite: config.allowSameSite,
    // Whoever sets SameSite=None wants the listed origins to call from other sites.
    allowCrossSite: config.cookie.sameSite === "None",
  };
  const headersFor = responseHeaders(config);
  const badRequest = withSecurityHeaders(headersFor, withNoStore(always("E400_INVALID_REQUEST")));
  const onBug = (err: unknown, method?: string) => log.error({ event: "bug", err, method }, "bug");
  const control = admissionControl(deps.accept);
  const defend = crossSiteDefence(rules, (refusal) => {
    deps.metrics.crossSiteRefused(refusal.header);
    const { missing, ...seen } = refusal;
    const allowedBy = missing.map((permission) => PERMISSIONS[permission]);
    log.info({ event: "cross_site_refused", ...seen, allowedBy }, "cross_site_refused");
  });
  const options = {
    routes: (router: ConnectRouter) => router.service(SessionService, sessionService(deps)),
    requestGate: (context: HandlerContext) => {
      control(context);
      defend(context);
    },
    interceptors: [
      measure(deps.metrics),
      errorTranslation({ onBug, onUnavailable: deps.onUnavailable }),
      requestValidation(SessionService),
    ],
    contextValues: (request: Request) => contextValuesOf(new NodeRequestSource(request, config.trustProxy)),
    jsonOptions,
    compressMinBytes,
    readMaxBytes: config.maxBodyBytes,
  };
  const rpc = connectNodeAdapter({
    ...options,
    routes: (router) => withOurErrors(options.routes(router), onBug),
    acceptCompression,
    shutdownSignal: stopping,
    fallback: always("E404_NOT_FOUND"),
  });
  const json = createHttpHandler({
    ...options,
    tables: [SessionServiceRoutes],
    shutdownSignal: stopping,
    failureEncoder: envelopeEncoder(onBug),
    // As the layers of the fallback do it; among the other headers they cost next to nothing, before them a thirtieth of
    // a refresh.
    onResponse(headers, { request }) {
      headers.set("cache-control", "no-store");
      for (const [name, value] of headersFor(request)) headers.set(name, value);
    },
    fallback: withSecurityHeaders(headersFor, withNoStore(withAuthority(rpc, badRequest))),
  });
  const pages = new Map<string, Render>([
    ["/healthz", healthz],
    ["/readyz", () => readyz(deps.ready, deps.isDraining)],
    ["/.well-known/jwks.json", () => jwks(deps.jwks, config.jwksMaxAge / 1000)],
    ...docs(config.docs),
  ]);
  return withOneHost(withPages(pages, headersFor, withCors(config.allowedOrigins, headersFor, json)), badRequest);
}
