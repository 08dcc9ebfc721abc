/** The server of the example: pages, a login of its own, and an API that takes access tokens. */
import type { IncomingMessage, ServerResponse } from "node:http";
// In your project, import from "@session-service/verifier".
import { createVerifier } from "../../src/verifier/index.ts";
import { buildPage } from "./assets.ts";
import { changeRole, isRole, type SignIn, signIn, signInAs } from "./login.ts";
import { passOn } from "./proxy.ts";
import { respond, send } from "./responses.ts";

export type Settings = {
  /** The origin of the application, which is also the issuer of the access tokens. */
  readonly origin: string;
  readonly publicUrl: string;
  readonly adminUrl: string;
  readonly adminToken: string;
};

const NOTES = ["Water the plants", "Call the bank", "Book the train to Vienna"];
const MAX_BODY_BYTES = 10_000;

/** Returns the function that serves one request. */
export async function createApplication(
  settings: Settings,
): Promise<(request: IncomingMessage, response: ServerResponse) => void> {
  const { origin, publicUrl, adminUrl, adminToken } = settings;
  const files = await buildPage();
  // The verifier follows keys and revocations in the background, so verifying a token needs no request.
  const verifier = createVerifier({ adminUrl, adminToken, issuer: origin, audience: origin });
  await verifier.ready;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? "/", origin);
    const route = `${request.method} ${pathname}`;
    if (pathname.startsWith("/v1/auth/")) passOn(publicUrl, request, response);
    else if (route === "POST /login") await logIn(request, response);
    else if (route === "POST /support/sign-in") await impersonate(request, response);
    else if (route === "POST /support/role") await setRole(request, response);
    else if (route === "GET /api/notes") await listNotes(request, response);
    else if (request.method === "GET" || request.method === "HEAD") showPage(pathname, request, response);
    else respond(response, 405, { error: "method not allowed" });
  }

  function showPage(pathname: string, request: IncomingMessage, response: ServerResponse): void {
    // Browsers keep separate cookies for other names of this host, such as 127.0.0.1, so they are redirected to the origin.
    const isOther = request.headers.host !== new URL(origin).host;
    const file = files.get(pathname);
    if (isOther) send(response, 308, { location: origin + pathname }, "");
    else send(response, file ? 200 : 404, { "content-type": file?.type ?? "text/plain" }, file?.body ?? "not found");
  }

  async function logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Without this check, another site could sign a visitor in to the attacker's account (login CSRF).
    if (request.headers.origin !== origin) return respond(response, 403, { error: "wrong origin" });
    const body = await bodyOf(request);
    if (body === undefined) return respond(response, 413, { error: "too large" });
    const login = new URLSearchParams(body);
    const credentials = { email: login.get("email") ?? "", password: login.get("password") ?? "" };
    // A browser sends the field of a checkbox only if the box is ticked.
    respondTo(await signIn(settings, credentials, login.has("remember"), request), request, response);
  }

  async function impersonate(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = await askedBySupport(request, response);
    if (asked === undefined) return;
    const { sub, sid, wanted } = asked;
    const actor = { subject: sub, sessionId: sid, reason: wanted.get("reason") ?? "" };
    respondTo(await signInAs(settings, wanted.get("email") ?? "", actor, request), request, response);
  }

  async function setRole(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const asked = await askedBySupport(request, response);
    if (asked === undefined) return;
    const role = asked.wanted.get("role") ?? "";
    if (!isRole(role)) return respond(response, 400, { error: "no such role" });
    const outcome = await changeRole(settings, asked.wanted.get("email") ?? "", role);
    respond(response, { changed: 200, unknown: 404, unavailable: 503 }[outcome], { outcome });
  }

  /**
   * Reads a request of support. Only a token of the role may ask, and nobody acts through a session in which somebody acts already. Returns
   * undefined if the request has been refused.
   */
  async function askedBySupport(request: IncomingMessage, response: ServerResponse) {
    const verdict = await verifier.verify(bearerOf(request));
    if (!verdict.ok) return refuse(response, verdict.reason);
    const { sub, sid, role, act } = verdict.claims;
    if (role !== "support" || act !== undefined) return respond(response, 403, { error: "only for support" });
    const body = await bodyOf(request);
    if (body === undefined) return respond(response, 413, { error: "too large" });
    return { sub, sid, wanted: new URLSearchParams(body) };
  }

  function respondTo(result: SignIn, request: IncomingMessage, response: ServerResponse) {
    if (result.ok) {
      // The service sets several cookies: that of the refresh token, and the hint cookie, which the page may read.
      const headers = { "set-cookie": result.cookies };
      // If the script of the page has not run, the browser sends the form itself and needs a redirect.
      const isForm = request.headers["sec-fetch-mode"] === "navigate";
      return isForm ? send(response, 303, { ...headers, location: "/" }, "") : respond(response, 200, {}, headers);
    }
    if (result.reason === "limited") {
      return respond(response, 429, { error: "too many attempts" }, { "retry-after": String(result.retryAfterS) });
    }
    if (result.reason === "wrong") return respond(response, 401, { error: "wrong email or password" });
    respond(response, 503, { error: "sign-in is unavailable" }, { "retry-after": "5" });
  }

  async function listNotes(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const verdict = await verifier.verify(bearerOf(request));
    if (verdict.ok) return respond(response, 200, { owner: verdict.claims.sub, notes: NOTES });
    refuse(response, verdict.reason);
  }

  /** "unavailable" means that the token could not be checked. On a 401 the page would discard the token. */
  const refuse = (response: ServerResponse, reason: string): void =>
    respond(response, reason === "unavailable" ? 503 : 401, { error: reason });

  return (request, response) => {
    serve(request, response).catch((error: unknown) => {
      // If the client has disconnected, the error is not logged.
      if (request.destroyed && !request.complete) return;
      console.error(error);
      if (!response.headersSent) respond(response, 500, { error: "internal error" });
    });
  };
}

const bearerOf = ({ headers }: IncomingMessage): string => /^Bearer (.+)$/.exec(headers.authorization ?? "")?.[1] ?? "";

/** Returns the body of a request; undefined if it is too large. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
    if (body.length > MAX_BODY_BYTES) return undefined;
  }
  return body;
}
