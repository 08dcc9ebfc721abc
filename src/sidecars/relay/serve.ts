/** Serves the revocation feed of an upstream to other watchers, with the RPC `WatchRevocations` and the same bytes as the service. */
import type { HandlerContext } from "@connectrpc/connect";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { adminAuthentication } from "../../api/admin/authentication.ts";
import { watchRevocations } from "../../api/admin/watch-revocations.ts";
import { acceptCompression, compressMinBytes, STRICT_JSON } from "../../api/connect-options.ts";
import { dropFarDeadline } from "../../api/deadlines.ts";
import { errorTranslation } from "../../api/errors/connect-errors.ts";
import { withOurErrors } from "../../api/errors/framework-errors.ts";
import { beginReading } from "../../api/errors/reading.ts";
import { refuseUnknownEncoding } from "../../api/interceptors/encodings.ts";
import { contextValuesOf } from "../../api/request-context.ts";
import { type Handler, type Listener, openListener, type Request, type Tls } from "../../listener/listener.ts";
import { keepOutput } from "../../listener/output.ts";
import { NodeRequestSource } from "../../listener/request-source.ts";
import { withNoStore } from "../../listener/security-headers.ts";
import type { AdminAccess } from "../../session/admin-access.ts";
import type { Audit } from "../../session/audit.ts";
import type { FeedState, RevocationFeed } from "../../session/feed.ts";
import type { RateLimit } from "../../session/ports.ts";
import { serveSidecar } from "../serve-sidecar.ts";
import type { Upstream } from "./upstream.ts";

type Deps = {
  readonly feed: RevocationFeed;
  readonly upstream: Pick<Upstream, "revokedKeyIds" | "ageMs">;
  /** The credentials of the watchers that are accepted. */
  readonly access: AdminAccess;
  readonly audit: Audit;
  readonly failureLimit: RateLimit;
  readonly onBug: (error: unknown) => void;
};

type Place = {
  readonly host: string;
  readonly port: number;
  readonly tls?: Tls | undefined;
  readonly metricsHosts?: readonly string[] | undefined;
};

export type Relay = { readonly url: string; close(): Promise<void> };

type ServedRelay = Relay & Pick<Listener, "replaceTls">;

/** If the known revocations are older than this, in ms, `/readyz` responds 503, and batches are marked as incomplete. */
const MAX_AGE_MS = 2_000;
/** The size of the largest request, in bytes. A cursor has a few dozen bytes. */
const MAX_REQUEST_BYTES = 16_384;
/** The greatest number of connections. One address may have all of them, because all watchers may come through one proxy. */
const MAX_CONNECTIONS = 12_000;

/** @throws Error if the port cannot be bound */
export async function serveRelay(deps: Deps, { host, port, tls, metricsHosts = [] }: Place): Promise<ServedRelay> {
  const { feed, upstream, onBug } = deps;
  const limits = { maxConnections: MAX_CONNECTIONS, maxConnectionsPerAddress: MAX_CONNECTIONS };
  const listener = await openListener("relay", host, port, { limits, tls, onBug });
  const close = serveSidecar(listener, {
    isReady: () => upstream.ageMs() <= MAX_AGE_MS,
    exposition: () => exposition(feed.state()),
    metricsHosts,
    handler: withNoStore(createRpc(deps)),
    stop: () => feed.close(),
  });
  return { url: listener.url, replaceTls: listener.replaceTls, close };
}

function createRpc({ feed, upstream, access, audit, failureLimit, onBug }: Deps): Handler {
  const authenticate = adminAuthentication({ access, audit, failureLimit });
  const source = { feed, revokedKeyIds: () => upstream.revokedKeyIds };
  const connect = connectNodeAdapter({
    routes: (router) =>
      withOurErrors(
        router.service(SessionAdminService, {
          watchRevocations: (request, context) => watchRevocations(source, request, context),
        }),
        onBug,
      ),
    async requestGate(context: HandlerContext) {
      await authenticate(context);
      refuseUnknownEncoding(context);
      beginReading(context.values);
    },
    interceptors: [errorTranslation({ onBug, onUnavailable() {} })],
    contextValues: (request: Request) => contextValuesOf(new NodeRequestSource(request, 0)),
    ...{ ...STRICT_JSON, acceptCompression, compressMinBytes, readMaxBytes: MAX_REQUEST_BYTES },
  });
  return (request, response) => {
    dropFarDeadline(request);
    keepOutput(request, response);
    connect(request, response);
  };
}

/** Returns the measurements of a relay in the text format of Prometheus. */
export function exposition({ watchers, ageMs, entries }: FeedState): string {
  const isKnown = ageMs !== undefined && ageMs !== Number.POSITIVE_INFINITY;
  return [
    ...gauge("relay_watchers", "Streams of the feed that are open.", watchers),
    ...gauge("relay_staleness_seconds", "How old what the relay knows of endings is.", isKnown ? ageMs / 1000 : "+Inf"),
    ...gauge("relay_revocations", "Revocations in memory.", entries),
    "",
  ].join("\n");
}

const gauge = (name: string, help: string, value: number | string) => [
  `# HELP ${name} ${help}`,
  `# TYPE ${name} gauge`,
  `${name} ${value}`,
];
