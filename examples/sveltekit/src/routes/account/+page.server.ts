import { initialOf } from "@session-service/server";
import { error } from "@sveltejs/kit";
import { keepNote, notesOf } from "../../lib/notes.server";
import { SERVICE } from "../../lib/sessions.server";
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
  // The hook has redirected users without a session to the login, so the only other state is `unavailable`.
  if (user.state !== "active") return { state: user.state };
  const { sub } = user.claims;
  const devices = await devicesOf(user.accessToken);
  return { state: user.state, subject: sub, initial: initialOf(user), notes: notesOf(sub), devices };
};

export const actions: Actions = {
  default: async ({ locals: { user }, request }) => {
    if (user.state !== "active") error(user.state === "ended" ? 401 : 503);
    const form = await request.formData();
    keepNote(user.claims.sub, String(form.get("note")).slice(0, 200));
  },
};
