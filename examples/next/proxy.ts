/** Runs before every page, route handler and action: renews the session, refuses requests of other sites, redirects to the login. */
import { sessionProxy } from "@session-service/server/next";
import { type NextRequest, NextResponse } from "next/server";
import { getSessions, SERVICE } from "./lib/sessions";

const OPEN = new Set(["/", "/icon.svg"]);
const guarded = sessionProxy(getSessions, NextResponse, {
  // Everything else is only for users who are signed in. The route handlers below /api verify bearer tokens themselves.
  isPublic: (path) => OPEN.has(path) || path.startsWith("/api/"),
});

export async function proxy(request: NextRequest): Promise<Response> {
  const { pathname, search } = request.nextUrl;
  // The browser kit calls the service on the origin of the page.
  if (pathname.startsWith("/v1/auth/")) return NextResponse.rewrite(new URL(pathname + search, SERVICE));
  return guarded(request);
}

// The proxy does not run for static files. With a `basePath`, the second pattern leaves the home page out.
export const config = { matcher: ["/", "/((?!_next/static|_next/image|favicon.ico).*)"] };
