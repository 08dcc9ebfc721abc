/** What every sidecar does beside its own requests: it serves pages for probes and metrics, and stops without losing a request. */
import { acceptsHost, authorityOf } from "../listener/hosts.ts";
import { type Handler, type Listener, respond } from "../listener/listener.ts";

/** How long requests in flight may take when a sidecar stops, in ms. */
const GRACE_MS = 5_000;
/** How long idle connections stay open when a sidecar stops, in ms, so that clients can close them first; `/readyz` responds 503. */
const LINGER_MS = 1_000;

type Sidecar = {
  readonly isReady: () => boolean;
  /** Returns the metrics in the text format of Prometheus. */
  readonly exposition: () => string;
  /** The names under which `/metrics` may be requested, besides IP addresses and private names. */
  readonly metricsHosts: readonly string[];
  /** Handles all requests that are not for one of the pages. */
  readonly handler: Handler;
  /** Ends what the listener does not end, such as streams, before the listener closes. */
  readonly stop?: () => Promise<void>;
};

/** Serves a sidecar. @returns the function that stops it */
export function serveSidecar(
  listener: Listener,
  { isReady, exposition, metricsHosts, handler, stop }: Sidecar,
): () => Promise<void> {
  let closing = false;
  const accepts = acceptsHost(metricsHosts);
  const metrics = { "content-type": "text/plain; version=0.0.4" };
  const pages = new Map<string, Handler>([
    ["/livez", (_, response) => respond(response, 200, {})],
    ["/readyz", (_, response) => respond(response, !closing && isReady() ? 200 : 503, {})],
    [
      "/metrics",
      (request, response) => {
        if (accepts(authorityOf(request) ?? "localhost")) respond(response, 200, metrics, exposition());
        else respond(response, 421, { "content-type": "text/plain" }, "--metrics-host must name this host\n");
      },
    ],
  ]);
  listener.serve((request, response) => (pages.get(request.url ?? "") ?? handler)(request, response));
  return async () => {
    closing = true;
    await stop?.();
    await listener.close(GRACE_MS, LINGER_MS);
  };
}
