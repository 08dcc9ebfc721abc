/**
 * The API reference: Swagger UI shows the operations, and this script adds what it lacks. It lists all operations beside them, fills in
 * tokens so that nobody has to paste them, and removes forms of authorization that cannot work.
 */
const { api, signIn } = document.body.dataset;
const element = (id) => document.getElementById(id);
let accessToken = "";
/** The name under which this tab stores the key for signing in, so that it can still sign in after a reload. */
const KEPT_KEY = "docs-sign-in-key";
const signInKey = takeKey();

/** Takes the key for signing in from the address, or from the storage of the tab, where an earlier load of the page has put it. */
function takeKey() {
  const given = new URLSearchParams(location.hash.slice(1)).get("key") ?? "";
  if (given === "") return inStorage((storage) => storage.getItem(KEPT_KEY)) ?? "";
  inStorage((storage) => storage.setItem(KEPT_KEY, given));
  history.replaceState(null, "", location.pathname);
  return given;
}

/**
 * Calls a function with the storage of the tab. A browser that blocks storage throws at each use. Then nothing is kept, and the page
 * works until it is reloaded.
 */
function inStorage(use) {
  try {
    return use(sessionStorage);
  } catch {
    return undefined;
  }
}

const dark = matchMedia("(prefers-color-scheme: dark)");
const followScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);
dark.addEventListener("change", followScheme);
followScheme();

/** The bar at the top replaces Swagger UI's own forms for credentials. */
const none = () => () => null;
const withoutAuthorization = {
  wrapComponents: { authorizeBtn: none, authorizeOperationBtn: none, ServersContainer: none, DarkModeToggle: none },
};

const FIRST = new Set(["SessionService", "SessionAdminService"]);

function setToken(token, status) {
  accessToken = token;
  element("token").value = token;
  element("status").textContent = status;
}

/** The response to a refresh contains the next token, which the page uses from then on. */
function takeToken(response) {
  const token = response.ok && api === "public" ? response.obj?.data?.accessToken : undefined;
  if (typeof token === "string") setToken(token, "The access token of the last refresh is in use.");
  return response;
}

async function start() {
  const document_ = await (await fetch("openapi.json")).json();
  // The document has its services in the order of their files, and the page begins with what everybody uses.
  document_.tags.sort((one, other) => FIRST.has(other.name) - FIRST.has(one.name));
  const ui = SwaggerUIBundle({
    spec: document_,
    domNode: element("reference"),
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: -1,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    // The command beside a response contains the access token, never an admin token.
    showMutatedRequest: api === "public",
    // Without this setting, the document's address would be sent to an online validator.
    validatorUrl: null,
    plugins: [withoutAuthorization],
    requestInterceptor(request) {
      if (accessToken !== "" && !request.loadSpec) request.headers.Authorization = `Bearer ${accessToken}`;
      return request;
    },
    responseInterceptor: takeToken,
    onComplete: () => listOperations(document_, ui),
  });
}

function listOperations({ paths, tags }, ui) {
  const groups = new Map(tags.map(({ name }) => [name, []]));
  for (const [path, operations] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const [tag = "default"] = operation.tags ?? [];
      const item = link(method, api === "admin" ? path.split("/").at(-1) : path, operation);
      item.addEventListener("click", () => ui.layoutActions.show(["operations", tag, operation.operationId], true));
      groups.set(tag, [...(groups.get(tag) ?? []), item]);
    }
  }
  const navigation = element("operations");
  for (const [tag, items] of groups) {
    const heading = document.createElement("h2");
    heading.textContent = tag.split(".").at(-1);
    const list = document.createElement("ul");
    for (const item of items) list.appendChild(document.createElement("li")).append(item);
    navigation.append(heading, list);
  }
}

function link(method, name, { operationId, tags = [] }) {
  const badge = document.createElement("span");
  badge.className = `verb ${method}`;
  badge.textContent = method;
  const text = document.createElement("span");
  text.textContent = name;
  const button = document.createElement("button");
  button.type = "button";
  button.append(badge, text);
  button.addEventListener("click", () => {
    for (const other of element("operations").querySelectorAll("[aria-current]")) other.removeAttribute("aria-current");
    button.setAttribute("aria-current", "true");
    const target = `operations-${tags[0] ?? "default"}-${operationId}`.replaceAll(/[^\w-]/g, "_");
    const found = element(target) ?? document.querySelector(`[id$="-${CSS.escape(operationId)}"]`);
    found?.scrollIntoView({ block: "start" });
  });
  return button;
}

element("token").addEventListener("input", (event) => {
  accessToken = event.currentTarget.value.trim();
  element("status").textContent = accessToken === "" ? "" : "This token is sent with every request.";
});

if (signIn === "true") {
  const form = element("sign-in");
  form.hidden = false;
  if (signInKey === "") {
    element("subject").disabled = true;
    form.querySelector("button").disabled = true;
    element("status").textContent = "To sign in here, open the address that the service printed at its start.";
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const subject = element("subject").value;
    const response = await fetch("docs/sign-in", {
      method: "POST",
      headers: { "content-type": "application/json", "x-docs-key": signInKey },
      body: JSON.stringify({ subject }),
    });
    if (response.ok)
      setToken((await response.json()).accessToken, `Signed in as ${subject}: token and cookie are in use.`);
    else if (response.status === 403) {
      element("status").textContent = "The address is of an earlier start: open the new one.";
      inStorage((storage) => storage.removeItem(KEPT_KEY));
    } else element("status").textContent = `Refused: ${response.status}`;
  });
}

start();
