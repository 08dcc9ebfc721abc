/** The adapter for Nuxt, and for all other frameworks that use h3. */
import { createGate, type GateOptions } from "./gate.ts";
import { type NodeRequestLike, type NodeResponseLike, pageRequestOf, writePassage } from "./node-request.ts";
import type { SessionsSource } from "./sessions.ts";
import type { User } from "./user.ts";

/** The parts of `H3Event` that are used. */
type Event = {
  readonly node: { readonly req: NodeRequestLike; readonly res: NodeResponseLike };
  readonly context: object;
};

/**
 * Returns a handler for `server/middleware/`, which puts the user into `event.context.user`.
 * @example
 * ```ts
 * import { sessionHandler } from "@session-service/server/nuxt";
 *
 * export default sessionHandler(sessions, { isPublic: (path) => path === "/" });
 * ```
 */
export function sessionHandler(sessions: SessionsSource, options?: GateOptions) {
  const gate = createGate(sessions, options);
  const handler = async ({ node: { req, res }, context }: Event): Promise<Response | undefined> => {
    const passage = await gate(pageRequestOf(req), req.socket.remoteAddress);
    // h3 2 calls the next handler unless this one returns something, even if the response has ended.
    if (passage.response) return passage.response;
    const user = await writePassage(passage, res);
    if (user) (context as { user?: User }).user = user;
    return undefined;
  };
  // This marks the function in the same way as `defineEventHandler`.
  return Object.assign(handler, { __is_handler__: true as const });
}
