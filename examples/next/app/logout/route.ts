/** The logout, from a form. */
import { addResponseHeaders } from "@session-service/server";
import { getSessions } from "../../lib/sessions";

export async function POST(request: Request): Promise<Response> {
  const authentication = await getSessions().signOut(request);
  // If the service could not be reached, the session continues, and the account page displays that the logout has failed.
  const location = authentication.user.state === "ended" ? "/" : "/account?failed";
  const response = new Response(null, { status: 303, headers: { location } });
  addResponseHeaders(response.headers, authentication);
  return response;
}
