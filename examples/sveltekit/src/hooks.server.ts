/** Runs before every page, endpoint and action: renews the session, refuses other sites, leads to the login. */
import { sessionHandle } from "@session-service/server/sveltekit";
import { getSessions } from "./lib/sessions.server";

const isProtected = (path: string) => path === "/account" || path.startsWith("/account/");
let handleSession: ReturnType<typeof sessionHandle> | undefined;

export const handle: ReturnType<typeof sessionHandle> = (input) => {
  // The browser kit calls the service on the origin of the page.
  if (new URL(input.event.request.url).pathname.startsWith("/v1/auth/"))
    return Promise.resolve(input.resolve(input.event));
  // With the first request: a build loads this module too.
  handleSession ??= sessionHandle(getSessions(), { isProtected });
  return handleSession(input);
};
