/**
 * A stand-in for the authorization servers of the other libraries, Supabase and OAuth. It rotates refresh tokens by the rules of GoTrue
 * (Supabase): a replaced token is accepted during the reuse interval, and the predecessor of the current token at any time. Any other
 * replaced token ends the session. Without a reuse interval every replaced token ends it, as in RFC 9700 section 4.14.2.
 */
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { SignJWT } from "jose";

type RefreshToken = {
  readonly text: string;
  readonly session: Session;
  readonly parent: string | undefined;
  replacedAtMs?: number;
};
type Session = { readonly id: string; current?: RefreshToken; hasEnded: boolean };

export type Provider = Awaited<ReturnType<typeof startProvider>>;

/** @param lifeS the life of access tokens, in s @param reuseIntervalMs how long a replaced refresh token is accepted, in ms; 0: never */
export async function startProvider(lifeS: number, reuseIntervalMs: number) {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = { ...publicKey.export({ format: "jwk" }), kid: "1", alg: "ES256", use: "sig", key_ops: ["verify"] };
  const tokens = new Map<string, RefreshToken>();
  const sessions = new Map<string, Session>();
  const provider = { url: "", isDown: false, rotations: 0, signIn, close: () => {} };

  function rotate(session: Session): RefreshToken {
    const token = { text: randomUUID(), session, parent: session.current?.text };
    if (session.current) session.current.replacedAtMs = Date.now();
    session.current = token;
    tokens.set(token.text, token);
    return token;
  }

  async function signIn() {
    const session: Session = { id: randomUUID(), hasEnded: false };
    sessions.set(session.id, session);
    return granted(rotate(session));
  }

  async function granted({ text, session }: RefreshToken) {
    const expiresAt = Math.floor(Date.now() / 1000) + lifeS;
    const claims = { session_id: session.id, role: "authenticated", email: "alice@example.com" };
    const accessToken = await new SignJWT(claims)
      .setProtectedHeader({ alg: "ES256", kid: "1", typ: "JWT" })
      .setSubject("alice")
      .setAudience("authenticated")
      .setIssuedAt()
      .setExpirationTime(expiresAt)
      .sign(privateKey);
    const times = { expires_in: lifeS, expires_at: expiresAt };
    return { access_token: accessToken, refresh_token: text, token_type: "bearer", ...times, user: USER };
  }

  async function refresh(presented: string): Promise<[number, object]> {
    const token = tokens.get(presented);
    if (!token || token.session.hasEnded) return [400, error("refresh_token_not_found")];
    const { session, replacedAtMs } = token;
    const { current } = session;
    const isTolerant = reuseIntervalMs > 0;
    if (isTolerant && replacedAtMs !== undefined && current?.parent === token.text)
      return [200, await granted(current)];
    if (replacedAtMs !== undefined && Date.now() > replacedAtMs + reuseIntervalMs) {
      session.hasEnded = true;
      return [400, error("refresh_token_already_used")];
    }
    provider.rotations++;
    return [200, await granted(rotate(session))];
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const send = (status: number, body: object) =>
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body));
    const { pathname } = new URL(request.url ?? "/", "http://provider");
    if (pathname.endsWith("/jwks.json")) return void send(200, { keys: [key] });
    const body = await textOf(request);
    if (provider.isDown) return void send(503, error("unexpected_failure"));
    if (pathname.endsWith("/user")) return void send(200, USER);
    if (pathname.endsWith("/token")) {
      const form = body.startsWith("{") ? (JSON.parse(body) as object) : Object.fromEntries(new URLSearchParams(body));
      const { refresh_token: presented = "" } = form as { refresh_token?: string };
      return void send(...(await refresh(presented)));
    }
    const [, payload = "e30"] = (request.headers.authorization ?? "").split(".");
    const { session_id: id } = JSON.parse(Buffer.from(payload, "base64url").toString()) as { session_id?: string };
    const session = sessions.get(id ?? "");
    if (session) session.hasEnded = true;
    response.writeHead(204).end();
  }

  const server = createServer((request, response) => {
    serve(request, response).catch(() => response.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  provider.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  provider.close = () => server.close().closeAllConnections();
  return provider;
}

const USER = {
  id: "7f6c1a5e-4c0e-4a57-9d7e-2c6c0a9f3b11",
  aud: "authenticated",
  role: "authenticated",
  email: "alice@example.com",
  app_metadata: {},
  user_metadata: {},
  created_at: "2026-01-01T00:00:00Z",
};

/** Returns an error response with the fields of both Supabase (`error_code`, `msg`) and OAuth (`error`). */
const error = (code: string) => ({ code, error_code: code, msg: code, error: "invalid_grant" });

async function textOf(request: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of request.setEncoding("utf8")) text += chunk;
  return text;
}
