/** The login: checks a password and creates a session. Yours may be an identity provider's callback instead. */
import { randomBytes, scryptSync, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";

export type Login = { readonly email: string; readonly password: string };

type Account = { readonly id: string; readonly name: string; readonly salt: Buffer; readonly hash: Buffer };

const hashOf = (password: string, salt: Buffer) => scryptSync(password, salt, 32);

function account(id: string, name: string, password: string): Account {
  const salt = randomBytes(16);
  return { id, name, salt, hash: hashOf(password, salt) };
}

/** Instead of a database. Limit the attempts per account and address in a real one. */
const ACCOUNTS = new Map([["alice@example.com", account("alice", "Alice Liddell", "correct horse")]]);
/** Checked when there is no such account, so that the time taken does not say so. */
const NOBODY = account("", "", randomBytes(16).toString("hex"));

/** @returns the cookies of the new session, or undefined for wrong credentials */
export async function signIn(
  { adminUrl, adminToken }: { readonly adminUrl: string; readonly adminToken: string },
  { email, password }: Login,
  request: IncomingMessage,
): Promise<string[] | undefined> {
  const found = ACCOUNTS.get(email) ?? NOBODY;
  if (!timingSafeEqual(hashOf(password, found.salt), found.hash) || found === NOBODY) return undefined;
  const userAgent = request.headers["user-agent"] ?? "";
  // By the admin API: the admin token stays on the server.
  const response = await fetch(`${adminUrl}/auth.admin.v1.SessionAdminService/CreateSession`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
    body: JSON.stringify({
      subject: found.id,
      // To show in the page. Whoever has the token can read its claims.
      claims: { name: found.name },
      client: { userAgent, ipAddress: request.socket.remoteAddress, displayName: deviceName(userAgent) },
    }),
  });
  if (!response.ok) throw new Error(`CreateSession: ${response.status}`);
  return ((await response.json()) as { setCookies: string[] }).setCookies;
}

/** What people call their device, roughly. */
function deviceName(userAgent: string): string {
  const find = (names: readonly string[]) => names.find((name) => userAgent.includes(name));
  const browser = find(["Firefox", "Edg", "Chrome", "Safari"]) ?? "A browser";
  const system = find(["Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux"]);
  return `${browser.replace("Edg", "Edge")}${system ? ` on ${system.replace("Mac OS", "macOS")}` : ""}`;
}
