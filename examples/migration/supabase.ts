/** Sessions of Supabase: MIGRATE_COOKIES=sb-<project>-auth-token */
import { combineChunks, stringFromBase64URL } from "@supabase/ssr";
import { createClient } from "@supabase/supabase-js";
import { migration } from "./service.ts";

const { SUPABASE_URL = "http://127.0.0.1:54321", SUPABASE_ANON_KEY = "anon" } = process.env;
const NAME = `sb-${new URL(SUPABASE_URL).hostname.split(".")[0]}-auth-token`;
const BASE64 = "base64-";

const options = { auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false } };
const { auth } = createClient(SUPABASE_URL, SUPABASE_ANON_KEY, options);

/**
 * The access token in the cookie is verified, and not refreshed: that would replace the refresh token, which the browser keeps. It may have
 * expired, so the application says whether Supabase still has the session. @param isLive `select 1 from auth.sessions where id = $1`
 */
export const migrate = (isLive: (sessionId: string) => Promise<boolean>) =>
  migration(async ({ headers }) => {
    const cookies = new Map(
      (headers.get("cookie") ?? "").split("; ").map((pair) => pair.split(/=(.*)/s) as [string, string]),
    );
    const token = accessTokenOf(await combineChunks(NAME, (name) => cookies.get(name)));
    if (token === undefined) return undefined;
    const { data } = await auth.getClaims(token, { allowExpired: true });
    if (data === null || !(await isLive(data.claims.session_id))) return undefined;
    return { subject: data.claims.sub, claims: { email: data.claims.email }, old_session_id: data.claims.session_id };
  });

/** @param text the value of the cookie, which may be anything */
function accessTokenOf(text: string | null): string | undefined {
  if (text === null || !text.startsWith(BASE64)) return undefined;
  try {
    const { access_token: token } = JSON.parse(stringFromBase64URL(text.slice(BASE64.length)));
    return typeof token === "string" ? token : undefined;
  } catch {
    return undefined;
  }
}
