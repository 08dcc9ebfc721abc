/** Runs before every page, route handler and action: renews the session, refuses requests of other sites, redirects to the login. */
import { sessionProxy } from "@session-service/server/next";
import { type NextRequest, NextResponse } from "next/server";
import { getSessions, SERVICE } from "./lib/sessions";

export async function proxy(request: NextRequest): Promise<Response> {
  const { pathname } = request.nextUrl;
  // The browser kit calls the service on the origin of the page.
  if (pathname.startsWith("/v1/auth/")) return NextResponse.rewrite(new URL(pathname, SERVICE));
  return sessionProxy(getSessions(), NextResponse, {
    isProtected: (path) => path === "/account" || path.startsWith("/account/"),
  })(request);
}

// The proxy does not run for static files. Nor does it run for route handlers below /api, which verify bearer tokens themselves.
export const config = { matcher: ["/((?!_next/static|_next/image|favicon.ico|api/).*)"] };
