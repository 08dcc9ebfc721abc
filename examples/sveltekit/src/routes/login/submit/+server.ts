/** The login: checks a password and creates a session. Yours may be an identity provider's callback instead. */
import { returnPath } from "@session-service/server";
import { ADMIN_URL, adminToken } from "../../../lib/sessions.server";
import type { RequestHandler } from "./$types";

/** This account stands for a database. A real login hashes passwords and limits attempts (examples/web/login.ts). */
const ACCOUNT = { id: "alice", email: "alice@example.com", password: "correct horse" };

const leadTo = (location: string) => new Response(null, { status: 303, headers: { location } });

export const POST: RequestHandler = async ({ request, locals }) => {
  const form = await request.formData();
  const next = returnPath(String(form.get("next") ?? ""), "/login");
  const failure = leadTo(`/login?${new URLSearchParams({ next, failed: "" })}`);
  if (form.get("email") !== ACCOUNT.email || form.get("password") !== ACCOUNT.password) return failure;
  const client = { userAgent: request.headers.get("user-agent") ?? "" };
  // The browser's former session must not live on without its cookie, whoever it was of.
  const replacesSessionId = locals.user.state === "active" ? locals.user.claims.sid : "";
  const created = await fetch(`${ADMIN_URL}/auth.admin.v1.SessionAdminService/CreateSession`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminToken()}`, "content-type": "application/json" },
    body: JSON.stringify({ subject: ACCOUNT.id, client, replacesSessionId }),
    signal: AbortSignal.timeout(5_000),
  }).catch(() => undefined);
  if (!created?.ok) return failure;
  const { setCookies } = (await created.json()) as { readonly setCookies: readonly string[] };
  const response = leadTo(next);
  // The `Set-Cookie` lines of the service are sent unchanged. With `cookies.set`, this code would have to repeat their attributes.
  for (const line of setCookies) response.headers.append("set-cookie", line);
  return response;
};
