/** What a page begins with that a server has rendered: `createSession({ initial })` of `@session-service/browser`. */
import type { Claims, User } from "./sessions.ts";

export type Initial = {
  readonly claims: Claims & { readonly iat: number };
  /** The access token, for scripts of the page. Absent unless it is asked for. */
  readonly text?: string;
  /** How old the token was when the page was rendered, ms. */
  readonly ageMs: number;
};

/**
 * Returns what the page of a user begins with; undefined where nobody is known to be signed in: the page then looks for itself.
 *
 * @param withToken whether the page gets the access token too. Without it, the first call of the page that needs a token makes a refresh
 * @param nowMs wall clock, ms since the epoch
 */
export function initialOf(user: User, withToken = false, nowMs = Date.now()): Initial | undefined {
  if (user.state !== "active") return undefined;
  const { iat } = user.claims;
  if (typeof iat !== "number") return undefined;
  const ageMs = Math.max(0, nowMs - iat * 1000);
  return { claims: { ...user.claims, iat }, ageMs, ...(withToken && { text: user.accessToken }) };
}
