/** The adapter for Hono. */
import { createGate, type GateOptions, withResponseHeaders } from "./gate.ts";
import type { SessionsSource } from "./sessions.ts";
import type { User } from "./user.ts";

/** The parts of Hono's context that are used. */
type Context = {
  readonly req: { readonly raw: Request };
  res: Response;
  set(name: "user", user: User): void;
};

/**
 * Returns middleware that puts the user into `c.get("user")`.
 * @example
 * ```ts
 * import { sessionMiddleware } from "@session-service/server/hono";
 *
 * app.use(sessionMiddleware(sessions, { isPublic: (path) => path === "/" }));
 * ```
 */
export function sessionMiddleware(sessions: SessionsSource, options?: GateOptions) {
  const gate = createGate(sessions, options);
  return async (context: Context, next: () => Promise<void>): Promise<Response | undefined> => {
    const { authentication, response } = await gate(context.req.raw);
    if (response) return response;
    context.set("user", authentication.user);
    await next();
    const own = withResponseHeaders(context.res, authentication);
    // The old response is removed first. Otherwise Hono would copy the old headers to the new response, and the old cookies would replace
    // those of the kit.
    (context as { res: Response | undefined }).res = undefined;
    context.res = own;
    return undefined;
  };
}
