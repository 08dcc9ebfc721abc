/** The admin API: for internal services, behind an admin token. */
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { adminAuthentication } from "../api/admin/authentication.ts";
import type { SessionAdminServiceDeps } from "../api/admin/deps.ts";
import { sessionAdminService } from "../api/admin/session-admin-service.ts";
import { acceptCompression, compressMinBytes } from "../api/compression.ts";
import { errorTranslation } from "../api/errors/connect-errors.ts";
import { withOurErrors } from "../api/errors/framework-errors.ts";
import { admissionControl } from "../api/interceptors/admission.ts";
import { requestValidation } from "../api/interceptors/request-validation.ts";
import { jsonOptions } from "../api/json.ts";
import { contextValuesOf } from "../api/request-context.ts";
import type { Config } from "../config/config.ts";
import { withAuthority, withOneHost } from "../listener/authority.ts";
import { type Answerable, answer, type Handler } from "../listener/listener.ts";
import { withNoStore } from "../listener/no-store.ts";
import { healthz, jwks, type Render, readyz, withPages } from "../listener/pages.ts";
import { NodeRequestSource } from "../listener/request-source.ts";
import { withSecurityHeaders } from "../listener/security-headers.ts";
import type { Logger } from "../observability/logger.ts";
import { measure } from "../observability/measure.ts";
import type { Metrics } from "../observability/metrics.ts";
import type { AdminAccess } from "../session/admin-access.ts";
import type { RateLimit } from "../session/ports.ts";
import { metricsPage } from "./metrics-page.ts";
import { responseHeaders } from "./response-headers.ts";

type Deps = SessionAdminServiceDeps & {
  readonly access: AdminAccess;
  readonly failureLimit: RateLimit;
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

const always = (status: number, text: string) => (_request: unknown, response: Answerable) =>
  answer(response, status, { "content-type": "text/plain" }, text);

export function adminHandler(config: Config, deps: Deps): Handler {
  const { log, audit, stopping, metrics } = deps;
  const onBug = (err: unknown, method: string) => log.error({ event: "bug", err, method }, "bug");
  const control = admissionControl(deps.accept);
  const authenticate = adminAuthentication(deps.access, audit, deps.failureLimit);
  const rpc = connectNodeAdapter({
    routes: (router) => withOurErrors(router.service(SessionAdminService, sessionAdminService(deps)), onBug),
    requestGate: (context) => {
      control(context);
      return authenticate(context);
    },
    contextValues: (request) => contextValuesOf(new NodeRequestSource(request, config.trustProxy)),
    interceptors: [
      measure(deps.metrics),
      errorTranslation({ onBug, onUnavailable: deps.onUnavailable }),
      requestValidation(SessionAdminService),
    ],
    jsonOptions,
    acceptCompression,
    compressMinBytes,
    readMaxBytes: config.maxBodyBytes,
    shutdownSignal: stopping,
    fallback: always(404, "not found\n"),
  });
  const headersFor = responseHeaders(config);
  const badRequest = withSecurityHeaders(headersFor, always(400, "bad request\n"));
  const pages = new Map<string, Render>([
    ["/healthz", healthz],
    ["/readyz", () => readyz(deps.ready, deps.isDraining)],
    ["/.well-known/jwks.json", () => jwks(deps.jwks, config.jwksMaxAge / 1000)],
    ["/metrics", metricsPage(metrics, config.metricsAuth ? deps.access : undefined)],
  ]);
  const calls = withSecurityHeaders(headersFor, withNoStore(withAuthority(rpc, badRequest)));
  return withOneHost(withPages(pages, headersFor, calls), badRequest);
}
