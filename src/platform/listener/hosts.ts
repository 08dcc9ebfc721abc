/**
 * Decides by which host names a listener may be called. In DNS rebinding, an attacker makes a domain name resolve to the address of this
 * service. To the browser, the attacker's page then has the origin of this service, but its requests have the attacker's name in `Host`.
 */
import type { Handler, HttpRequest } from "./handler.ts";

/** Matches names that public DNS does not have, such as those of a cluster (RFC 6761, 6762, 8375, 9476). */
const PRIVATE = /^[^.]+$|\.(?:localhost|local|internal|svc|consul|home\.arpa|test|invalid|example)$/;

/** Matches an IP address in a URL. DNS rebinding needs a name, so an address is always accepted. */
const ADDRESS = /^(?:\d+\.\d+\.\d+\.\d+|\[.*\])$/;

/** @param allowed names besides IP addresses and private names, in lower case; `*.example.com` allows all names below it, `*` any */
export function acceptsHost(allowed: readonly string[]): (authority: string) => boolean {
  const names = new Set(allowed);
  const suffixes = allowed.flatMap((name) => (name.startsWith("*.") ? [name.slice(1)] : []));
  if (names.has("*")) return () => true;
  return (authority) => {
    const host = URL.parse(`http://${authority}`)?.hostname.replace(/\.$/, "") ?? "";
    if (host === "") return false;
    return (
      ADDRESS.test(host) || PRIVATE.test(host) || names.has(host) || suffixes.some((suffix) => host.endsWith(suffix))
    );
  };
}

/** Health probes may request these paths under any name. */
const PROBES = new Set(["/healthz", "/readyz"]);

/** Refuses requests whose host is not accepted. A request without a host does not come from a browser and is served. */
export function withHosts(accepts: (authority: string) => boolean, next: Handler, otherwise: Handler): Handler {
  return (request, response) => {
    const authority = authorityOf(request);
    const isServed = authority === undefined || accepts(authority) || PROBES.has(request.url ?? "");
    return isServed ? next(request, response) : otherwise(request, response);
  };
}

export function authorityOf({ headers }: HttpRequest): string | undefined {
  const { ":authority": authority, host = authority } = headers;
  return typeof host === "string" ? host : undefined;
}

/** How often a page is reported at most, in ms. */
const REPORT_INTERVAL_MS = 60_000;

/** Reports requests of pages that this listener did not serve, preflights included, at most once a minute. They are handled as before. */
export function reportForeignPages(report: (origin: string) => void, next: Handler): Handler {
  let reportedMs = Number.NEGATIVE_INFINITY;
  return (request, response) => {
    const { origin } = request.headers;
    if (typeof origin === "string" && URL.parse(origin)?.host !== authorityOf(request)) {
      const nowMs = performance.now();
      if (nowMs - reportedMs >= REPORT_INTERVAL_MS) {
        reportedMs = nowMs;
        report(origin);
      }
    }
    return next(request, response);
  };
}
