"use server";

import { returnPath } from "@session-service/server";
import { headers } from "next/headers";
import { redirect } from "next/navigation";
import { ADMIN_URL, adminToken } from "../../lib/session";
import { currentUser, setCookies } from "../../lib/sessions";

/** This account stands for a database. A real login hashes passwords and limits attempts (examples/web/login.ts). */
const ACCOUNT = { id: "alice", email: "alice@example.com", password: "correct horse" };

/** Checks a password and creates a session. Yours may be an identity provider's callback instead. */
export async function signIn(form: FormData): Promise<void> {
  const next = returnPath(form.get("next"), "/login");
  const isKnown = form.get("email") === ACCOUNT.email && form.get("password") === ACCOUNT.password;
  const lines = isKnown ? await createSession(ACCOUNT.id) : undefined;
  if (lines === undefined) redirect(`/login?${new URLSearchParams({ next, failed: "" })}`);
  await setCookies(lines);
  redirect(next);
}

/** Returns the `Set-Cookie` lines of a new session; undefined if the service does not respond. */
async function createSession(subject: string): Promise<readonly string[] | undefined> {
  const userAgent = (await headers()).get("user-agent") ?? "";
  // The browser's former session must not live on without its cookie, whoever it was of.
  const former = await currentUser();
  const replacesSessionId = former.state === "active" ? former.claims.sid : "";
  const created = await fetch(`${ADMIN_URL}/auth.admin.v1.SessionAdminService/CreateSession`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminToken()}`, "content-type": "application/json" },
    body: JSON.stringify({ subject, client: { userAgent }, replacesSessionId }),
    signal: AbortSignal.timeout(5_000),
  }).catch(() => undefined);
  return created?.ok ? ((await created.json()) as { readonly setCookies: readonly string[] }).setCookies : undefined;
}
