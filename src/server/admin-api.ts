/** The admin API: for internal services, which present an admin token or a client certificate. */
import { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionAdminServiceRules } from "../../gen/auth/admin/v1/session_admin_rules.ts";
import { adminAuthentication } from "../api/admin/authentication.ts";
import type { SessionAdminServiceDeps } from "../api/admin/deps.ts";
import { sessionAdminService } from "../api/admin/session-admin-service.ts";
import type { Config } from "../config/config.ts";
import { type Handler, type Request, type Responder, respond } from "../listener/exchange.ts";
import { NodeRequestSource } from "../listener/request-source.ts";
import type { AdminAccess } from "../session/admin-access.ts";
import type { RevocationFeed } from "../session/feed.ts";
import type { RateLimit } from "../session/ports.ts";
import type { KeyRing } from "../tokens/key-ring.ts";
import { type ApiDeps, apiHandler } from "./api-handler.ts";
import { withConsole } from "./console.ts";
import { liveData } from "./console-live.ts";
import { docs } from "./docs.ts";
import { metricsPage } from "./metrics-page.ts";

type Deps = ApiDeps &
  SessionAdminServiceDeps & {
    readonly access: AdminAccess;
    readonly failureLimit: RateLimit;
    readonly ring: KeyRing;
    readonly feed: Pick<RevocationFeed, "watch" | "state">;
  };

const always =
  (status: number, text: string): Responder =>
  (_request, response) =>
    respond(response, status, { "content-type": "text/plain" }, text);

export function adminHandler(config: Config, deps: Deps): Handler {
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
    notFound: always(404, "not found\n"),
    badRequest: always(400, "bad request\n"),
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
