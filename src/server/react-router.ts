/** The adapter for React Router in framework mode. */
import { createGate, type GateOptions, withResponseHeaders } from "./gate.ts";
import type { SessionsSource } from "./sessions.ts";
import type { User } from "./user.ts";

/** The used arguments of a middleware. */
type Arguments<Key> = {
  readonly request: Request;
  /**
   * The address of the page. From version 8 on, `request` may have another one, for data (`/account.data`). Earlier versions pass no `url`.
   */
  readonly url?: URL;
  readonly context: { set(key: Key, user: User): void };
};

/**
 * Returns a middleware for the root route. With a `basename`, all paths include it, also that to which the login returns: remove it before
 * `redirect` of React Router adds it.
 * @param userContext what `createContext<User>()` of `react-router` returns: loaders and actions call `context.get(userContext)`
 * @example
 * ```ts
 * import { sessionMiddleware } from "@session-service/server/react-router";
 * import { createContext } from "react-router";
 *
 * export const userContext = createContext<User>();
 * export const middleware = [sessionMiddleware(sessions, userContext, { isPublic: (path) => path === "/" })];
 * ```
 */
export function sessionMiddleware<Key>(sessions: SessionsSource, userContext: Key, options?: GateOptions) {
  const gate = createGate(sessions, options);
  const dataGate = createGate(sessions, options, () => true);
  return async ({ request, url, context }: Arguments<Key>, next: () => Promise<Response>): Promise<Response> => {
    const { method, headers } = request;
    // A script of React Router fetches the data of a page, and a redirect in that response redirects the browser.
    const isForData = url !== undefined && url.pathname !== new URL(request.url).pathname;
    const page = { method, url: url?.href ?? request.url, headers };
    const { authentication, response } = await (isForData ? dataGate : gate)(page);
    if (response) return response;
    context.set(userContext, authentication.user);
    return withResponseHeaders(await next(), authentication);
  };
}
