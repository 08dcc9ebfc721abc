/**
 * Opens one port on which gateways check whether a request may pass: over HTTP, or over gRPC as Envoy does. The only state is what the
 * verifier has read, so any number of instances can run.
 */
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { Authorization } from "../../../gen/envoy/service/auth/v3/external_auth_pb.ts";
import { openListener } from "../../platform/listener/listener.ts";
import type { Verifier } from "../../verifier/index.ts";
import { type CheckOptions, createCheck } from "./check.ts";
import { createExtAuthz } from "./ext-authz.ts";
import { createHttpEndpoint, isCheck } from "./http-endpoint.ts";
import { Outcomes } from "./outcomes.ts";
import { serveWithPages } from "./pages.ts";

type Options = CheckOptions & {
  readonly host: string;
  readonly port: number;
  /** If the data about ended sessions is older than this, in ms, or no key set has been read yet, `/readyz` responds 503. */
  readonly maxStalenessMs: number;
  readonly metricsHosts?: readonly string[] | undefined;
  readonly onBug: (error: unknown) => void;
};

/** The size of the largest check over gRPC, in bytes. Envoy may include the body of a request (`with_request_body`). */
const MAX_CHECK_BYTES = 1_048_576;

type ForwardAuth = { readonly url: string; close(): Promise<void> };

/** @throws Error if the port cannot be bound */
export async function serveForwardAuth(verifier: Verifier, options: Options): Promise<ForwardAuth> {
  const { host, port, maxStalenessMs, metricsHosts = [], onBug } = options;
  const outcomes = new Outcomes();
  const check = createCheck(verifier, options);
  const byHttp = createHttpEndpoint(check, outcomes, onBug);
  const byGrpc = connectNodeAdapter({
    readMaxBytes: MAX_CHECK_BYTES,
    routes: (router) => router.service(Authorization, createExtAuthz(check, outcomes)),
  });
  // Gateways send all their requests over a few connections, so a limit per address would limit the gateway.
  const maxConnections = 10_000;
  const limits = { maxConnections, maxConnectionsPerAddress: maxConnections, isProxy: () => true };
  const listener = await openListener("forward-auth", host, port, {
    settings: { host: "--host", port: "--port" },
    limits,
    onBug,
  });
  // `verifier.ready` rejects once and for all if the service refuses the admin token, which may be replaced while this process runs.
  const isReady = () => verifier.state().kids.length > 0 && verifier.stalenessMs() <= maxStalenessMs;
  const close = serveWithPages(listener, {
    isReady,
    exposition: () => outcomes.exposition(verifier.stalenessMs()),
    metricsHosts,
    handler: (request, response) => (isCheck(request.url) ? byHttp : byGrpc)(request, response),
  });
  return { url: listener.url, close };
}
