/** The logout, from a form. */
import { addResponseHeaders } from "@session-service/server";
import { getSessions } from "../../lib/sessions.server";
import type { RequestHandler } from "./$types";

export const POST: RequestHandler = async ({ request, getClientAddress }) => {
  // A request without a form names no session.
  const form = await request.formData().catch(() => new FormData());
  const shown = String(form.get("session_id") ?? "");
  const authentication = await getSessions().signOut(request, getClientAddress(), shown);
  const { state } = authentication.user;
  // `active`: another user has signed in since the page was loaded, and stays signed in. If the service could not be reached, the session
  // continues, and the account page displays that the logout has failed.
  const location = state === "ended" ? "/" : state === "active" ? "/account" : "/account?failed";
  const response = new Response(null, { status: 303, headers: { location } });
  addResponseHeaders(response.headers, authentication);
  return response;
};
