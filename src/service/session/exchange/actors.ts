/** Who acts for the subject of a token: the claim `act` (RFC 8693 section 4.1). */

/** `act` is who acted before, for whom the outer party acts. */
export type Actors = { readonly sub: string; readonly act?: Actors };

/** How many parties a token may name that act for its subject. */
export const MAX_ACTORS = 4;

/** Returns the parties that a claim names; undefined if it is not such a claim, or names too many. */
export function readActors(claim: unknown, most = MAX_ACTORS): Actors | undefined {
  if (most === 0) return undefined;
  const { sub, act } = (claim ?? {}) as { readonly sub?: unknown; readonly act?: unknown };
  if (typeof sub !== "string") return undefined;
  if (act === undefined) return { sub };
  const former = readActors(act, most - 1);
  return former && { sub, act: former };
}

/** Returns the names of those that act, the one that acts for the others first. */
export function namesOfActors(actors: Actors | undefined): readonly string[] {
  return actors === undefined ? [] : [actors.sub, ...namesOfActors(actors.act)];
}
