/** The adapter for Astro. */
import { createGate, type GateOptions, withResponseHeaders } from "./gate.ts";
import { knownAddress } from "./request-headers.ts";
import type { SessionsSource } from "./sessions.ts";
import type { User } from "./user.ts";

/** The parts of `APIContext` that are used. */
type Context = {
  readonly request: Request;
  /** The address by which Astro chooses the page, decoded until nothing is left to decode. */
  readonly url: URL;
  /** The locals of the request. Declare `user: User` in `App.Locals`. */
  readonly locals: object;
  readonly isPrerendered: boolean;
  readonly clientAddress: string;
};

/**
 * Returns the middleware `onRequest`, which puts the user into `Astro.locals.user`.
 * @example
 * ```ts
 * import { sessionMiddleware } from "@session-service/server/astro";
 *
 * export const onRequest = sessionMiddleware(sessions, { isPublic: (path) => path === "/" });
 * ```
 */
export function sessionMiddleware(sessions: SessionsSource, options?: GateOptions) {
  const gate = createGate(sessions, options);
  return async (context: Context, next: () => Promise<Response>): Promise<Response> => {
    // A prerendered page is the same for all users, and was rendered without a request.
    if (context.isPrerendered) return next();
    // Astro throws an error if its adapter knows no address of the client.
    const address = knownAddress(() => context.clientAddress);
    const { authentication, response } = await gate(context.request, address, { routed: context.url.pathname });
    if (response) return response;
    (context.locals as { user?: User }).user = authentication.user;
    return withResponseHeaders(await next(), authentication);
  };
}
