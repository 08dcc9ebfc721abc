/** A login by OpenID Connect that creates a session: /login redirects to the provider, which redirects back to /login/callback. */
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connectProvider, type PendingLogin } from "./provider.js";
import { connectSessions } from "./sessions.js";

const {
  /** The origin of this application and of the session service, behind one proxy. */
  ORIGIN = "http://127.0.0.1:3000",
  PORT = "3000",
  OIDC_ISSUER = "",
  OIDC_CLIENT_ID = "",
  OIDC_CLIENT_SECRET = "",
  SESSION_ADMIN_URL = "http://127.0.0.1:8081",
  SESSION_ADMIN_TOKEN_FILE = "data/admin-token",
  /** Set this variable to 1 if a proxy in front sets X-Forwarded-For. */
  TRUST_PROXY = "0",
  /** `SESSION_HINT_COOKIE` of the session service. If it has the prefix `__Host-`, a login ends the browser's earlier session. */
  HINT_COOKIE = "",
} = process.env;

const provider = await connectProvider({
  issuer: OIDC_ISSUER,
  clientId: OIDC_CLIENT_ID,
  clientSecret: OIDC_CLIENT_SECRET,
  redirectUri: `${ORIGIN}/login/callback`,
});
const sessions = connectSessions(SESSION_ADMIN_URL, () => readFileSync(SESSION_ADMIN_TOKEN_FILE, "utf8").trim());

const SESSION_ID = /^[\w-]{23}$/;
const SECURE = ORIGIN.startsWith("https:");
/** The prefix keeps sibling domains from setting the cookie. A planted cookie would sign the user in as somebody else (login CSRF). */
const LOGIN = SECURE ? "__Host-login" : "login";
/** SameSite is Lax, because the provider's redirect is a navigation from another site. */
const COOKIE = `Path=/; HttpOnly; SameSite=Lax${SECURE ? "; Secure" : ""}`;

/** Returns the value of a cookie; undefined if there is none, or if there are several different values. */
function readCookie({ headers }: IncomingMessage, name: string): string | undefined {
  const values = new Set<string>();
  for (const pair of (headers.cookie ?? "").split(";")) {
    // trim() is not used: it removes more kinds of spaces than browsers do, so a cookie with another name could be taken for this cookie.
    const [, key, value = ""] = /^[ \t]*([^=]*?)[ \t]*=[ \t]*(.*?)[ \t]*$/.exec(pair) ?? [];
    if (key === name) values.add(value);
  }
  const [value] = values;
  return values.size === 1 ? value : undefined;
}

function readPending(request: IncomingMessage): PendingLogin | undefined {
  const value = readCookie(request, LOGIN);
  return value === undefined ? undefined : JSON.parse(Buffer.from(value, "base64url").toString());
}

function browserOf(request: IncomingMessage) {
  // The proxy has appended the last entry of X-Forwarded-For. The entries before it may come from the client.
  const forwarded =
    TRUST_PROXY === "1"
      ? String(request.headers["x-forwarded-for"] ?? "")
          .split(",")
          .at(-1)
          ?.trim()
      : "";
  return {
    userAgent: request.headers["user-agent"] ?? "",
    ipAddress: forwarded || (request.socket.remoteAddress ?? ""),
  };
}

async function login(response: ServerResponse): Promise<void> {
  const { url, pending } = await provider.begin();
  const value = Buffer.from(JSON.stringify(pending)).toString("base64url");
  const headers = {
    location: url.href,
    "set-cookie": `${LOGIN}=${value}; Max-Age=600; ${COOKIE}`,
    "cache-control": "no-store",
  };
  response.writeHead(303, headers).end();
}

async function callback(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const done = `${LOGIN}=; Max-Age=0; ${COOKIE}`;
  const refuse = (status: number, text: string) =>
    void response.writeHead(status, { "set-cookie": done, "content-type": "text/plain" }).end(text);
  const pending = readPending(request);
  if (pending === undefined) return refuse(400, "the login took too long, or began in another browser\n");
  let user: Awaited<ReturnType<typeof provider.finish>>;
  try {
    user = await provider.finish(request.url ?? "", pending);
  } catch (error) {
    console.error(error);
    return refuse(403, "the provider did not sign you in\n");
  }
  // The hint cookie is trusted only if its prefix keeps sibling domains from setting it.
  const hint = HINT_COOKIE.startsWith("__Host-") ? readCookie(request, HINT_COOKIE) : undefined;
  const replaced = SESSION_ID.test(hint ?? "") ? hint : undefined;
  const cookies = await sessions.create(user, browserOf(request), replaced);
  response.writeHead(303, { location: "/", "set-cookie": [done, ...cookies], "cache-control": "no-store" }).end();
}

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? "/", ORIGIN);
  const handled = async () => {
    if (pathname === "/login") return login(response);
    if (pathname === "/login/callback") return callback(request, response);
    // Here your application begins. Its pages refresh the session by @session-service/browser (docs/tasks/browser.md).
    response
      .writeHead(pathname === "/" ? 200 : 404, { "content-type": "text/html" })
      .end('<a href="/login">Sign in</a>\n');
  };
  handled().catch((error: unknown) => {
    console.error(error);
    if (!response.headersSent) response.writeHead(503, { "content-type": "text/plain" }).end("try again\n");
  });
});
server.listen(Number(PORT), "127.0.0.1", () => console.log(ORIGIN));
process.once("SIGTERM", () => server.close());
