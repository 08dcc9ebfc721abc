/**
 * Sessions of next-auth 4 that are JWTs: MIGRATE_COOKIES=next-auth.session-token; a route handler: `export { migrate as POST }`.
 * Auth.js 5: MIGRATE_COOKIES=authjs.session-token and AUTH_SECRET; sessions in a database: read the row of the cookie's value instead.
 */
import { getToken } from "next-auth/jwt";
import { migration } from "./service.ts";

const { NEXTAUTH_URL = "http://127.0.0.1:3000", NEXTAUTH_SECRET, AUTH_SECRET = NEXTAUTH_SECRET ?? "" } = process.env;

export const migrate = migration(async (request) => {
  const pairs = (request.headers.get("cookie") ?? "").split("; ").map((pair) => pair.split(/=(.*)/s));
  const cookies = Object.fromEntries(pairs) as Record<string, string>;
  const headers = { cookie: request.headers.get("cookie") ?? "" };
  const req = { headers, cookies } as unknown as Parameters<typeof getToken>[0]["req"];
  const token = await getToken({ req, secret: AUTH_SECRET, secureCookie: NEXTAUTH_URL.startsWith("https:") });
  if (!token?.sub) return undefined;
  return { subject: token.sub, claims: { email: token.email ?? null }, old_session_id: token.jti as string };
});
