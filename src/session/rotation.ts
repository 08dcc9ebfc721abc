/**
 * Rotation: what one presented refresh token does to its session.
 *
 * A pure function, `state × token × now → outcome, state'`. The embedded store calls it, the Redis
 * script (store/redis/lua/rotate.lua) says the same, and a differential test holds the two together.
 * The rules were found by exhaustive search (test/session/rotation.search.test.ts); their numbers are
 * those of the table in README.md. All times are milliseconds of the store's clock.
 *
 * R, the reuse interval, is the only constant. Two searches bound every window from both sides: shorter,
 * and a browser whose requests take up to R/2 is logged out; longer, and two holders of one token, each
 * coming a little more than R after the other, are never told apart (with 3 R for a sibling, as an earlier
 * rule had it, they march in lock-step for ever). What decides is not when a sibling was issued but when it was
 * last served: a browser may use one child up to 1.5 R after the store minted another, a thief as well, and
 * only the browser has been answered with the other one in between. So `repeat` changes the state too.
 */

/** The part of a session that rotation reads and writes: O(1), and nothing in it can be presented. */
export type RotationState = {
  /** `g`: generation of the confirmed token, the newest that its client has used. */
  readonly generation: number;
  /** `n`: nonce of the confirmed token; empty before the first use. */
  readonly nonce: string;
  /** `f`: siblings of the confirmed token that were issued then or later count as the confirmed one. */
  readonly siblingsSince: number;
  /** `c`: nonce of the current child, which has generation g + 1. */
  readonly childNonce: string;
  /** `ct`: when the current child was minted. */
  readonly childMintedAt: number;
  /** `cs`: when the current child was last an answer. */
  readonly childServedAt: number;
};

/** What a refresh token says of itself once its MAC has been verified. */
export type PresentedToken = {
  readonly generation: number;
  readonly nonce: string;
  readonly issuedAt: number;
};

/** `repeat` answers with the current child; the other serving ones have minted a new one; `reuse` ends the session. */
export type RotationOutcome = "repeat" | "rotate" | "heal" | "recover" | "reuse";

export type Decision =
  | { readonly outcome: "repeat" | "rotate" | "heal" | "recover"; readonly next: RotationState }
  | { readonly outcome: "reuse" };

/** A new session: generation 0 is confirmed, and its first token is a child minted long ago. */
export function firstState(childNonce: string): RotationState {
  return { generation: 0, nonce: "", siblingsSince: 0, childNonce, childMintedAt: 0, childServedAt: 0 };
}

/**
 * Decides on a token with a valid MAC, in a session that is there and within both lifetimes.
 *
 * @param freshNonce nonce of the child, should one be minted
 * @param now the store's clock, ms
 * @param reuseInterval R, ms
 */
export function decide(
  state: RotationState,
  token: PresentedToken,
  freshNonce: string,
  now: number,
  reuseInterval: number,
): Decision {
  const young = now - state.childMintedAt <= reuseInterval;
  const ahead = token.generation - state.generation;
  const fresh = { childNonce: freshNonce, childMintedAt: now, childServedAt: now };

  // Rule 1: another tab, a resent command, a request that left before its tab saw the successor.
  if (young && ahead >= -1 && ahead <= 1) return { outcome: "repeat", next: { ...state, childServedAt: now } };

  // Rule 2: any child is used. Rule 3: the store lost its last writes; the MAC proves that we minted this.
  if (ahead >= 1) {
    const { generation, nonce } = token;
    // The cookie jar may be left with the current child although a sibling of it was used first.
    const siblingsSince = now - state.childServedAt <= reuseInterval ? state.childMintedAt : now;
    return { outcome: ahead === 1 ? "rotate" : "heal", next: { generation, nonce, siblingsSince, ...fresh } };
  }

  // Rule 4: the answer was lost, however long ago.
  if (ahead === 0 && (token.nonce === state.nonce || token.issuedAt >= state.siblingsSince)) {
    return { outcome: "recover", next: { ...state, ...fresh } };
  }

  return { outcome: "reuse" }; // rule 5
}
