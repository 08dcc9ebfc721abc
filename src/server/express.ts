/** The adapter for Express, and for other frameworks that take `(request, response, next)` of `node:http`. */
import { createGate, type GateOptions } from "./gate.ts";
import { type NodeRequestLike, type NodeResponseLike, pageRequestOf, users, writePassage } from "./node-request.ts";
import type { SessionsSource } from "./sessions.ts";
import type { User } from "./user.ts";

type Request = NodeRequestLike & { readonly originalUrl?: string };

export { getUser } from "./node-request.ts";

/**
 * Returns the middleware. Handlers after it call `getUser(request)`.
 * @example
 * ```ts
 * import { sessionMiddleware } from "@session-service/server/express";
 *
 * app.use(sessionMiddleware(sessions, { isPublic: (path) => path === "/" }));
 * ```
 */
export function sessionMiddleware(sessions: SessionsSource, options?: GateOptions) {
  const gate = createGate(sessions, options);
  return async (request: Request, response: NodeResponseLike, next: (error?: unknown) => void): Promise<void> => {
    let user: User | undefined;
    try {
      const passage = await gate(pageRequestOf(request, request.originalUrl), request.socket.remoteAddress);
      user = await writePassage(passage, response);
    } catch (error) {
      // Express 4 does not await its middleware: a rejection would end the process.
      return next(error);
    }
    if (!user) return;
    users.set(request, user);
    next();
  };
}
