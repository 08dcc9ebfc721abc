import type { Audience } from "../model.ts";

/** Returns what a token is for that has these audiences; undefined if there are none, or if one of them is not allowed. */
export function audienceFor(
  audiences: readonly string[],
  isAllowed: (audience: string) => boolean,
): Audience | undefined {
  const [first, ...others] = new Set(audiences);
  if (first === undefined || !audiences.every(isAllowed)) return undefined;
  return others.length === 0 ? first : [first, ...others];
}
