/** The pages for probes and metrics beside the checks, and a stop that loses no request. */
import { acceptsHost, authorityOf } from "../../platform/listener/hosts.ts";
import { type Handler, type Listener, respond } from "../../platform/listener/listener.ts";

/** How long requests in flight may take when the command stops, in ms. */
const GRACE_MS = 5_000;
/** How long idle connections stay open when the command stops, in ms, so that clients can close them first; `/readyz` responds 503. */
const LINGER_MS = 1_000;

type Options = {
  readonly isReady: () => boolean;
  /** Returns the metrics in the text format of Prometheus. */
  readonly exposition: () => string;
  /** The names under which `/metrics` may be requested, besides IP addresses and private names. */
  readonly metricsHosts: readonly string[];
  /** Handles all requests that are not for one of the pages. */
  readonly handler: Handler;
};

/** @returns the function that stops the listener */
export function serveWithPages(
  listener: Listener,
  { isReady, exposition, metricsHosts, handler }: Options,
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
    await listener.close(GRACE_MS, LINGER_MS);
  };
}
