import { hostname } from "node:os";
import { OAuthAdminServiceRoutes } from "../../../gen/auth/admin/v1/oauth_admin_http.ts";
import { OAuthAdminService } from "../../../gen/auth/admin/v1/oauth_admin_pb.ts";
import { SessionAdminServiceRoutes } from "../../../gen/auth/admin/v1/session_admin_http.ts";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SharedSignalsServiceRoutes } from "../../../gen/auth/admin/v1/shared_signals_http.ts";
import { SharedSignalsService } from "../../../gen/auth/admin/v1/shared_signals_pb.ts";
import { SignalsAdminService } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { type Handler, type Responder, respond } from "../../platform/listener/handler.ts";
import { acceptsHost, authorityOf, reportForeignPages, withHosts } from "../../platform/listener/hosts.ts";
import { NodeRequestSource } from "../../platform/listener/request-source.ts";
import { OWN_PAGES_ALONE } from "../../platform/net/cross-site.ts";
import { proxyTrust } from "../../platform/net/proxy-trust.ts";
import { adminAuthentication } from "../api/admin/authentication.ts";
import type { SessionAdminServiceDeps } from "../api/admin/deps.ts";
import { oauthAdminService } from "../api/admin/oauth-admin-service.ts";
import { sessionAdminService } from "../api/admin/session-admin-service.ts";
import { type SharedSignalsDeps, sharedSignalsService } from "../api/admin/shared-signals-service.ts";
import { signalsAdminService } from "../api/admin/signals-admin-service.ts";
import { STRICT_JSON } from "../api/connect-options.ts";
import { connectError, unknownMethod } from "../api/errors/refused-calls.ts";
import { crossSiteDefence, PASS_ON_HOST } from "../api/gates/gates.ts";
import { createRateLimit } from "../api/limits/rate-limit.ts";
import { createReceiverLimits } from "../api/limits/receiver-limits.ts";
import { MAX_OAUTH_REQUEST_BYTES } from "../api/public/oauth-service.ts";
import type { Config } from "../config/config.ts";
import { type ConsoleDeps, consoleRoute } from "../pages/console/handler.ts";
import { liveData } from "../pages/console/live.ts";
import { createPasses, type Passes } from "../pages/console/passes.ts";
import type { SignInRecords } from "../pages/console/sign-ins.ts";
import { referencePages } from "../pages/reference/pages.ts";
import type { AdminAccess } from "../session/admin/access.ts";
import type { RevocationFeed } from "../session/feed/feed.ts";
import type { RateLimit } from "../session/ports.ts";
import type { Operators } from "../sign-in/operators.ts";
import type { StreamPlace } from "../signals/streams/configuration.ts";
import { MAX_OWN_STREAMS } from "../signals/streams/manage.ts";
import { Poller, type PollerDeps } from "../signals/streams/poller.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { nextStep, PICK_UP_MS } from "../tokens/ring-steps.ts";
import { type ApiDeps, apiHandler } from "./api-handler.ts";
import { errorResponder } from "./error-responder.ts";
import { metricsPage } from "./metrics-page.ts";
import { type OfferedService, offer } from "./offered-service.ts";

type Deps = SessionAdminServiceDeps & {
  readonly access: AdminAccess;
  readonly failureLimit: RateLimit;
  readonly consoleSignIns: SignInRecords;
  /** Undefined if operators sign in to the console with admin tokens. */
  readonly operators: Operators | undefined;
  /** Undefined if SIGNALS is off. */
  readonly signals: PollerDeps | undefined;
  /** The configuration of streams of the Shared Signals Framework (SSF); undefined if there are none. */
  readonly streams: StreamPlace | undefined;
  readonly ring: KeyRing;
  readonly feed: Pick<RevocationFeed, "watch" | "state">;
};

/** How often an operator may test the receiver at one endpoint: each test is a request to somebody else's server. */
const TEST_RATE = { count: 10, windowMs: 10_000 };

export function adminHandler(config: Config, apiDeps: ApiDeps, given: Deps): Handler {
  const access = createPasses(given.access);
  const deps = { ...given, access };
  // Browsers send client certificates and Basic by themselves, also for pages of other sites.
  const crossSite = crossSiteDefence(OWN_PAGES_ALONE, { host: PASS_ON_HOST }, apiDeps);
  return apiHandler(config, apiDeps, {
    services: servicesOf(config, apiDeps, deps),
    reflection: true,
    gates: [crossSite, adminAuthentication(deps)],
    pages: [
      ["/metrics", metricsPage(apiDeps.metrics, config.metricsAuth ? access : undefined)],
      ...referencePages({ api: "admin", page: config.docs, signIn: false }),
    ],
    notFound: errorResponder("E404_NOT_FOUND", unknownMethod),
    badRequest: errorResponder("E400_INVALID_REQUEST", connectError("E400_INVALID_REQUEST")),
    ...(config.console === "on" && { route: (rpc) => consoleRoute(consoleDeps(config, apiDeps, deps, access), rpc) }),
    around: (api, refusal) => withOwnHosts(config, apiDeps, withPageAdvice(apiDeps, api), refusal(misdirected)),
  });
}

