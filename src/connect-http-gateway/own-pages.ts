import { type Handler, type HttpRequest, respond } from "../platform/listener/handler.ts";
import { crossSiteFault, isAtHost, isSafe } from "../platform/net/cross-site.ts";
import type { GatewayArguments } from "./arguments.ts";
import type { WriteLog } from "./request-log.ts";

/** The response to a cross-site request, in the format in which the HTTP layer encodes failures by default. */
const REFUSAL = JSON.stringify({ code: 7, message: "cross-site request", details: [] });

/**
 * Refuses requests that may change something and that a page of another site made a browser send, with the cookie or another credential
 * that the browser adds by itself. Without this check, the upstream would have to know the origin of each request.
 */
export function fromOwnPages(
  { origins, trustForwarded }: Pick<GatewayArguments, "origins" | "trustForwarded">,
  write: WriteLog,
  next: Handler,
): Handler {
  if (origins === false) return next;
  const rules = { isAllowed: (origin: string) => origins.includes(origin), allowSameSite: false, allowCrossSite: true };
  return (request, response) => {
    if (isSafe({ method: request.method ?? "" })) return next(request, response);
    const sender = { site: textOf(request, "sec-fetch-site"), origin: textOf(request, "origin") };
    const host = hostOf(request, trustForwarded);
    const header = crossSiteFault(sender, (origin) => host !== null && isAtHost(origin, host), rules);
    if (header === undefined) return next(request, response);
    write({ event: "cross-site request refused", header, host, ...sender, allowedBy: "--allow-origin" });
    respond(response, 403, { "content-type": "application/json", "content-length": REFUSAL.length }, REFUSAL);
  };
}

const textOf = ({ headers }: HttpRequest, name: string): string | null => headers[name]?.toString() ?? null;

const isTrusted = ({ socket }: HttpRequest, trust: GatewayArguments["trustForwarded"]): boolean =>
  typeof trust === "boolean" ? trust : trust(socket.remoteAddress ?? "");

/** Proxies append to `X-Forwarded-Host`, which begins with the host that the browser called. */
const hostOf = (request: HttpRequest, trustForwarded: GatewayArguments["trustForwarded"]): string | null =>
  (isTrusted(request, trustForwarded) ? textOf(request, "x-forwarded-host")?.split(/[\t ]*,/)[0] : null) ??
  textOf(request, ":authority") ??
  textOf(request, "host");
