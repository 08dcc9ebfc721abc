/** Runs before every page, route handler and action: renews the session, refuses other sites, leads to the login. */
import { sessionProxy } from "@session-service/server/next";
import { type NextRequest, NextResponse } from "next/server";
import { getSessions } from "./lib/sessions";

export function proxy(request: NextRequest): Promise<Response> {
  return sessionProxy(getSessions(), NextResponse, {
    isProtected: (path) => path === "/account" || path.startsWith("/account/"),
  })(request);
}

// Files cost no verification. Route handlers with bearer tokens check for themselves.
export const config = { matcher: ["/((?!_next/static|_next/image|favicon.ico|api/).*)"] };
