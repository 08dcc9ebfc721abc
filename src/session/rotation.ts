/**
 * Rotation: what one presented refresh token does to its session.
 *
 * A pure function, `state × token × now → outcome, state'`. The embedded store calls it, the Redis
 * script (store/redis/rotate.lua) says the same, and a differential test holds the two together.
 * The rules were found by exhaustive search (test/session/rotation.search.test.ts); their numbers are
 * those of the table in README.md. All times are milliseconds of the store's clock.
 */

/** The part of a session that rotation reads and writes: O(1), and nothing in it can be presented. */
export type RotationState = {
  /** `g`: generation of the confirmed token, the newest that its client has used. */
  readonly generation: number;
  /** `n`: nonce of the confirmed token; empty before the first use. */
  readonly nonce: string;
  /** `i`: when the confirmed token was issued. */
  readonly issuedAt: number;
  /** `t`: when the confirmed token was first used. */
  readonly firstUsedAt: number;
  /** `c`: nonce of the current child, which has generation g + 1. */
  readonly childNonce: string;
  /** `ct`: when the current child was minted. */
  readonly childMintedAt: number;
};

/** What a refresh token says of itself once its MAC has been verified. */
export type PresentedToken = {
  readonly generation: number;
  readonly nonce: string;
  readonly issuedAt: number;
};

/** `repeat` answers with the current child; the serving others have minted a new one; `reuse` ends the session. */
export type RotationOutcome = "repeat" | "rotate" | "heal" | "recover" | "reuse";

export type Decision =
  | { readonly outcome: "repeat" | "reuse" }
  | { readonly outcome: "rotate" | "heal" | "recover"; readonly next: RotationState };

/** A new session: generation 0 is confirmed, and its first token is a child minted long ago. */
export function firstState(childNonce: string): RotationState {
  return { generation: 0, nonce: "", issuedAt: 0, firstUsedAt: 0, childNonce, childMintedAt: 0 };
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
  const window = 3 * reuseInterval;
  const young = now - state.childMintedAt <= reuseInterval;
  const ahead = token.generation - state.generation;

  if (ahead === 1 && token.nonce === state.childNonce && young) return { outcome: "repeat" }; // rule 1
  if (ahead >= 1) {
    return {
      outcome: ahead === 1 ? "rotate" : "heal", // rules 2 and 3
      next: {
        generation: token.generation,
        nonce: token.nonce,
        issuedAt: token.issuedAt,
        firstUsedAt: now,
        childNonce: freshNonce,
        childMintedAt: now,
      },
    };
  }
  if (ahead === 0 && (token.nonce === state.nonce || state.firstUsedAt - token.issuedAt <= window)) {
    if (young) return { outcome: "repeat" }; // rule 4
    return { outcome: "recover", next: { ...state, childNonce: freshNonce, childMintedAt: now } };
  }
  if (ahead === -1 && now - state.issuedAt <= window) return { outcome: "repeat" }; // rule 5
  return { outcome: "reuse" }; // rule 6
}
