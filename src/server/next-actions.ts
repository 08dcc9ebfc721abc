/** The session in pages, route handlers and server actions of Next.js. */
import { type ActiveUser, requireUser } from "./require-user.ts";
import type { SessionsSource } from "./sessions.ts";
import { readSetCookie, type SetCookie } from "./set-cookie.ts";
import type { User } from "./user.ts";

/** The functions of Next.js that are used, of `next/server`, `next/headers` and `next/navigation`. */
type NextFunctions = {
  readonly connection: () => Promise<unknown>;
  readonly headers: () => Promise<Iterable<readonly [string, string]>>;
  readonly cookies: () => Promise<{ set(name: string, value: string, attributes: SetCookie["attributes"]): unknown }>;
  readonly redirect: (path: string) => never;
};

/**
 * Creates the functions of the session for everything that `sessionProxy` has let pass.
 * @param source the kit, or a function that returns it, which is called when it is needed
 * @param options the path of the login page, as `sessionProxy` has it. Default: `/login`
 * @example
 * ```ts
 * import { nextSession } from "@session-service/server/next";
 * import { cookies, headers } from "next/headers";
 * import { redirect } from "next/navigation";
 * import { connection } from "next/server";
 *
 * const next = { connection, cookies, headers, redirect };
 * export const { currentUser, requireCurrentUser, setCookies, signOut } = nextSession(getSessions, next);
 * ```
 */
export function nextSession(
  source: SessionsSource,
  { connection, headers, cookies, redirect }: NextFunctions,
  { login = "/login" }: { readonly login?: string } = {},
) {
  const sessions = () => (typeof source === "function" ? source() : source);
  const ownHeaders = async () => new Headers([...(await headers())].map(([name, value]) => [name, value]));

  /** Returns who is signed in. It calls no service. */
  async function currentUser(): Promise<User> {
    // With Cache Components, Next.js prerenders a page up to this call, even if it prerenders with the headers of a request. The code below
    // reads the clock, which Next.js reports as an error while it prerenders. A build stops here, too, before it would create the kit.
    await connection();
    const own = await ownHeaders();
    return sessions().current(own);
  }

  /**
   * Returns the user. A page, a route handler or an action calls this where it reads its data. Redirects to the login if nobody is signed
   * in.
   * @throws SessionError if the state cannot be determined. `error.tsx` recognizes it by `error.digest === "session_unavailable"`
   */
  const requireCurrentUser = async (): Promise<ActiveUser> =>
    requireUser(await currentUser(), (error) => {
      if (error.state === "ended") redirect(login);
      throw error;
    });

  /** Sets the cookies of `Set-Cookie` lines, such as those of `CreateSession`, in a server action or a route handler. */
  async function setCookies(lines: readonly string[]): Promise<void> {
    const store = await cookies();
    for (const { name, value, attributes } of oneOfEachName(lines)) store.set(name, value, attributes);
  }

  /**
   * Signs the user out, in a server action or a route handler. If the result is `unavailable`, the session continues.
   * @param sessionId `claims.sid` of the user whom the page shows. Another user who has signed in since stays signed in (`active`)
   */
  async function signOut(sessionId?: string): Promise<User> {
    const own = await ownHeaders();
    const result = await sessions().signOut({ method: "POST", url: "/", headers: own }, undefined, sessionId);
    await setCookies(result.setCookies);
    return result.user;
  }

  return { currentUser, requireCurrentUser, setCookies, signOut };
}

/**
 * Returns the cookies of `Set-Cookie` lines, one of each name: of several, Next.js sends the last alone. The service also removes cookies
 * from other scopes. A cookie that is set is more important than these removals, and without one, the removal from the present scope is,
 * which is the first. So with the cookies of two users, a cookie of another scope may stay, and a repetition of the sign-out fails, too.
 */
function oneOfEachName(lines: readonly string[]): Iterable<SetCookie> {
  const kept = new Map<string, SetCookie>();
  for (const cookie of lines.map(readSetCookie)) {
    const isSet = (cookie.attributes.maxAge ?? 1) > 0;
    if (isSet || !kept.has(cookie.name)) kept.set(cookie.name, cookie);
  }
  return kept.values();
}
