/** The state with which a server-rendered page begins, for `createSession({ initial })` of `@session-service/browser`. */
import type { Claims, User } from "./user.ts";

export type Initial = {
  readonly claims: Claims & { readonly iat: number };
  /** The access token, for scripts of the page. Absent unless it was requested. */
  readonly text?: string;
  /** The age of the token when the page was rendered, in ms. */
  readonly ageMs: number;
};

/**
 * Returns the state with which a user's page begins. Returns undefined if nobody is known to be signed in: the page then checks by itself
 * whether somebody is.
 * @param withToken whether the page gets the access token. Without it, the page's first call that needs a token causes a refresh
 * @param nowMs the wall clock, in ms since the epoch
 */
export function initialOf(user: User, withToken = false, nowMs = Date.now()): Initial | undefined {
  if (user.state !== "active") return undefined;
  const { iat } = user.claims;
  if (typeof iat !== "number") return undefined;
  const ageMs = Math.max(0, nowMs - iat * 1000);
  return { claims: { ...user.claims, iat }, ageMs, ...(withToken && { text: user.accessToken }) };
}
