/** The adapter for Nuxt, and for all other frameworks that use h3. */
import { createGate, type GateOptions } from "./gate.ts";
import { type NodeRequestLike, type NodeResponseLike, pageRequestOf, writePassage } from "./node-request.ts";
import { requestTarget } from "./paths.ts";
import type { SessionsSource } from "./sessions.ts";
import type { User } from "./user.ts";

/** The parts of `H3Event` that are used. */
type Event = {
  readonly node: { readonly req: NodeRequestLike; readonly res: NodeResponseLike };
  /** The path by which h3 looks for the page. h3 1 decodes it before it removes the base, but removes as many characters from the URL. */
  readonly path?: string;
  readonly context: object;
};

/**
 * Returns `app.baseURL` of Nuxt, without a slash at its end. Nuxt calls its handlers below it, and h3 removes it from the URL.
 * @param context of a request, which says whether it is one of Nuxt: other applications may use the handler below a path
 */
function baseOf({ url = "/", originalUrl = url }: NodeRequestLike, context: object): string {
  if (!("nitro" in context)) return "";
  // For the base itself, h3 makes `/` of the URL that is left.
  const left = url === "/" && !originalUrl.endsWith("/") ? "" : url;
  const base = originalUrl.endsWith(left) ? originalUrl.slice(0, originalUrl.length - left.length) : "";
  // A base like `//other.example` would lead to another site.
  return /^(\/[\w.~-]+)+$/.test(base) ? base : "";
}

/**
 * Returns whether a request is for the error page of Nuxt, which Nuxt fetches from itself for whatever page has failed. It refuses requests
 * of browsers for it.
 */
const isForErrorPage = (request: NodeRequestLike) =>
  "__unenv__" in request && requestTarget(request.url ?? "").path === "/__nuxt_error";

/**
 * Returns a handler for `server/middleware/`, which puts the user into `event.context.user`. Paths are without `app.baseURL`.
 * @example
 * ```ts
 * import { sessionHandler } from "@session-service/server/nuxt";
 *
 * export default sessionHandler(sessions, { isPublic: (path) => path === "/" });
 * ```
 */
export function sessionHandler(sessions: SessionsSource, options?: GateOptions) {
  const gate = createGate(sessions, options);
  const errorGate = createGate(sessions, { ...options, isPublic: () => true, isProtected: () => false });
  const handler = async ({ node: { req, res }, path = "", context }: Event): Promise<Response | undefined> => {
    const check = isForErrorPage(req) ? errorGate : gate;
    const routing = { base: baseOf(req, context), ...(path && { routed: requestTarget(path).path }) };
    const passage = await check(pageRequestOf(req), req.socket.remoteAddress, routing);
    // h3 2 calls the next handler unless this one returns something, even if the response has ended.
    if (passage.response) return passage.response;
    const user = await writePassage(passage, res);
    if (user) (context as { user?: User }).user = user;
    return undefined;
  };
  // This marks the function in the same way as `defineEventHandler`.
  return Object.assign(handler, { __is_handler__: true as const });
}
