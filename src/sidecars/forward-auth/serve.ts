/**
 * Opens one port on which gateways check whether a request may pass: over HTTP, or over gRPC as Envoy does. Its only state is the keys
 * and revocations that its verifier has read, so any number of instances can run.
 */
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { Authorization } from "../../../gen/envoy/service/auth/v3/external_auth_pb.ts";
import { type Handler, type Listener, openListener, respond } from "../../listener/listener.ts";
import type { Verifier } from "../../verifier/index.ts";
import { createCheck } from "./check.ts";
import { createExtAuthz } from "./ext-authz.ts";
import { createHttpEndpoint, isCheck } from "./http-endpoint.ts";
import { Outcomes } from "./outcomes.ts";

type Options = {
  readonly host: string;
  readonly port: number;
  /** The name of the cookie that may hold the access token. */
  readonly cookie?: string | undefined;
  /** The origins at which clients reach the gateway; absent if no tokens are bound to keys. */
  readonly origins?: readonly string[] | undefined;
  /** If the data about ended sessions is older than this, in ms, `/readyz` responds 503. */
  readonly maxStalenessMs: number;
  readonly onBug: (error: unknown) => void;
};

/** How long requests in flight may take when the endpoint stops, in ms. */
const GRACE_MS = 5_000;
/**
 * How long idle connections stay open when the endpoint stops, in ms, so that gateways can close them first. In the meantime, `/readyz`
 * reports that the endpoint stops.
 */
const LINGER_MS = 1_000;

/** The size of the largest check over gRPC, in bytes. Envoy may include the body of a request (`with_request_body`). */
const MAX_CHECK_BYTES = 1_048_576;

type ForwardAuth = { readonly url: string; close(): Promise<void> };

/** @throws Error if the port cannot be bound */
export async function serveForwardAuth(verifier: Verifier, options: Options): Promise<ForwardAuth> {
  const { host, port, maxStalenessMs, onBug } = options;
  const outcomes = new Outcomes();
  const check = createCheck(verifier, options);
  const byHttp = createHttpEndpoint(check, outcomes, onBug);
  const byGrpc = connectNodeAdapter({
    readMaxBytes: MAX_CHECK_BYTES,
    routes: (router) => router.service(Authorization, createExtAuthz(check, outcomes)),
  });
  // Gateways send all their requests over a few connections, so a limit per address would limit the gateway.
  const maxConnections = 10_000;
  const limits = { maxConnections, maxConnectionsPerAddress: maxConnections };
  const listener: Listener = await openListener("forward-auth", host, port, { limits, onBug });
  let closing = false;
  const isReady = () => !closing && verifier.stalenessMs() <= maxStalenessMs;
  const pages = new Map<string, Handler>([
    ["/livez", (_, response) => respond(response, 200, {})],
    ["/readyz", (_, response) => respond(response, isReady() ? 200 : 503, {})],
    [
      "/metrics",
      (_, response) =>
        respond(
          response,
          200,
          { "content-type": "text/plain; version=0.0.4" },
          outcomes.exposition(verifier.stalenessMs()),
        ),
    ],
  ]);
  listener.serve((request, response) => {
    if (isCheck(request.url)) return byHttp(request, response);
    const page = pages.get(request.url ?? "") ?? byGrpc;
    page(request, response);
  });
  return {
    url: listener.url,
    close() {
      closing = true;
      return listener.close(GRACE_MS, LINGER_MS);
    },
  };
}
