/** Runs before every page, endpoint and action: renews the session, refuses requests of other sites, redirects to the login. */
import { sessionHandle } from "@session-service/server/sveltekit";
import { getSessions } from "./lib/sessions.server";

const isProtected = (path: string) => path === "/account" || path.startsWith("/account/");
let handleSession: ReturnType<typeof sessionHandle> | undefined;

export const handle: ReturnType<typeof sessionHandle> = (input) => {
  // The browser kit calls the service on the origin of the page.
  if (new URL(input.event.request.url).pathname.startsWith("/v1/auth/"))
    return Promise.resolve(input.resolve(input.event));
  // The hook is created with the first request, because a build loads this module too and must not connect to the service.
  handleSession ??= sessionHandle(getSessions(), { isProtected });
  return handleSession(input);
};
