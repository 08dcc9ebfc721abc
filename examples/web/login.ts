/** The login: checks a password and creates a session. Yours may be an identity provider's callback instead. */
import { randomBytes, type ScryptOptions, scrypt, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { promisify } from "node:util";
import { RateLimiterMemory, type RateLimiterRes } from "rate-limiter-flexible";

export type Credentials = { readonly email: string; readonly password: string };

export type SignIn =
  | { readonly ok: true; readonly cookies: string[] }
  | { readonly ok: false; readonly reason: "wrong" | "unavailable" }
  | { readonly ok: false; readonly reason: "limited"; readonly retryAfterS: number };

const ROLES = ["editor", "reader", "support"] as const;
export type Role = (typeof ROLES)[number];
export const isRole = (text: string): text is Role => (ROLES as readonly string[]).includes(text);

type Account = {
  readonly id: string;
  readonly name: string;
  role: Role;
  readonly salt: Buffer;
  readonly hash: Buffer;
};
type Api = { readonly adminUrl: string; readonly adminToken: string };

/** The cost that OWASP recommends. The asynchronous `scrypt` is used, because hashing on the main thread would block all requests. */
const COST: ScryptOptions = { N: 2 ** 17, r: 8, p: 1, maxmem: 2 ** 28 };
const derive = promisify<string, Buffer, number, ScryptOptions, Buffer>(scrypt);
const hashOf = (password: string, salt: Buffer): Promise<Buffer> => derive(password, salt, 32, COST);

async function account(id: string, name: string, role: Role, password: string): Promise<Account> {
  const salt = randomBytes(16);
  return { id, name, role, salt, hash: await hashOf(password, salt) };
}

/** These accounts stand for a database. An unknown email is checked against `nobody`: the duration must not reveal who has an account. */
const accounts = Promise.all([
  account("alice", "Alice Liddell", "editor", "correct horse"),
  account("sam", "Sam of support", "support", "battery staple"),
  account("", "", "reader", randomBytes(16).toString("hex")),
]).then(([alice, sam, nobody]) => ({
  byEmail: new Map([
    ["alice@example.com", alice],
    ["sam@example.com", sam],
  ]),
  nobody,
}));

/**
 * Limits attempts to guess a password: few for one account from one address, and more for all accounts from one address. The counts are in
 * memory. If several processes serve logins, they need a common store for the counts.
 */
const byAccount = new RateLimiterMemory({ points: 5, duration: 300 });
const byAddress = new RateLimiterMemory({ points: 50, duration: 300 });

/**
 * @param api the admin API, whose token stays on the server
 * @param remember whether the browser keeps the cookies when it ends
 */
export async function signIn(
  api: Api,
  { email, password }: Credentials,
  remember: boolean,
  request: IncomingMessage,
): Promise<SignIn> {
  const address = request.socket.remoteAddress ?? "";
  const name = `${email} ${address}`;
  try {
    // Attempts are counted before the password is hashed, because hashing is expensive on purpose.
    await Promise.all([byAddress.consume(address), byAccount.consume(name)]);
  } catch (limit) {
    return { ok: false, reason: "limited", retryAfterS: Math.ceil((limit as RateLimiterRes).msBeforeNext / 1000) };
  }
  const { byEmail, nobody } = await accounts;
  const found = byEmail.get(email) ?? nobody;
  const matches = timingSafeEqual(await hashOf(password, found.salt), found.hash);
  if (!matches || found === nobody) return { ok: false, reason: "wrong" };
  await byAccount.delete(name);
  // Without `persistent`, the cookies end with the browser, and so do those of each refresh.
  return createSession(api, found, request, { persistent: remember });
}

/** Who uses a session in place of its user: the name of the actor, why, and the actor's own session. */
export type Actor = { readonly subject: string; readonly reason: string; readonly sessionId: string };

/** Creates a session of a user that support uses. It ends with the session of the actor, or within an hour. */
export async function signInAs(api: Api, email: string, actor: Actor, request: IncomingMessage): Promise<SignIn> {
  const found = (await accounts).byEmail.get(email);
  if (found === undefined || found.role === "support") return { ok: false, reason: "wrong" };
  return createSession(api, found, request, { actor: { ...actor, endWithSession: true }, persistent: false });
}

/**
 * Changes the role of a user. The user's sessions go on, and services refuse the access tokens from before at once: each page gets another
 * one and goes on.
 */
export async function changeRole(api: Api, email: string, role: Role): Promise<"changed" | "unknown" | "unavailable"> {
  const found = (await accounts).byEmail.get(email);
  if (found === undefined) return "unknown";
  // Later sessions get the role of the account, so it changes first.
  found.role = role;
  const { id, name } = found;
  const accessTokens = "ACCESS_TOKEN_POLICY_REFRESH";
  const response = await call(api, "UpdateSubjectSessions", { subject: id, claims: { name, role }, accessTokens });
  return response?.ok ? "changed" : "unavailable";
}

async function createSession(
  api: Api,
  { id, name, role }: Account,
  request: IncomingMessage,
  more: object,
): Promise<SignIn> {
  const userAgent = request.headers["user-agent"] ?? "";
  const ipAddress = request.socket.remoteAddress ?? "";
  const response = await call(api, "CreateSession", {
    subject: id,
    // The claims are for the page, which displays the name. Put no secrets here: everybody who has the token can read its claims.
    claims: { name, role },
    client: { userAgent, ipAddress, displayName: deviceName(userAgent) },
    ...more,
  });
  if (!response?.ok) return { ok: false, reason: "unavailable" };
  return { ok: true, cookies: ((await response.json()) as { setCookies: string[] }).setCookies };
}

/** Calls a method of the admin API. Returns undefined if there is no response. */
function call({ adminUrl, adminToken }: Api, method: string, message: object): Promise<Response | undefined> {
  return fetch(`${adminUrl}/auth.admin.v1.SessionAdminService/${method}`, {
    method: "POST",
    headers: { authorization: `Bearer ${adminToken}`, "content-type": "application/json" },
    body: JSON.stringify(message),
    signal: AbortSignal.timeout(5_000),
  }).catch(() => undefined);
}

/** Returns a name of the device that its user recognizes. */
function deviceName(userAgent: string): string {
  const find = (names: readonly string[]) => names.find((name) => userAgent.includes(name));
  const browser = find(["Firefox", "Edg", "Chrome", "Safari"]) ?? "A browser";
  const system = find(["Android", "iPhone", "iPad", "Windows", "Mac OS", "Linux"]);
  return `${browser.replace("Edg", "Edge")}${system ? ` on ${system.replace("Mac OS", "macOS")}` : ""}`;
}
