/** CORS with credentials, for exactly the configured origins (Fetch standard, section 3.3). */
import { cors } from "@connectrpc/connect";
import { type Handler, type HttpRequest, type HttpResponse, respond } from "./handler.ts";
import type { SecurityHeaders } from "./layers.ts";

const METHODS = [...cors.allowedMethods, "DELETE"];
/** The request headers that this service reads. A preflight request for none, or for too many, gets these. */
const READ = ["Authorization", "DPoP", "Secure-Session-Response", ...cors.allowedHeaders].join(", ");
/** Bounds of what a preflight request may ask for: tracing libraries add about five headers to those of a request. */
const MAX_HEADERS = 64;
const MAX_HEADERS_LENGTH = 2_048;
const TOKEN = /^[!#$%&'*+.^_`|~\w-]+$/;

/**
 * Returns the header names that a page of an allowed origin may send: those it asks for, such as `traceparent` of a tracing library. The
 * origin is trusted, and nothing here decides by a header's name.
 */
function allowedHeaders(asked: string | undefined): string {
  if (!asked || asked.length > MAX_HEADERS_LENGTH) return READ;
  const names = asked.split(",").map((name) => name.trim());
  return names.length <= MAX_HEADERS && names.every((name) => TOKEN.test(name)) ? names.join(", ") : READ;
}

/** The response headers by which browsers bind a session to a device (Device Bound Session Credentials). */
const OF_DEVICES = ["Secure-Session-Registration", "Secure-Session-Challenge"];
/** The response headers that scripts may read. Nonces: RFC 9449 section 8. */
const EXPOSED = [...cors.exposedHeaders, "Retry-After", "WWW-Authenticate", "DPoP-Nonce", ...OF_DEVICES];

/** What scripts of allowed origins may do. Default: what the session service has. */
type Allowance = { readonly methods?: readonly string[]; readonly exposed?: readonly string[] };

/**
 * @param isAllowed absent: no page of another origin may call
 * @param headersFor returns the security headers of responses to preflight requests
 */
export function withCors(
  isAllowed: ((origin: string) => boolean) | undefined,
  headersFor: SecurityHeaders,
  next: Handler,
  { methods = METHODS, exposed = EXPOSED }: Allowance = {},
): Handler {
  const [allowedMethods, exposedHeaders] = [methods.join(", "), exposed.join(", ")];
  if (isAllowed === undefined) return next;
  return (request: HttpRequest, response: HttpResponse) => {
    const { origin } = request.headers;
    response.setHeader("vary", "Origin");
    if (typeof origin !== "string" || !isAllowed(origin)) return next(request, response);
    response.setHeader("access-control-allow-origin", origin);
    response.setHeader("access-control-allow-credentials", "true");
    if (request.method !== "OPTIONS" || request.headers["access-control-request-method"] === undefined) {
      response.setHeader("access-control-expose-headers", exposedHeaders);
      return next(request, response);
    }
    response.setHeader("vary", "Origin, Access-Control-Request-Method, Access-Control-Request-Headers");
    for (const [name, value] of headersFor(request)) response.setHeader(name, value);
    respond(response, 204, {
      "access-control-allow-methods": allowedMethods,
      "access-control-allow-headers": allowedHeaders(request.headers["access-control-request-headers"]?.toString()),
      "access-control-max-age": "7200",
    });
  };
}
