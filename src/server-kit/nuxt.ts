/** The adapter for Nuxt, and for all other frameworks that use h3. */
import { createGate, type GateOptions } from "./gate.ts";
import { type NodeRequestLike, type NodeResponseLike, pageRequestOf, writePassage } from "./node-request.ts";
import type { ServerSessions, User } from "./sessions.ts";

/** The parts of `H3Event` that are used. */
type Event = {
  readonly node: { readonly req: NodeRequestLike; readonly res: NodeResponseLike };
  readonly context: object;
};

/**
 * Returns a handler for `server/middleware/`, which puts the user into `event.context.user`.
 *
 * @example
 * ```ts
 * import { sessionHandler } from "@session-service/server/nuxt";
 *
 * export default sessionHandler(sessions, { isProtected: (path) => path.startsWith("/account") });
 * ```
 */
export function sessionHandler(sessions: ServerSessions, options?: GateOptions) {
  const gate = createGate(sessions, options);
  const handler = async ({ node: { req, res }, context }: Event): Promise<void> => {
    const user = await writePassage(await gate(pageRequestOf(req), req.socket.remoteAddress), res);
    // If the response has not ended, h3 passes the request on.
    if (user) (context as { user?: User }).user = user;
  };
  // This marks the function in the same way as `defineEventHandler`.
  return Object.assign(handler, { __is_handler__: true as const });
}
