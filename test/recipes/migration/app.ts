/** An application with the sessions of four libraries. `/login/NAME` begins one; `/migrate` is what examples/migration replies. */
import { randomUUID } from "node:crypto";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { encode as encodeAuthJs } from "@auth/core/jwt";
import { createServerClient } from "@supabase/ssr";
import { betterAuth } from "better-auth";
import { memoryAdapter } from "better-auth/adapters/memory";
import express, { type Request as ExpressRequest } from "express";
import session from "express-session";
import { exportJWK, generateKeyPair, SignJWT } from "jose";
import { encode } from "next-auth/jwt";
import { migrate as migrateAuthJs } from "./auth-js.ts";
import { migrate as migrateBetterAuth } from "./better-auth.ts";
import { migrate as migrateExpress } from "./express-session.ts";
import { migrate as migrateNextAuth } from "./next-auth.ts";
import { migrate as migrateSupabase } from "./supabase.ts";

const { PORT = "", NEXTAUTH_SECRET = "" } = process.env;
const ORIGIN = `http://127.0.0.1:${PORT}`;

type Node = (request: IncomingMessage, response: ServerResponse) => void;
type Login = (user: string) => Promise<readonly string[]>;

/** Serves a handler of the web's `Request` and `Response`. */
const node =
  (handler: (request: Request) => Promise<Response>): Node =>
  async (request, response) => {
    const headers = new Headers(request.headers as Record<string, string>);
    const result = await handler(new Request(ORIGIN + request.url, { method: "POST", headers }));
    response.writeHead(result.status, { "content-type": "application/json" }).end(await result.text());
  };

const sessions = session({ secret: "a secret", resave: false, saveUninitialized: false });
const app = express();
app.post("/migrate", migrateExpress(sessions));
app.get("/login/express-session", sessions, (request: ExpressRequest, response) => {
  request.session.user = { id: String(request.query.user), role: "editor" };
  response.end();
});
app.get("/logout/express-session", sessions, (request: ExpressRequest, response) => {
  request.session.destroy(() => response.end());
});

/** A token that is so long that next-auth sends it in several cookies. */
const loginToNextAuth: Login = async (user) => {
  const token = await encode({
    token: { sub: user, email: `${user}@a.example`, more: "x".repeat(5_000) },
    secret: NEXTAUTH_SECRET,
  });
  const size = 4096 - 163;
  return [0, 1].map((at) => `next-auth.session-token.${at}=${token.slice(at * size, (at + 1) * size)}`);
};

const loginToAuthJs: Login = async (user) => {
  const salt = "authjs.session-token";
  const token = await encodeAuthJs({ token: { sub: user, email: `${user}@a.example` }, secret: NEXTAUTH_SECRET, salt });
  return [`${salt}=${token}`];
};

const auth = betterAuth({
  database: memoryAdapter({ user: [], session: [], account: [], verification: [] }),
  baseURL: ORIGIN,
  secret: randomUUID(),
  emailAndPassword: { enabled: true },
});
const loginToBetterAuth: Login = async (user) => {
  const body = { email: `${user}@a.example`, password: randomUUID(), name: user };
  const response = await auth.api.signUpEmail({ body, asResponse: true });
  return response.headers.getSetCookie().map((line) => line.split(";")[0] ?? "");
};

const { publicKey, privateKey } = await generateKeyPair("ES256", { extractable: true });
const live = new Set<string>();
const loginToSupabase: Login = async (user) => {
  const sessionId = randomUUID();
  live.add(sessionId);
  const token = await new SignJWT({ session_id: sessionId, email: `${user}@a.example`, role: "authenticated" })
    .setProtectedHeader({ alg: "ES256", kid: "k" })
    .setSubject(user)
    .setAudience("authenticated")
    .setIssuer(`${ORIGIN}/auth/v1`)
    .setIssuedAt()
    .setExpirationTime("1h")
    .sign(privateKey);
  const cookies: string[] = [];
  const setAll = (set: readonly { name: string; value: string }[]) => {
    for (const { name, value } of set) if (value !== "") cookies.push(`${name}=${value}`);
  };
  const client = createServerClient(ORIGIN, "anon", { cookies: { getAll: () => [], setAll } });
  const { error } = await client.auth.setSession({ access_token: token, refresh_token: "r" });
  if (error !== null) throw error;
  return cookies;
};
const userOf = (request: IncomingMessage) => {
  const [, payload = ""] = (request.headers.authorization ?? "").split(".");
  const { sub, email } = JSON.parse(Buffer.from(payload, "base64url").toString());
  // The metadata is so long that the session takes several cookies.
  return { id: sub, email, aud: "authenticated", user_metadata: { more: "x".repeat(4_000) } };
};

const logins: Record<string, Login> = {
  "next-auth": loginToNextAuth,
  "auth-js": loginToAuthJs,
  "better-auth": loginToBetterAuth,
  supabase: loginToSupabase,
};
const MIGRATIONS: readonly (readonly [cookie: string, migrate: Node])[] = [
  ["next-auth.", node(migrateNextAuth)],
  ["authjs.", node(migrateAuthJs)],
  ["better-auth.", node(migrateBetterAuth(auth as never))],
  ["sb-127-", node(migrateSupabase(async (id) => live.has(id)))],
];

createServer(async (request, response) => {
  const url = new URL(request.url ?? "", ORIGIN);
  const [, first = "", name = ""] = url.pathname.split("/");
  const login = first === "login" ? logins[name] : undefined;
  if (login !== undefined) return void response.end(JSON.stringify(await login(url.searchParams.get("user") ?? "")));
  if (url.pathname === "/auth/v1/user") return void response.end(JSON.stringify(userOf(request)));
  if (url.pathname === "/auth/v1/.well-known/jwks.json") {
    return void response.end(JSON.stringify({ keys: [{ ...(await exportJWK(publicKey)), kid: "k", alg: "ES256" }] }));
  }
  if (url.pathname === "/logout/supabase") {
    live.clear();
    return void response.end();
  }
  const found = MIGRATIONS.find(([cookie]) => request.headers.cookie?.startsWith(cookie));
  if (url.pathname === "/migrate" && found !== undefined) return found[1](request, response);
  app(request, response);
}).listen(Number(PORT), "127.0.0.1");
