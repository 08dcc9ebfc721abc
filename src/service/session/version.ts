/** The version of a session: which of its access tokens are stale. lua/lib/version.lua has the same rule (`count_version`). */
import type { Authentication, Session } from "./model.ts";

type Versioned = Pick<Session, "version" | "staleBelow">;

/**
 * Counts a change of a session in its version. With `outdatesTokens`, access tokens of all versions before are stale from then on.
 * `needsMark` says whether the revocation log needs a mark for that. It needs none if those tokens were stale already, so a repeated change
 * has no effect.
 */
export function countVersion<S extends Versioned>(
  session: S,
  isChanged: boolean,
  outdatesTokens: boolean,
): { readonly session: S & Versioned; readonly needsMark: boolean } {
  const version = (session.version ?? 0) + (isChanged ? 1 : 0);
  const needsMark = outdatesTokens && version > (session.staleBelow ?? 0);
  if (version === 0) return { session, needsMark: false };
  return { session: { ...session, version, ...(needsMark && { staleBelow: version }) }, needsMark };
}

/**
 * Records an authentication in a session, and returns whether its version counts it (`countVersion`). With `outdatesTokens` it does, unless
 * tokens from before are stale already, so that a repetition has no effect. Otherwise it does if the session has a version: a later call
 * with the same authentication and `outdatesTokens` then finds tokens to mark. lua/elevate.lua has the same rule.
 */
export function recordAuthentication<S extends Pick<Session, "authentication" | "version">>(
  session: S,
  authentication: Authentication,
  outdatesTokens: boolean,
): { readonly elevated: S & { readonly authentication: Authentication }; readonly isCounted: boolean } {
  const { authentication: before, version = 0 } = session;
  const isNew = before === undefined || !isSame(before, authentication);
  return {
    elevated: { ...session, authentication },
    isCounted: outdatesTokens ? isNew || version === 0 : isNew && version > 0,
  };
}

function isSame(one: Authentication, other: Authentication): boolean {
  const textOf = ({ time, methods, contextClass }: Authentication) => JSON.stringify([time, methods, contextClass]);
  return textOf(one) === textOf(other);
}

/** Returns whether an access token with these claims is stale: its session was changed since, and such tokens are refused. */
export function isStale({ sv }: Readonly<Record<string, unknown>>, { staleBelow = 0 }: Versioned): boolean {
  return (typeof sv === "number" ? sv : 0) < staleBelow;
}
