/** The adapter for React Router in framework mode. */
import { createGate, type GateOptions, withResponseHeaders } from "./gate.ts";
import type { ServerSessions, User } from "./sessions.ts";

/** The used arguments of a middleware. */
type Arguments<Key> = {
  readonly request: Request;
  readonly context: { set(key: Key, user: User): void };
};

/**
 * Returns a middleware for the root route.
 *
 * @param userContext what `createContext<User>()` of `react-router` returns: loaders and actions call `context.get(userContext)`
 * @example
 * ```ts
 * import { sessionMiddleware } from "@session-service/server/react-router";
 * import { createContext } from "react-router";
 *
 * export const userContext = createContext<User>();
 * export const middleware = [sessionMiddleware(sessions, userContext, { isProtected: (path) => path !== "/" })];
 * ```
 */
export function sessionMiddleware<Key>(sessions: ServerSessions, userContext: Key, options?: GateOptions) {
  const gate = createGate(sessions, options);
  return async ({ request, context }: Arguments<Key>, next: () => Promise<Response>): Promise<Response> => {
    const { authentication, response } = await gate(request);
    if (response) return response;
    context.set(userContext, authentication.user);
    return withResponseHeaders(await next(), authentication);
  };
}
