/** Requires access tokens in route handlers of Next.js, and in any other function that takes a `Request` and returns a `Response`. */
import { readFileSync } from "node:fs";
import { perProcess } from "@session-service/server";
import { authorize, type Claims, createVerifier } from "@session-service/verifier";

export const ADMIN_URL = process.env.SESSION_ADMIN_URL ?? "http://127.0.0.1:8081";
export const adminToken = (): string =>
  // The comment in the call keeps the bundler from including the token file of the machine that builds.
  readFileSync(/* turbopackIgnore: true */ process.env.SESSION_ADMIN_TOKEN_FILE ?? "data/admin-token", "utf8").trim();

/** The process keeps one verifier, although Next.js loads this module several times: for the proxy, for pages and for route handlers. */
export const getVerifier = perProcess("verifier", () =>
  createVerifier({
    adminUrl: ADMIN_URL,
    adminToken,
    issuer: process.env.ISSUER ?? "http://127.0.0.1:8080",
    audience: process.env.AUDIENCE ?? process.env.ISSUER ?? "http://127.0.0.1:8080",
    report: (event) => console.error(event),
  }),
);

type Handler<Rest extends unknown[]> = (
  request: Request,
  claims: Claims,
  ...rest: Rest
) => Response | Promise<Response>;

/**
 * Wraps a handler, so that it is called only for requests with a valid access token. Other requests get 401 or 503. The wrapper needs the
 * Node.js runtime.
 */
export function signedIn<Rest extends unknown[]>(handler: Handler<Rest>) {
  return async (request: Request, ...rest: Rest): Promise<Response> => {
    const caller = await authorize(getVerifier(), request.headers.get("authorization"));
    if (!caller.ok) return new Response(caller.body, { status: caller.status, headers: caller.headers });
    return handler(request, caller.claims, ...rest);
  };
}
