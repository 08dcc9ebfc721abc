/** Checks a request for every adapter, before the application sees it. */
import { loginLocation } from "./login.ts";
import { isSafe, isSameOrigin } from "./same-origin.ts";
import type { Authentication, PageRequest, ServerSessions } from "./sessions.ts";

export type GateOptions = {
  /** The path of the login page. Navigations to protected paths lead there when nobody is signed in. Default: `/login`. */
  readonly login?: string;
  /** Name of the parameter that tells the login page where to return to. Read it with `returnPath`. Default: `next`. */
  readonly returnParameter?: string;
  /** Whether a path is for users who are signed in, asked as it was sent, decoded, and in lower case. Default: none is. */
  readonly isProtected?: (path: string) => boolean;
  /**
   * Other origins whose pages may send requests that change something. With `false` the application checks this itself
   * (`isSameOrigin`). The default is none.
   */
  readonly origins?: readonly string[] | false;
};

export type Passage = {
  readonly authentication: Authentication;
  /** The response to the browser, where the application is not to see the request. */
  readonly response?: Response;
};

/**
 * Checks a request: first whether it may change something, then who is signed in, then whether the path requires a user. If the kit
 * cannot find out who is signed in, the request passes, and the application shows `unavailable`.
 *
 * @param isPage whether the browser shows the response as a page, so that a redirect makes sense
 */
export function createGate(
  sessions: ServerSessions,
  options: GateOptions = {},
  isPage: (request: PageRequest) => boolean = isNavigation,
) {
  const { login = "/login", returnParameter = "next", isProtected = () => false, origins = [] } = options;
  return async (request: PageRequest, address?: string): Promise<Passage> => {
    if (origins && !isSafe(request) && !isSameOrigin(request, origins)) {
      const user = { state: "unavailable" } as const;
      const nothing = { user, setCookies: [], responseHeaders: new Headers(), forward: request.headers };
      return { authentication: nothing, response: new Response("cross-site request", { status: 403 }) };
    }
    const authentication = await sessions.authenticate(request, address);
    const { pathname } = new URL(request.url, "http://application.invalid");
    if (authentication.user.state !== "ended" || !pathsOf(pathname).some((path) => isProtected(path)))
      return { authentication };
    const location = loginLocation(request.url, login, returnParameter);
    if (location === undefined) return { authentication };
    const headers = new Headers(authentication.responseHeaders);
    if (!isPage(request)) return { authentication, response: new Response(null, { status: 401, headers }) };
    headers.set("location", location);
    return { authentication, response: new Response(null, { status: 303, headers }) };
  };
}

/** A path in the forms in which a framework may look for its route: most decode it first, and Express ignores its case. */
function pathsOf(pathname: string): readonly string[] {
  let decoded = pathname;
  try {
    decoded = decodeURI(pathname);
  } catch {
    // It stays as it is: frameworks do not decode it either.
  }
  return [pathname, decoded, decoded.toLowerCase()];
}

function isNavigation({ method, headers }: PageRequest): boolean {
  if (method !== "GET" && method !== "HEAD") return false;
  return headers.get("sec-fetch-mode") === "navigate" || (headers.get("accept") ?? "").includes("text/html");
}

/** Adds the headers for the browser to a response. The cookies that the application sets itself come last, so that its logout counts. */
export function addResponseHeaders(to: Headers, { responseHeaders, setCookies }: Authentication): void {
  const own = to.getSetCookie();
  to.delete("set-cookie");
  for (const [name, value] of responseHeaders) {
    // The application may cache on purpose what does not depend on the user, but no response that sets a cookie.
    if (name === "cache-control" && to.has(name) && setCookies.length === 0) continue;
    if (name === "set-cookie" || name === "vary") to.append(name, value);
    else to.set(name, value);
  }
  for (const line of own) to.append("set-cookie", line);
}
