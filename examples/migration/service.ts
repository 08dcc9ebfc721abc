/** What every recipe has in common: who asks, and what is replied (docs/tasks/migration.md). */
import { createHash } from "node:crypto";
import { createRemoteJWKSet, jwtVerify } from "jose";

const { SESSION_URL = "http://127.0.0.1:8080", ISSUER = SESSION_URL } = process.env;
/** The `MIGRATE_URL` of the session service. */
const { MIGRATE_URL = "http://127.0.0.1:3000/migrate" } = process.env;

const keys = createRemoteJWKSet(new URL("/.well-known/jwks.json", SESSION_URL));

/** Returns whether the session service has made this request. */
export async function isFromSessionService(headers: Headers): Promise<boolean> {
  const [, token = ""] = /^Bearer (.+)$/.exec(headers.get("authorization") ?? "") ?? [];
  try {
    const options = { issuer: ISSUER, audience: MIGRATE_URL, typ: "migration+jwt" };
    const { payload } = await jwtVerify(token, keys, options);
    const cookies = headers.get("cookie") ?? "";
    return payload.cookie_hash === createHash("sha256").update(cookies).digest("base64url");
  } catch {
    return false;
  }
}

/** The fields of CreateSession, and what identifies the old session if its cookie changes. */
export type Found = {
  readonly subject: string;
  readonly claims?: Readonly<Record<string, unknown>>;
  readonly old_session_id?: string;
};

/** Makes a handler of a function that finds whose session the cookies of a request present. */
export function migration(find: (request: Request) => Promise<Found | undefined>) {
  return async (request: Request): Promise<Response> => {
    if (!(await isFromSessionService(request.headers))) return new Response(null, { status: 401 });
    const found = await find(request);
    return found === undefined ? new Response(null, { status: 204 }) : Response.json(found);
  };
}