function servicesOf({ maxBodyBytes, oauthEndpoints }: Config, apiDeps: ApiDeps, deps: Deps): OfferedService[] {
  const { signals } = deps;
  const streams = streamsOf(apiDeps, deps);
  const services = [
    offer(
      SessionAdminService,
      sessionAdminService(deps),
      // A mask or an etag in the query would be ignored, and an update would change more than the caller means.
      { ...SessionAdminServiceRoutes, refuseUnknownQuery: true },
      STRICT_JSON,
    ),
  ];
  if (oauthEndpoints) {
    const table = { ...OAuthAdminServiceRoutes, formPosts: true };
    const options = { readMaxBytes: Math.min(maxBodyBytes, MAX_OAUTH_REQUEST_BYTES) };
    services.push(offer(OAuthAdminService, oauthAdminService(deps), table, options));
  }
  if (signals) {
    const handlers = signalsAdminService({ ...signals, testLimit: createRateLimit(TEST_RATE) });
    services.push(offer(SignalsAdminService, handlers, undefined, STRICT_JSON));
  }
  if (streams) {
    const handlers = sharedSignalsService(streams);
    services.push(offer(SharedSignalsService, handlers, SharedSignalsServiceRoutes));
  }
  return services;
}

function streamsOf({ draining }: ApiDeps, { signals, streams }: Deps): SharedSignalsDeps | undefined {
  if (signals === undefined || streams === undefined) return undefined;
  const limits = createReceiverLimits(streams.verificationIntervalMs, MAX_OWN_STREAMS);
  return { ...signals, ...streams, ...limits, draining, poller: new Poller(signals) };
}

function consoleDeps(config: Config, apiDeps: ApiDeps, deps: Deps, passes: Passes): ConsoleDeps {
  const { log, metrics, ready, telemetry } = apiDeps;
  const { operators, audit, failureLimit, ring, feed, consoleSignIns } = deps;
  const times = { ...config, pickUpMs: PICK_UP_MS };
  const trust = proxyTrust(config.trustProxy);
  const keys = () => ring.current.states.map((key) => ({ ...key, next: nextStep(key.kind, key, times) }));
  return {
    passes,
    operators,
    audit,
    log,
    failureLimit,
    consoleSignIns,
    live: () => liveData({ metrics, feed, ringLost: ring.isLost, keys, ready }),
    sourceOf: (request) => new NodeRequestSource(request, trust, telemetry?.traceId),
  };
}

/** Refuses requests whose host is not a name of this listener (DNS rebinding). With TLS, browsers check the name, so this is optional. */
function withOwnHosts(config: Config, { log }: ApiDeps, api: Handler, otherwise: Handler): Handler {
  const { adminAllowedHosts, adminHost, tlsCertFile } = config;
  if (adminAllowedHosts === undefined && tlsCertFile !== undefined) return api;
  const own = [adminHost, hostname()].map((name) => name.toLowerCase());
  return withHosts(acceptsHost([...own, ...(adminAllowedHosts ?? [])]), api, (request, response) => {
    log.warn({ event: "host_refused", api: "admin", host: authorityOf(request) }, "the host is none of this listener");
    otherwise(request, response);
  });
}

/** Logs that a page in a browser calls the admin API: a browser lets no page read the response, and a page must not have the token. */
function withPageAdvice({ log }: ApiDeps, api: Handler): Handler {
  const advice = "the admin API is for servers: call it from the server of this page, and the public API from the page";
  return reportForeignPages((origin) => log.warn({ event: "page_calls_admin_api", origin, advice }, advice), api);
}

/** A Connect error, so that Connect clients display what has to be configured. */
const MISDIRECTED = JSON.stringify({
  code: "failed_precondition",
  message: "the admin API is not called by this host name: ADMIN_ALLOWED_HOSTS names those that it accepts",
});

const misdirected: Responder = (_request, response) =>
  respond(response, 421, { "content-type": "application/json" }, MISDIRECTED);
