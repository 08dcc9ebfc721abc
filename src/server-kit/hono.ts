/** The adapter for Hono. */
import { addResponseHeaders, createGate, type GateOptions } from "./gate.ts";
import type { ServerSessions, User } from "./sessions.ts";

/** The parts of Hono's context that are used. */
type Context = {
  readonly req: { readonly raw: Request };
  readonly res: Response;
  set(name: "user", user: User): void;
};

/**
 * Returns middleware that puts the user into `c.get("user")`.
 *
 * @example
 * ```ts
 * import { sessionMiddleware } from "@session-service/server/hono";
 *
 * app.use(sessionMiddleware(sessions, { isProtected: (path) => path.startsWith("/account") }));
 * ```
 */
export function sessionMiddleware(sessions: ServerSessions, options?: GateOptions) {
  const gate = createGate(sessions, options);
  return async (context: Context, next: () => Promise<void>): Promise<Response | undefined> => {
    const { authentication, response } = await gate(context.req.raw);
    if (response) return response;
    context.set("user", authentication.user);
    await next();
    addResponseHeaders(context.res.headers, authentication);
    return undefined;
  };
}
