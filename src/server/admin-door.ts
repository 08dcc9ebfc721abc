/** The admin door: for internal services, behind an admin token. */
import { createContextValues } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import type { Config } from "../config/config.ts";
import { withAuthority } from "../door/authority.ts";
import { callerOf } from "../door/caller.ts";
import { type Answerable, answer, type Handler } from "../door/listen.ts";
import { withNoStore } from "../door/no-store.ts";
import { healthz, jwks, type Render, readyz, withPages } from "../door/pages.ts";
import type { Logger } from "../observability/logger.ts";
import { measure } from "../observability/measure.ts";
import type { Metrics } from "../observability/metrics.ts";
import { adminAuthentication } from "../rpc/admin-authentication.ts";
import { callerKey } from "../rpc/caller.ts";
import { compressMinBytes } from "../rpc/compression.ts";
import { errorTranslation } from "../rpc/errors.ts";
import { withOurErrors } from "../rpc/framework-errors.ts";
import { jsonOptions } from "../rpc/json.ts";
import { type SessionAdminServiceNeeds, sessionAdminService } from "../rpc/session-admin-service.ts";

type Needs = SessionAdminServiceNeeds & {
  readonly adminTokens: readonly string[];
  readonly jwks: () => string;
  readonly metrics: Metrics;
  readonly stopping: AbortSignal;
  readonly onUnavailable: (error: Error) => void;
  readonly log: Logger;
};

const always = (status: number, text: string) => (_request: unknown, response: Answerable) =>
  answer(response, status, { "content-type": "text/plain" }, text);

export function adminHandler(config: Config, needs: Needs): Handler {
  const { log, audit, stopping, metrics } = needs;
  const onBug = (err: unknown, method: string) => log.error({ err, method }, "bug");
  const rpc = connectNodeAdapter({
    routes: (router) => withOurErrors(router.service(SessionAdminService, sessionAdminService(needs)), onBug),
    requestGate: adminAuthentication(needs.adminTokens, audit),
    contextValues: (request) => createContextValues().set(callerKey, callerOf(request, config.trustProxy)),
    interceptors: [measure(needs.metrics), errorTranslation({ onBug, onUnavailable: needs.onUnavailable })],
    jsonOptions,
    compressMinBytes,
    readMaxBytes: config.maxBodyBytes,
    shutdownSignal: stopping,
    fallback: always(404, "not found\n"),
  });
  return withPages(
    new Map<string, Render>([
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
      ["/metrics", async () => ({ status: 200, ...(await metrics.expose()) })],
    ]),
    withNoStore(withAuthority(rpc, always(400, "bad request\n"))),
  );
}
