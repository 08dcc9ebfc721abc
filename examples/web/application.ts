/** The server of the example: pages, a login of its own, and an API that takes access tokens. */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
// In your project: "@session-service/verifier".
import { createVerifier } from "../../src/verifier/index.ts";
import { buildPage } from "./assets.ts";
import { type Login, signIn } from "./login.ts";
import { passOn } from "./proxy.ts";

export type Settings = {
  readonly port: number;
  /** Where browsers find the application, the issuer of access tokens too. */
  readonly origin: string;
  readonly publicUrl: string;
  readonly adminUrl: string;
  readonly adminToken: string;
};

const NOTES = ["Water the plants", "Call the bank", "Book the train to Vienna"];

const SECURITY_HEADERS = {
  // Scripts of this origin only: a script that an attacker brings in could use the session.
  "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
};

export async function startApplication(settings: Settings): Promise<{ close(): Promise<void> }> {
  const { port, origin, publicUrl, adminUrl, adminToken } = settings;
  const files = await buildPage();
  // Keys and revocations are followed in the background: checking a token takes no request.
  const verifier = createVerifier({ adminUrl, adminToken, issuer: origin, audience: origin });
  await verifier.ready;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? "/", origin);
    const route = `${request.method} ${pathname}`;
    if (pathname.startsWith("/v1/auth/")) passOn(publicUrl, request, response);
    else if (route === "POST /login") await logIn(request, response);
    else if (route === "GET /api/notes") await listNotes(request, response);
    else {
      const file = files.get(pathname);
      response.writeHead(file ? 200 : 404, { ...SECURITY_HEADERS, "content-type": file?.type ?? "text/plain" });
      response.end(file?.body ?? "not found");
    }
  }

  async function logIn(request: IncomingMessage, response: ServerResponse): Promise<void> {
    // Without this, another site could sign a visitor in to an account of the attacker's.
    if (request.headers.origin !== origin) return respond(response, 403, { error: "wrong origin" });
    const cookies = await signIn(settings, JSON.parse(await bodyOf(request)) as Login, request);
    if (cookies === undefined) return respond(response, 401, { error: "wrong email or password" });
    // All of them: the refresh token's and the hint that a page may read.
    response.setHeader("set-cookie", cookies);
    respond(response, 200, {});
  }

  async function listNotes(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const token = /^Bearer (.+)$/.exec(request.headers.authorization ?? "")?.[1] ?? "";
    const verdict = await verifier.verify(token);
    if (verdict.ok) return respond(response, 200, { owner: verdict.claims.sub, notes: NOTES });
    // "unavailable" is no "no": with a 401 the page would take the token for a bad one.
    respond(response, verdict.reason === "unavailable" ? 503 : 401, { error: verdict.reason });
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.headersSent || respond(response, 400, { error: "bad request" }));
  });
  await new Promise<void>((resolve) => server.listen(port, "localhost", resolve));
  return {
    async close() {
      verifier.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function respond(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json", "cache-control": "no-store" });
  response.end(JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let body = "";
  for await (const chunk of request.setEncoding("utf8")) {
    body += chunk;
    if (body.length > 10_000) throw new Error("too large");
  }
  return body;
}
