/** The page of the example: what is shown follows the state of the session. */
// In your project: "@session-service/browser".
import { createSession, SessionError } from "../../../src/browser/index.ts";

type Device = { sessionId: string; displayName?: string; lastRefreshTime: string; current?: boolean };

/** With the hint cookie a visitor who is not signed in causes no request. */
const session = createSession({ hintCookie: "signed_in" });

const find = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const [banner, loginError] = [find("banner"), find("login-error")];
const form = find<HTMLFormElement>("login");

let shown = session.snapshot;
session.subscribe(show);

function show(): void {
  const before = shown;
  shown = session.snapshot;
  const { state, claims } = shown;
  document.body.dataset.state = state;
  find("name").textContent = String(claims?.name ?? "");
  banner.textContent = state === "offline" ? "You are offline. What you see may be out of date." : "";
  // Another person may have signed in: nothing of the one before stays.
  if (state === "ended" || claims?.sid !== before.claims?.sid)
    for (const id of ["notes", "devices"]) find(id).replaceChildren();
  if (state === "active" && (before.state !== "active" || claims?.sid !== before.claims?.sid)) void load();
  if (state === "ended") find("email").focus();
}

async function load(): Promise<void> {
  await attempt(async () => {
    const [notes, devices] = await Promise.all([read("/api/notes"), read("/v1/auth/sessions")]);
    find("notes").replaceChildren(...(notes.notes as string[]).map((note) => item(note)));
    const { sessions } = devices.data as { sessions: Device[] };
    find("devices").replaceChildren(...sessions.map(deviceItem));
    find("end-others").hidden = sessions.length < 2;
  });
}

/** Shows what went wrong. A session that has ended needs no message: the login is there by now. */
async function attempt(action: () => Promise<void>): Promise<void> {
  try {
    await action();
  } catch (error) {
    if (error instanceof SessionError && error.reason === "ended") return;
    banner.textContent = "That did not work. Check your connection and try again.";
  }
}

async function read(path: string, method = "GET"): Promise<Record<string, unknown>> {
  const response = await session.fetch(path, { method });
  if (!response.ok) throw new Error(`${path}: ${response.status}`);
  return (await response.json()) as Record<string, unknown>;
}

/** Text is set as text: what a user agent calls itself is not HTML. */
function item(text: string, detail = ""): HTMLLIElement {
  const [element, main, small] = ["li", "span", "small"].map((name) => document.createElement(name));
  (main as HTMLElement).textContent = text;
  (small as HTMLElement).textContent = detail;
  element?.append(main as HTMLElement, small as HTMLElement);
  return element as HTMLLIElement;
}

function deviceItem({ sessionId, displayName, lastRefreshTime, current }: Device): HTMLLIElement {
  const time = new Date(lastRefreshTime).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const element = item(displayName ?? "A device", current ? "This device" : `Last seen ${time}`);
  if (current) return element;
  const button = document.createElement("button");
  button.className = "quiet";
  button.textContent = "Sign out";
  button.setAttribute("aria-label", `Sign out ${displayName ?? "a device"}`);
  button.onclick = () => endSessions(`/v1/auth/sessions/${sessionId}`, "DELETE");
  element.append(button);
  return element;
}

const endSessions = (path: string, method: string) =>
  attempt(async () => {
    await read(path, method);
    await load();
  });

find("end-others").onclick = () => endSessions("/v1/auth/sessions:revokeOthers", "POST");
find("sign-out").onclick = () => attempt(() => session.end());

form.onsubmit = async (event) => {
  event.preventDefault();
  loginError.textContent = "";
  try {
    const response = await fetch("/login", {
      method: "POST",
      body: JSON.stringify(Object.fromEntries(new FormData(form))),
    });
    if (response.ok) {
      form.reset();
      // The cookie is there: every tab looks again.
      await session.begin();
    } else loginError.textContent = response.status === 401 ? "Wrong email or password." : "Please try again.";
  } catch {
    loginError.textContent = "The server cannot be reached. Please try again.";
  }
};
