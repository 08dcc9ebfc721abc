/** The adapter for Next.js with its app router. */
import { addResponseHeaders, createGate, type GateOptions } from "./gate.ts";
import { isSafe } from "./same-origin.ts";
import type { PageRequest, SessionsSource } from "./sessions.ts";

export { nextSession } from "./next-actions.ts";

/** The parts of `NextResponse` of `next/server` that are used. */
type NextResponseLike = {
  next(init: { readonly request: { readonly headers: Headers } }): Response;
};

/** `NextRequest`. Its URL has the `basePath` of the application, which `matcher`, `redirect` and links leave out. */
type NextRequestLike = PageRequest & { readonly nextUrl?: { readonly basePath: string } };

function withoutBase(request: PageRequest, base: string): PageRequest {
  if (base === "") return request;
  const url = new URL(request.url);
  url.pathname = url.pathname.slice(base.length);
  return { method: request.method, url: url.href, headers: request.headers };
}

/** Returns whether a request is for a page. Scripts of Next.js also fetch pages, without the headers of a navigation. */
const isPage = (request: PageRequest): boolean =>
  isSafe(request) && !request.headers.get("accept")?.includes("application/json");

/** Redirects as a server action does. A script of Next.js has sent the request, and adds `basePath`. */
const redirectAction = (location: string) =>
  new Response(null, { status: 303, headers: { "x-action-redirect": location } });

/**
 * Returns the function `proxy` of `proxy.ts` (before Next.js 16: `middleware`, in the Node.js runtime). Paths are without `basePath`.
 * @example
 * ```ts
 * import { sessionProxy } from "@session-service/server/next";
 * import { NextResponse } from "next/server";
 *
 * export const proxy = sessionProxy(sessions, NextResponse, { isPublic: (path) => path === "/" });
 * export const config = { matcher: ["/", "/((?!_next/static|_next/image|favicon.ico|v1/auth/).*)"] };
 * ```
 */
export function sessionProxy(sessions: SessionsSource, nextResponse: NextResponseLike, options?: GateOptions) {
  const gate = createGate(sessions, options, isPage);
  return async (request: NextRequestLike): Promise<Response> => {
    const base = request.nextUrl?.basePath ?? "";
    const { authentication, response } = await gate(withoutBase(request, base), undefined, {
      base,
      redirect: request.headers.has("next-action") ? redirectAction : undefined,
    });
    if (!response) {
      const passed = nextResponse.next({ request: { headers: authentication.forward } });
      addResponseHeaders(passed.headers, authentication);
      // Pages and routes of the pages router replace `Cache-Control`, but not this header for CDNs (RFC 9213).
      if (authentication.setCookies.length > 0) passed.headers.set("cdn-cache-control", "no-store");
      return passed;
    }
    const location = response.headers.get("location");
    if (location !== null) response.headers.set("location", new URL(location, request.url).href);
    return response;
  };
}
