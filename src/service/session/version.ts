/** The version of a session: which of its access tokens are stale. lua/lib/version.lua has the same rule (`count_version`). */
import type { Session } from "./model.ts";

type Versioned = Pick<Session, "version" | "staleBelow">;

/**
 * Counts a change of a session in its version. With `refresh`, access tokens of all versions before are stale from then on. `isMarked` says
 * whether the revocation log needs a mark for that. It needs none if those tokens were stale already, so a repeated change has no effect.
 */
export function countVersion<S extends Versioned>(
  session: S,
  isChanged: boolean,
  refresh: boolean,
): { readonly session: S & Versioned; readonly isMarked: boolean } {
  const version = (session.version ?? 0) + (isChanged ? 1 : 0);
  const isMarked = refresh && version > (session.staleBelow ?? 0);
  if (version === 0) return { session, isMarked: false };
  return { session: { ...session, version, ...(isMarked && { staleBelow: version }) }, isMarked };
}

/** Returns whether an access token with these claims is stale: its session was changed since, and such tokens are refused. */
export function isStale({ sv }: Readonly<Record<string, unknown>>, { staleBelow = 0 }: Versioned): boolean {
  return (typeof sv === "number" ? sv : 0) < staleBelow;
}
