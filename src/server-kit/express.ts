/** Express, and everything else that takes `(request, response, next)` of `node:http`. */
import { createGate, type GateOptions } from "./gate.ts";
import { type NodeRequestLike, pageRequestOf } from "./node-request.ts";
import type { ServerSessions, User } from "./sessions.ts";

type Request = NodeRequestLike & { readonly originalUrl?: string };
type Response = {
  statusCode: number;
  appendHeader(name: string, value: string | readonly string[]): unknown;
  end(body?: string): unknown;
};

const users = new WeakMap<object, User>();

/** The user of a request that the middleware has passed on. */
export const getUser = (request: object): User => users.get(request) ?? { state: "unavailable" };

/**
 * Middleware; handlers behind it call `getUser(request)`.
 *
 * @example
 * ```ts
 * import { sessionMiddleware } from "@session-service/server/express";
 *
 * app.use(sessionMiddleware(sessions, { isProtected: (path) => path.startsWith("/account") }));
 * ```
 */
export function sessionMiddleware(sessions: ServerSessions, options?: GateOptions) {
  const gate = createGate(sessions, options);
  return async (request: Request, response: Response, next: () => void): Promise<void> => {
    const page = pageRequestOf(request, request.originalUrl);
    const { authentication, response: own } = await gate(page, request.socket.remoteAddress);
    for (const [name, value] of own?.headers ?? authentication.responseHeaders) response.appendHeader(name, value);
    if (own) {
      response.statusCode = own.status;
      response.end(await own.text());
      return;
    }
    users.set(request, authentication.user);
    next();
  };
}
