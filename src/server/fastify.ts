/** The adapter for Fastify. */
import { createGate, type GateOptions } from "./gate.ts";
import { keepRenewal, type NodeRequestLike, type NodeResponseLike, pageRequestOf, users } from "./node-request.ts";
import type { SessionsSource } from "./sessions.ts";

type Request = { readonly raw: NodeRequestLike };
/** The methods of a Fastify reply that the hook calls. */
type Reply = {
  readonly raw: Pick<NodeResponseLike, "getHeader" | "setHeader" | "writeHead">;
  code(status: number): Reply;
  getHeader(name: string): unknown;
  header(name: string, value: string): Reply;
  send(body: string): unknown;
};

export { getUser } from "./node-request.ts";

/**
 * Returns the hook `onRequest`. Handlers after it call `getUser(request)`.
 * @example
 * ```ts
 * import { sessionHook } from "@session-service/server/fastify";
 *
 * app.addHook("onRequest", sessionHook(sessions, { isPublic: (path) => path === "/" }));
 * ```
 */
export function sessionHook(sessions: SessionsSource, options?: GateOptions) {
  const gate = createGate(sessions, options);
  return async (request: Request, reply: Reply): Promise<unknown> => {
    const { authentication, response } = await gate(pageRequestOf(request.raw), request.raw.socket.remoteAddress);
    for (const [name, value] of response?.headers ?? authentication.responseHeaders) {
      // Fastify replaces an earlier value of every header except `Set-Cookie`, so the new `Vary` must contain the earlier one.
      const earlier = name === "vary" ? reply.getHeader(name) : undefined;
      reply.header(name, earlier ? `${earlier}, ${value}` : value);
    }
    if (response) return reply.code(response.status).send(await response.text());
    keepRenewal(authentication, reply.raw);
    users.set(request, authentication.user);
    return undefined;
  };
}
