/** The page of the example. It displays the state of the session. */
// In your project, import from "@session-service/browser".
import { createSession, SessionError } from "../../../src/browser/index.ts";

type Device = {
  sessionId: string;
  displayName?: string;
  lastRefreshTime: string;
  current?: boolean;
  /** Who uses the session in place of the user. */
  actor?: string;
};

/** The hint cookie shows whether a user is signed in. Without the cookie, the page sends no request to the service. */
const session = createSession({ hintCookie: "signed_in" });

const find = <T extends HTMLElement>(id: string) => document.getElementById(id) as T;
const [banner, news, loginError] = [find("banner"), find("news"), find("login-error")];
const [form, password] = [find<HTMLFormElement>("login"), find<HTMLInputElement>("password")];

let shown = session.snapshot;
let atLogin = false;
session.subscribe(show);

function show(): void {
  const before = shown;
  shown = session.snapshot;
  const { state, claims } = shown;
  const isOther = claims?.sid !== before.claims?.sid;
  showActor(claims);
  document.body.dataset.state = state;
  document.title = state === "ended" ? "Sign in – Notes" : "Notes";
  find("name").textContent = claims ? `${claims.name}, ${claims.role}` : "";
  banner.textContent = state === "offline" ? "You are offline. What you see may be out of date." : "";
  // Another user may have signed in, so the data of the previous one is removed.
  if (state === "ended" || isOther) for (const id of ["notes", "devices"]) find(id).replaceChildren();
  if (state === "active" && (before.state !== "active" || isOther)) void load();
  // The focused element may have disappeared, so the focus moves to the element that the user needs next.
  if (state === "ended") {
    if (before.claims) news.textContent = "You are signed out.";
    find("email").focus();
    atLogin = true;
  } else if (state === "active" && atLogin) {
    news.textContent = "You are signed in.";
    find("notes-title").focus();
    atLogin = false;
  }
}

/** Displays who uses the session in place of its user, which the access token says, so that nobody forgets it. */
function showActor(claims: typeof shown.claims): void {
  const actor = (claims?.act as { readonly sub: string } | undefined)?.sub;
  const [text, end] = [find("acting").querySelector("span"), find("acting").querySelector("button")];
  if (text) text.textContent = actor === undefined ? "" : `Signed in as ${claims?.name} by ${actor}.`;
  if (end) end.hidden = actor === undefined;
  for (const id of ["support", "roles"]) find(id).hidden = claims?.role !== "support";
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

/** Runs an action and displays its failure. If the session has ended, no message is needed, because the login is displayed. */
async function attempt(action: () => Promise<void>): Promise<void> {
  try {
    await action();
    if (session.snapshot.state !== "offline") banner.textContent = "";
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

/** Creates a list item. The texts come from clients, so they are set as text and never as HTML. */
function item(text: string, detail = ""): HTMLLIElement {
  const element = document.createElement("li");
  const [main, small] = [document.createElement("span"), document.createElement("small")];
  main.textContent = text;
  small.textContent = detail;
  element.append(main, small);
  return element;
}

function deviceItem({ sessionId, displayName = "A device", lastRefreshTime, current, actor }: Device): HTMLLIElement {
  const time = new Date(lastRefreshTime).toLocaleString([], { dateStyle: "medium", timeStyle: "short" });
  const used = actor ? `Used by ${actor}. ` : "";
  const element = item(displayName, used + (current ? "This device" : `Last seen ${time}`));
  if (current) return element;
  const button = document.createElement("button");
  button.className = "quiet";
  button.textContent = "Sign out";
  button.setAttribute("aria-label", `Sign out ${displayName}, last seen ${time}`);
  button.onclick = () => endSessions(`/v1/auth/sessions/${sessionId}`, "DELETE", `${displayName} is signed out.`);
  element.append(button);
  return element;
}

const endSessions = (path: string, method: string, done: string) =>
  attempt(async () => {
    await read(path, method);
    await load();
    news.textContent = done;
    // The pressed button has been removed, so the focus moves to the title.
    find("devices-title").focus();
  });

find("end-others").onclick = () =>
  endSessions("/v1/auth/sessions:revokeOthers", "POST", "All other devices are signed out.");
for (const button of find("acting").getElementsByTagName("button")) button.onclick = () => attempt(() => session.end());
find("reload").onclick = load;

/** Sends a form of support to the application, with the access token. */
function onSupport(id: string, path: string, done: () => Promise<void> | void): void {
  const form = find<HTMLFormElement>(id);
  form.onsubmit = (event) => {
    event.preventDefault();
    const body = new URLSearchParams([...new FormData(form)] as [string, string][]);
    return attempt(async () => {
      const response = await session.fetch(path, { method: "POST", body });
      if (!response.ok) throw new Error(`${path}: ${response.status}`);
      form.reset();
      await done();
    });
  };
}
onSupport("support", "/support/sign-in", () => session.begin());
onSupport("roles", "/support/role", () => {
  news.textContent = "The role is changed.";
});
find("sign-out").onclick = () => attempt(() => session.end());

const LOGIN_ERRORS: Readonly<Record<number, string>> = {
  401: "Wrong email or password.",
  429: "Too many attempts. Please wait some minutes.",
  503: "Signing in is not possible at the moment. Please try again in a minute.",
};

function refuse(message: string): void {
  loginError.textContent = message;
  password.focus();
  password.select();
}

form.onsubmit = async (event) => {
  event.preventDefault();
  loginError.textContent = "";
  try {
    // The form is encoded as the browser itself would encode it.
    const body = new URLSearchParams([...new FormData(form)] as [string, string][]);
    const response = await fetch("/login", { method: "POST", body });
    if (!response.ok) return refuse(LOGIN_ERRORS[response.status] ?? "Please try again.");
    form.reset();
    // The browser has the new cookie, so every tab checks the session again.
    await session.begin();
  } catch {
    refuse("The server cannot be reached. Please try again.");
  }
};
