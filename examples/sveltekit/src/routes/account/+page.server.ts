import { initialOf } from "@session-service/server";
import { keepNote, notesOf } from "../../lib/notes.server";
import { requireCurrentUser, SERVICE } from "../../lib/sessions.server";
import type { Actions, PageServerLoad } from "./$types";

type Device = { readonly sessionId: string; readonly userAgent: string; readonly current?: boolean };

/** Returns the sessions of the access token's user; none if the service does not respond, so that the page is displayed anyway. */
async function devicesOf(accessToken: string): Promise<readonly Device[]> {
  const headers = { authorization: `Bearer ${accessToken}` };
  try {
    const response = await fetch(`${SERVICE}/v1/auth/sessions`, { headers });
    return response.ok ? (await response.json()).data.sessions : [];
  } catch {
    return [];
  }
}

export const load: PageServerLoad = async ({ locals: { user } }) => {
  if (user.state === "unavailable") return { state: user.state };
  const { state, claims, accessToken } = requireCurrentUser(user);
  const devices = await devicesOf(accessToken);
  return {
    state,
    subject: claims.sub,
    sessionId: claims.sid,
    initial: initialOf(user),
    notes: notesOf(claims.sub),
    devices,
  };
};

export const actions: Actions = {
  default: async ({ locals: { user }, request }) => {
    const { claims } = requireCurrentUser(user);
    const form = await request.formData();
    keepNote(claims.sub, String(form.get("note")).slice(0, 200));
  },
};
