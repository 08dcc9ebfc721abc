import { type Client, createClient, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionAdminService } from "../../gen/auth/admin/v1/session_admin_pb.ts";
import { ClientSessions } from "../http2/client-sessions.ts";
import type { VerifierOptions } from "./options.ts";

/** A ping detects a dead connection, which an idle stream never does. */
const PING = { pingIntervalMs: 2000, pingTimeoutMs: 5000 };

export type AdminClient = Client<typeof SessionAdminService>;

/**
 * Returns a client of the admin API that works until `signal` is aborted; undefined without `adminUrl` and `transport`.
 * @throws TypeError
 */
export function createAdminClient(options: VerifierOptions, signal: AbortSignal): AdminClient | undefined {
  const { adminUrl, adminToken, nodeOptions, policy, transport } = options;
  if (transport !== undefined) return createClient(SessionAdminService, transport);
  if (adminUrl === undefined) {
    if (policy !== undefined) throw new TypeError("createVerifier: a policy needs adminUrl");
    return undefined;
  }
  if (adminToken === undefined && nodeOptions === undefined) {
    throw new TypeError("createVerifier: adminUrl needs adminToken, or nodeOptions with a client certificate");
  }
  const authenticate: Interceptor = (next) => (request) => {
    const token = typeof adminToken === "function" ? adminToken() : adminToken;
    if (token !== undefined) request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
  const sessionManager = new ClientSessions(adminUrl, PING, nodeOptions);
  signal.addEventListener("abort", () => sessionManager.close());
  const interceptors = [...(options.interceptors ?? []), authenticate];
  return createClient(
    SessionAdminService,
    createConnectTransport({ baseUrl: adminUrl, httpVersion: "2", sessionManager, interceptors }),
  );
}
