/** Runs before every page, endpoint and action: renews the session, refuses requests of other sites, redirects to the login. */
import { sessionHandle } from "@session-service/server/sveltekit";
import type { Handle } from "@sveltejs/kit/hooks";
import { getSessions } from "./lib/sessions.server";

const OPEN = new Set(["/", "/logout"]);
/** Everything else is only for users who are signed in. */
const isPublic = (path: string) => OPEN.has(path) || path.startsWith("/login/");
const handleSession = sessionHandle(getSessions, { isPublic });

export const handle: Handle = (input) => {
  // The browser kit calls the service on the origin of the page.
  if (input.event.route.id === "/v1/auth/[...path]") return Promise.resolve(input.resolve(input.event));
  return handleSession(input);
};
