import { initialOf } from "@session-service/server";
import { notesOf } from "../../lib/notes";
import { currentUser, requireCurrentUser, SERVICE } from "../../lib/sessions";
import { addNote, leave } from "./actions";
import { SignedIn } from "./signed-in";

type Device = { readonly sessionId: string; readonly userAgent: string; readonly current?: boolean };

/** Returns the sessions of the access token's user; none if the service does not respond, so that the page is displayed anyway. */
async function devicesOf(accessToken: string): Promise<readonly Device[]> {
  const headers = { authorization: `Bearer ${accessToken}` };
  try {
    const response = await fetch(`${SERVICE}/v1/auth/sessions`, { headers, cache: "no-store" });
    return response.ok ? (await response.json()).data.sessions : [];
  } catch {
    return [];
  }
}

export default async function Account() {
  if ((await currentUser()).state === "unavailable") return <p id="state">unavailable</p>;
  const user = await requireCurrentUser();
  const devices = await devicesOf(user.accessToken);
  return (
    <main>
      <h1>Account of {user.claims.sub}</h1>
      <p id="state">{user.state}</p>
      <SignedIn initial={initialOf(user)} />
      <ul aria-label="Notes">
        {notesOf(user.claims.sub).map((note) => (
          <li key={note}>{note}</li>
        ))}
      </ul>
      <form action={addNote}>
        <label>
          Note <input name="note" required />
        </label>
        <button type="submit">Add</button>
      </form>
      <ul aria-label="Devices">
        {devices.map(({ sessionId, userAgent, current }) => (
          <li key={sessionId}>{current ? "This device" : userAgent}</li>
        ))}
      </ul>
      <form action={leave}>
        <input type="hidden" name="session_id" value={user.claims.sid} />
        <button type="submit">Sign out</button>
      </form>
    </main>
  );
}
