/** The adapter for SvelteKit. */
import { createGate, type GateOptions, withResponseHeaders } from "./gate.ts";
import { knownAddress } from "./request-headers.ts";
import type { SessionsSource } from "./sessions.ts";
import type { User } from "./user.ts";

/** The parts of the input of a SvelteKit `handle` that are used. */
type Input<Event> = {
  readonly event: Event;
  readonly resolve: (event: Event) => Response | Promise<Response>;
};
type EventLike = {
  readonly request: Request;
  /** In a request for the data of a page, this is the address of the page. */
  readonly url: URL;
  readonly isDataRequest: boolean;
  /** Whether the application itself made the request by `event.fetch`. Such a request has neither Fetch Metadata nor a `Host` header. */
  readonly isSubRequest?: boolean;
  /** The locals of the request. Declare `user: User` in `App.Locals`. */
  readonly locals: object;
  getClientAddress(): string;
};

/** Redirects as a form action does, for the script of `use:enhance`. */
const redirectAction = (location: string) => Response.json({ type: "redirect", status: 303, location });

/** Returns the request of a form without the name of the action (`?/name`): the login returns to the page, and not to the action. */
const withoutAction = ({ method, url, headers }: Request) => ({
  method,
  headers,
  url: url.replace(/\?\/[^&#]*&?/, "?"),
});

/**
 * Returns the hook `handle`, which puts the user into `event.locals.user`. In a production build, SvelteKit itself refuses forms of other
 * origins before the hook runs, unless `csrf.trustedOrigins` lists them. The hook checks the other methods and content types as well, by
 * Fetch Metadata.
 * @example
 * ```ts
 * import { sessionHandle } from "@session-service/server/sveltekit";
 *
 * export const handle = sessionHandle(sessions, { isPublic: (path) => path === "/" });
 * ```
 */
export function sessionHandle(sessions: SessionsSource, options?: GateOptions) {
  const gate = createGate(sessions, options);
  const dataGate = createGate(sessions, options, () => true);
  const ownGate = createGate(sessions, { ...options, origins: false });
  return async <Event extends EventLike>({ event, resolve }: Input<Event>): Promise<Response> => {
    const { request, url, isDataRequest, isSubRequest } = event;
    // SvelteKit throws an error if it knows no address of the client, as during prerendering.
    const address = knownAddress(() => event.getClientAddress());
    const isEnhanced = request.method === "POST" && request.headers.get("x-sveltekit-action") === "true";
    const redirect = isEnhanced ? redirectAction : undefined;
    // SvelteKit loads the data of a page by script from a separate address, and a redirect in that response redirects the browser.
    const { authentication, response } = isDataRequest
      ? await dataGate({ method: request.method, url: url.href, headers: request.headers }, address)
      : await (isSubRequest ? ownGate : gate)(isEnhanced ? withoutAction(request) : request, address, { redirect });
    if (response) return response;
    (event.locals as { user?: User }).user = authentication.user;
    return withResponseHeaders(await resolve(event), authentication);
  };
}
