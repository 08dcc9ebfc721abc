/** Checks each request before the application handles it. All adapters use this gate. */
import { createGuard, type GuardOptions } from "./guard.ts";
import { loginLocation } from "./login.ts";
import { requestTarget } from "./paths.ts";
import { type Refusal, refusalOf, respondTo } from "./refusals.ts";
import type { RefusalStatus } from "./report.ts";
import { isSafe, isSameOrigin } from "./same-origin.ts";
import type { Authentication, PageRequest, SessionsSource } from "./sessions.ts";

export type GateOptions = GuardOptions & {
  /**
   * The path of the login page. Navigations to protected paths are redirected there if nobody is signed in. With `false` there is none, as
   * for an API without pages: its requests get 401, and 503 if the kit cannot determine who is signed in. Default: `/login`.
   */
  readonly login?: string | false;
  /** The name of the query parameter with the path to which the login page returns. Read it with `returnPath`. Default: `next`. */
  readonly returnParameter?: string;
  /**
   * Other origins whose pages may send requests that change something. With `false`, the gate does not check where requests come from, and
   * the application must (`isSameOrigin`). Default: none.
   */
  readonly origins?: readonly string[] | false;
  /** Returns the response to a request that is refused. The kit adds its headers. Default: JSON in the form of the service's errors. */
  readonly refuse?: (refusal: Refusal, request: PageRequest) => Response;
};

export type Passage = {
  readonly authentication: Authentication;
  /** The response to the browser, if the application must not handle the request. */
  readonly response?: Response;
};

/** What a framework says about a request. */
type Routing = {
  /** The path by which it looks for the page. Default: that of the URL. */
  readonly routed?: string;
  /** The path below which it serves the application. The URL is without it, as are all paths of the application. Default: none. */
  readonly base?: string;
  /** Returns the response that leads a script of the framework, which has sent a form, to the login. Default: such a request gets 401. */
  readonly redirect?: ((location: string) => Response) | undefined;
};

/**
 * Checks a request: if it may change something, it must not come from a page of a foreign origin; its path must be readable; a protected
 * path needs a user who is signed in. If the kit cannot determine who is signed in and there is a login page, the request passes, and the
 * application must show that the state is `unavailable`.
 * @param source the kit, or a function that returns it, which is called with the first request
 * @param isPage whether the browser displays the response as a page, so that a redirect makes sense
 */
export function createGate(
  source: SessionsSource,
  options: GateOptions = {},
  isPage: (request: PageRequest) => boolean = isNavigation,
) {
  const { login = "/login", returnParameter = "next", origins = [], refuse = respondTo } = options;
  const accessTo = createGuard(options, login || undefined);
  return async (request: PageRequest, address?: string, routing: Routing = {}): Promise<Passage> => {
    const { routed, base = "", redirect } = routing;
    const sessions = typeof source === "function" ? source() : source;
    const { path } = requestTarget(request.url);
    const refused = (status: RefusalStatus, authentication = nobody(request), reading?: string): Passage => {
      const found = {
        status,
        method: request.method,
        path: path.slice(0, 200),
        ...(reading && { reading: reading.slice(0, 200) }),
      };
      sessions.report({ event: "request_refused", ...found });
      const response = withResponseHeaders(refuse(refusalOf(status), request), authentication);
      return { authentication, response };
    };
    if (origins && mayChange(request) && !isSameOrigin(request, origins)) return refused(403);
    const found = accessTo(path, routed);
    if (found.access === "unreadable") return refused(400);
    const authentication = await sessions.authenticate(request, address);
    const { state } = authentication.user;
    if (found.access === "public" || state === "active") return { authentication };
    if (state === "unavailable") return login ? { authentication } : refused(503, authentication, found.reading);
    const isLed = redirect !== undefined || isPage(request);
    const location = login && isLed ? loginLocation(request.url, login, returnParameter) : undefined;
    if (!location) return refused(401, authentication, found.reading);
    const response =
      redirect?.(location) ?? new Response(null, { status: 303, headers: { location: base + location } });
    return { authentication, response: withResponseHeaders(response, authentication) };
  };
}

/** Returns the result for a request that is refused before its cookies are read. */
function nobody({ headers }: PageRequest): Authentication {
  return { user: { state: "unavailable" }, setCookies: [], responseHeaders: new Headers(), forward: headers };
}

/**
 * Returns whether a request may change something. A WebSocket may, though its handshake is a `GET`: the cookies of the handshake, which
 * pages of all origins may start, authenticate everything that follows.
 */
const mayChange = (request: PageRequest): boolean => !isSafe(request) || request.headers.has("upgrade");

function isNavigation({ method, headers }: PageRequest): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  return headers.get("sec-fetch-mode") === "navigate" || (headers.get("accept") ?? "").includes("text/html");
}

/** Adds the headers for the browser to a response. The application's own cookies come last, so that its logout takes effect. */
export function addResponseHeaders(to: Headers, { responseHeaders, setCookies }: Authentication): void {
  const own = to.getSetCookie();
  to.delete("set-cookie");
  for (const [name, value] of responseHeaders) {
    // The application may let caches store pages that are the same for all users, but no cache may store a response that sets a cookie.
    if (name === "cache-control" && to.has(name) && setCookies.length === 0) continue;
    if (name === "set-cookie" || name === "vary") to.append(name, value);
    else to.set(name, value);
  }
  for (const line of own) to.append("set-cookie", line);
}

/**
 * Returns a copy of a response with the headers for the browser. The application may send one response to several users, and the headers
 * of a fetched response cannot be changed.
 */
export function withResponseHeaders(response: Response, authentication: Authentication): Response {
  // The response to the handshake of a WebSocket cannot be copied. If this loses new cookies, the next request renews them again.
  if (response.status < 200) return response;
  const own = new Response(response.body, response);
  addResponseHeaders(own.headers, authentication);
  return own;
}
