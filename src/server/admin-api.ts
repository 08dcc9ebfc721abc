/** The admin API: for internal services, which present an admin token or a client certificate. */
import { hostname } from "node:os";
import { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionAdminServiceRules } from "../../gen/auth/admin/v1/session_admin_rules.ts";
import { adminAuthentication } from "../api/admin/authentication.ts";
import type { SessionAdminServiceDeps } from "../api/admin/deps.ts";
import { sessionAdminService } from "../api/admin/session-admin-service.ts";
import { connectError, type PlainResponse, unknownMethod } from "../api/errors/refused-calls.ts";
import type { Config } from "../config/config.ts";
import { type Handler, type Request, type Responder, respond } from "../listener/exchange.ts";
import { acceptsHost, authorityOf, withHosts } from "../listener/hosts.ts";
import { withNoStore } from "../listener/no-store.ts";
import { NodeRequestSource } from "../listener/request-source.ts";
import { withSecurityHeaders } from "../listener/security-headers.ts";
import type { AdminAccess } from "../session/admin-access.ts";
import type { RevocationFeed } from "../session/feed.ts";
import type { RateLimit } from "../session/ports.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { type ApiDeps, apiHandler } from "./api-handler.ts";
import { withConsole } from "./console.ts";
import { liveData } from "./console-live.ts";
import { docs } from "./docs.ts";
import { metricsPage } from "./metrics-page.ts";
import { responseHeaders } from "./response-headers.ts";

type Deps = ApiDeps &
  SessionAdminServiceDeps & {
    readonly access: AdminAccess;
    readonly failureLimit: RateLimit;
    readonly ring: KeyRing;
    readonly feed: Pick<RevocationFeed, "watch" | "state">;
  };

const always =
  ({ status, headers, body }: PlainResponse): Responder =>
  (_request, response) =>
    respond(response, status, headers, body);

export function adminHandler(config: Config, deps: Deps): Handler {
  return withOwnHosts(config, deps, adminApi(config, deps));
}

/** Where nothing else is configured, TLS needs no such check: browsers compare the name with the certificate. */
function withOwnHosts(config: Config, { log }: Deps, api: Handler): Handler {
  const { adminAllowedHosts, adminHost, tlsCertFile } = config;
  if (adminAllowedHosts === undefined && tlsCertFile !== undefined) return api;
  const own = [adminHost, hostname()].map((name) => name.toLowerCase());
  const refuse: Responder = (_request, response) =>
    respond(response, 421, { "content-type": "application/json" }, MISDIRECTED);
  const refused = withSecurityHeaders(responseHeaders(config), withNoStore(refuse));
  return withHosts(acceptsHost([...own, ...(adminAllowedHosts ?? [])]), api, (request, response) => {
    log.warn({ event: "host_refused", api: "admin", host: authorityOf(request) }, "the host is none of this listener");
    return refused(request, response);
  });
}

/** As Connect has an error, so that its clients show what is to be done. */
const MISDIRECTED = JSON.stringify({
  code: "failed_precondition",
  message: "the admin API is not called by this host name: ADMIN_ALLOWED_HOSTS names those that it accepts",
});

function adminApi(config: Config, deps: Deps): Handler {
  return apiHandler(config, deps, {
    service: SessionAdminService,
    rules: SessionAdminServiceRules,
    routes: (router) => router.service(SessionAdminService, sessionAdminService(deps)),
    reflection: true,
    gate: adminAuthentication(deps.access, deps.audit, deps.failureLimit),
    pages: [
      ["/metrics", metricsPage(deps.metrics, config.metricsAuth ? deps.access : undefined)],
      ...docs({ api: "admin", page: config.docs, signIn: false }),
    ],
    notFound: always(unknownMethod),
    badRequest: always(connectError("E400_INVALID_REQUEST")),
    ...(config.console === "on" && {
      around: (rpc, _options, headersFor) => {
        const { access, audit, log, failureLimit, ring, metrics, feed, ready, telemetry } = deps;
        const live = () => liveData({ metrics, feed, ring, times: config, ready });
        const sourceOf = (request: Request) => new NodeRequestSource(request, config.trustProxy, telemetry?.traceId);
        return withConsole({ access, audit, log, failureLimit, live, sourceOf }, headersFor, rpc);
      },
    }),
  });
}
