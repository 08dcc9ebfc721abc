/** The layers around the handler of a listener. Each decides about a request, or adds to its response, and passes it on. */
import type { ProxyTrust } from "../net/proxy-trust.ts";
import { type Handler, type HttpRequest, type HttpResponse, type Route, respond } from "./handler.ts";
import { type Render, sendPage } from "./pages.ts";
import { forwardedScheme } from "./request-source.ts";

/** Refuses requests without a valid `Host`, because Connect makes a URL of it, and nothing would catch its error. */
export function withAuthority(next: Handler, otherwise: Handler): Handler {
  return (request, response) => {
    const { headers, url = "" } = request;
    const authority = headers[":authority"] ?? headers.host;
    const usable = typeof authority === "string" && URL.canParse(url, `http://${authority}`);
    return usable ? next(request, response) : otherwise(request, response);
  };
}

/**
 * Refuses requests that name two hosts (RFC 9112 section 3.2, RFC 9113 section 8.3.1): a proxy may use one, this service the other.
 * Requests whose target is a whole URL (RFC 9112 section 3.2.2) get its path as their target, which all later layers read.
 */
export function withOneHost(next: Handler, otherwise: Handler): Handler {
  return (request, response) => {
    let hosts = 0;
    if ("stream" in request) {
      // nghttp2 refuses a second `Host` or `:authority`, so only a difference between the two is looked for.
      if (request.headers.host !== undefined && request.headers.host !== request.authority) hosts = 2;
    } else {
      const { rawHeaders } = request;
      for (let i = 0; i < rawHeaders.length; i += 2) {
        const name = rawHeaders[i] as string;
        if (name.length === 4 && name.toLowerCase() === "host") hosts++;
      }
      if (request.url?.charCodeAt(0) !== SLASH && !useOriginForm(request)) hosts = 2;
    }
    return hosts > 1 ? otherwise(request, response) : next(request, response);
  };
}

const SLASH = 0x2f;

/** Replaces a target that is a whole URL by its path and query. @returns whether its host is that of the request */
function useOriginForm(request: HttpRequest): boolean {
  const [url, scheme = "", authority = "", path] = /^(https?):\/\/([^/?#]*)\/?(.*)$/is.exec(request.url ?? "") ?? [];
  if (url === undefined) return true;
  request.url = `/${path}`;
  // Both may name the default port of the scheme, or leave it out.
  const hostOf = (text: string) => text.toLowerCase().replace(scheme.length === 5 ? /:443$/ : /:80$/, "");
  return request.headers.host === undefined || hostOf(request.headers.host) === hostOf(authority);
}

/** The pages by their paths. A text is an alias: the path that `next` serves in place of this one, without a query. */
type Pages = ReadonlyMap<string, Render | string>;

export function withPages(pages: Pages, headersFor: SecurityHeaders, next: Handler): Handler {
  return (request: HttpRequest, response: HttpResponse) => {
    const { url = "" } = request;
    const query = url.indexOf("?");
    const page = pages.get(query < 0 ? url : url.slice(0, query));
    if (page === undefined) return next(request, response);
    if (typeof page === "string") {
      request.url = page;
      return next(request, response);
    }
    for (const [name, value] of headersFor(request)) response.setHeader(name, value);
    if (request.method !== "GET" && request.method !== "HEAD") {
      return respond(response, request.method === "OPTIONS" ? 204 : 405, { allow: "GET, HEAD, OPTIONS" });
    }
    sendPage(page, request, response).catch(() => response.destroy());
  };
}

/** @param wrap wraps the handlers of `route`; requests for `next` do not pass through it */
export function withRoute(route: Route, wrap: (handler: Handler) => Handler, next: Handler): Handler {
  const ownHandler = wrap((request, response) => route(request)?.(request, response));
  return (request, response) => (route(request) === undefined ? next : ownHandler)(request, response);
}

/** Returns the headers of the response to this request. The lists are constant, because this function runs for each request. */
export type SecurityHeaders = (request: HttpRequest) => readonly (readonly [name: string, value: string])[];

const ALWAYS = [
  ["x-content-type-options", "nosniff"],
  ["cross-origin-resource-policy", "same-origin"],
] as const;

type Options = {
  readonly tls: boolean;
  readonly trust: ProxyTrust;
  /** How long browsers must use only https, in ms; with 0, `Strict-Transport-Security` is not sent. */
  readonly hstsMaxAgeMs: number;
};

/** `Strict-Transport-Security` is sent only to clients that used https (RFC 6797 section 7.2). */
export function securityHeaders({ tls, trust, hstsMaxAgeMs }: Options): SecurityHeaders {
  if (hstsMaxAgeMs === 0) return () => ALWAYS;
  const hsts = ["strict-transport-security", `max-age=${Math.floor(hstsMaxAgeMs / 1000)}`] as const;
  const secure = [...ALWAYS, hsts];
  const direct = tls ? secure : ALWAYS;
  if (trust === 0) return () => direct;
  return (request) => {
    const scheme = forwardedScheme(request, trust);
    return scheme === undefined ? direct : scheme === "https" ? secure : ALWAYS;
  };
}

/** Setting headers before the handler runs costs more than sending them with the others, but works with any handler. */
export function withSecurityHeaders(headersFor: SecurityHeaders, next: Handler): Handler {
  return (request: HttpRequest, response: HttpResponse) => {
    for (const [name, value] of headersFor(request)) response.setHeader(name, value);
    next(request, response);
  };
}

/** Forbids caches to keep responses, including errors: they contain credentials and short-lived facts (RFC 6749 section 5.1). */
export function withNoStore(next: Handler): Handler {
  return (request, response) => {
    response.setHeader("cache-control", "no-store");
    next(request, response);
  };
}

export type SetHeaders = (headers: Headers, response: { readonly request: HttpRequest }) => void;

/**
 * Returns a function that sets the headers of every response together with its others, which costs almost nothing. To set them before the
 * handler runs, as the layers above do, would cost a thirtieth of the processor time of a refresh.
 */
export function headerSetter(headersFor: SecurityHeaders): SetHeaders {
  return (headers, { request }) => {
    headers.set("cache-control", "no-store");
    for (const [name, value] of headersFor(request)) headers.set(name, value);
  };
}
