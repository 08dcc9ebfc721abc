/** The public API: for browsers and apps, over RPC and over JSON routes. */

import { createHttpHandler } from "connect-http-routes";
import { SessionServiceRoutes } from "../../gen/auth/v1/session_http.ts";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { SessionServiceRules } from "../../gen/auth/v1/session_rules.ts";
import { envelope, envelopeEncoder } from "../api/errors/envelope.ts";
import { type CrossSiteRefusal, crossSiteDefence, type MissingPermission } from "../api/interceptors/cross-site.ts";
import { observedGate } from "../api/interceptors/observed-gate.ts";
import { withSmallMessages } from "../api/message-sizes.ts";
import { requireCredential } from "../api/public/credentials.ts";
import { type SessionServiceDeps, sessionService } from "../api/public/session-service.ts";
import type { Config } from "../config/config.ts";
import { withCors } from "../listener/cors.ts";
import { type Handler, type Responder, respond } from "../listener/exchange.ts";
import type { SecurityHeaders } from "../listener/security-headers.ts";
import { measureRefused } from "../observability/measure.ts";
import { referencePages } from "../reference/pages.ts";
import { type SignInDeps, signInRoute } from "../reference/sign-in.ts";
import { ERRORS, type ErrorCode } from "../session/errors.ts";
import { type ApiDeps, apiHandler, type CallOptions } from "./api-handler.ts";

type Deps = ApiDeps &
  SessionServiceDeps & {
    /** For the reference page, where it may offer to sign in. */
    readonly signIn?: SignInDeps | undefined;
  };

/** Responds with an error of the table to any request. */
function always(code: ErrorCode): Responder {
  const body = JSON.stringify(envelope(code));
  const headers = { "content-type": "application/json", "content-length": Buffer.byteLength(body) };
  return (_request, response) => respond(response, ERRORS[code].http, headers, body);
}

/** The settings that allow what the cross-site defence refuses. */
const PERMISSIONS: Record<MissingPermission, string> = {
  host: "a proxy in front that passes on Host as it came, and TRUST_PROXY where it ends TLS",
  origin: "ALLOWED_ORIGINS with this origin",
  same_site: "ALLOW_SAME_SITE=true",
  cross_site: "COOKIE_SAMESITE=None",
};

export function publicHandler(config: Config, deps: Deps): Handler {
  const { allowedOrigins, allowSameSite, cookie } = config;
  const { signIn } = deps;
  // With SameSite=None, allowed origins are meant to call from other sites.
  const rules = { allowedOrigins, allowSameSite, allowCrossSite: cookie.sameSite === "None" };
  const routes: ApiRoutes = (router) => {
    withSmallMessages(router, config.maxBodyBytes).service(SessionService, sessionService(deps));
    return router;
  };
  const refuseCrossSite = crossSiteDefence(rules, (refusal) => reportCrossSite(deps, refusal));
  const tracing = deps.telemetry?.interceptors ?? [];
  const authenticate = observedGate(tracing, measureRefused(deps.metrics), requireCredential(deps));
  return apiHandler(config, deps, {
    service: SessionService,
    rules: SessionServiceRules,
    routes,
    reflection: config.reflection,
    gate(context) {
      refuseCrossSite(context);
      return authenticate(context);
    },
    pages: referencePages({ api: "public", page: config.docs, signIn: signIn !== undefined }),
    notFound: always("E404_NOT_FOUND"),
    badRequest: always("E400_INVALID_REQUEST"),
    ...(signIn !== undefined && { route: () => signInRoute(signIn) }),
    json: (rpc, options, headersFor) =>
      withCors(allowedOrigins, headersFor, jsonHandler(rpc, routes, options, headersFor)),
  });
}

type ApiRoutes = Parameters<typeof apiHandler>[2]["routes"];

/** Overload control decides which calls are served, and the listener how long a body may take. */
const BOUNDS_ELSEWHERE = { maxCalls: Number.POSITIVE_INFINITY, bodyTimeoutMs: Number.POSITIVE_INFINITY };

/** Serves the JSON routes; anything else goes to `rpc`. */
function jsonHandler(rpc: Handler, routes: ApiRoutes, options: CallOptions, headersFor: SecurityHeaders): Handler {
  return createHttpHandler({
    ...options,
    ...BOUNDS_ELSEWHERE,
    routes,
    tables: [SessionServiceRoutes],
    failureEncoder: envelopeEncoder(options.onBug),
    // The headers of the layers around `rpc`. Set here, among the others, they cost next to nothing; before the handler runs,
    // a thirtieth of a refresh.
    onResponse(headers, { request }) {
      headers.set("cache-control", "no-store");
      for (const [name, value] of headersFor(request)) headers.set(name, value);
    },
    fallback: rpc,
  });
}

function reportCrossSite({ metrics, log }: ApiDeps, { missing, correlation, ...request }: CrossSiteRefusal): void {
  metrics.crossSiteRefused(request.header);
  const allowedBy = missing.map((permission) => PERMISSIONS[permission]);
  log.info({ event: "cross_site_refused", ...request, allowedBy, ...correlation }, "cross_site_refused");
}
