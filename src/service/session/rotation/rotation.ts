/**
 * Rotation: the effect of a presented refresh token on its session.
 *
 * A pure function, `state × token × now → outcome, state'`. The embedded store calls the function, the Redis script
 * (store/redis/lua/rotate.lua) implements the same rules, and a differential test compares the two. The rules were found by exhaustive
 * search (test/service/session/rotation/rotation.search.test.ts); their numbers are those of the table in docs/why/rotation.md. All times
 * are the store's.
 *
 * The reuse interval, R, is the only parameter. Two searches show that no time limit here can be changed: if one were shorter, a browser
 * whose requests take up to R/2 would be logged out; if one were longer, two holders of one token would never be detected.
 *
 * An attacker differs from another tab of the browser: all tabs share one cookie jar, so the times at which responses were sent determine
 * which tokens the browser may still present. While other requests of the browser get further children (tokens that replace the presented
 * one), it can still use a child until 2 R after that child was made, but not later. Once no child of a token has been returned for R, the
 * first child to be used is the only one in use. An attacker that keeps refreshing gets new children indefinitely, and so ends the session.
 * For this reason `repeat` changes the state, too: it notes that a child was returned again, after which the browser may use it for longer.
 */
import { type StoreMs, storeMs } from "../time.ts";

/** The part of a session that rotation reads and writes. Its size is constant, and nothing in it can be used as a token. */
export type RotationState = {
  /** `g`: generation of the confirmed token, the newest that its client has used. */
  readonly generation: number;
  /** `n`: nonce of the confirmed token, the newest that its client has used; empty before the first use. */
  readonly nonce: string;
  /** `f` in docs/why/rotation.md: from this time of issue on, other tokens of the same generation count as used (confirmed), too. */
  readonly siblingsSince: StoreMs;
  /** `c`: nonce of the current child, the token that replaces the confirmed one. It has generation g + 1. */
  readonly childNonce: string;
  /** `ct`: when the current child, the next refresh token, was minted. */
  readonly childMintedAt: StoreMs;
  /** `cs`: when the current child, the next refresh token, was last returned. */
  readonly childServedAt: StoreMs;
};

/** The fields of a refresh token whose MAC has been verified. */
export type TokenFields = {
  readonly generation: number;
  readonly nonce: string;
  readonly issuedAt: StoreMs;
};

/** `repeat` returns the current child, the next refresh token. `rotate`, `heal` and `recover` make a new one. `reuse` ends the session. */
export type RotationOutcome = "repeat" | "rotate" | "heal" | "recover" | "reuse";

export type Decision =
  | { readonly outcome: "repeat" | "rotate" | "heal" | "recover"; readonly next: RotationState }
  | { readonly outcome: "reuse" };

/** A time after the issue of any token: the latest that a record of the store can hold. */
const NEVER = storeMs(2 ** 48 - 1);

/** A time before the issue of any token. */
const LONG_AGO = storeMs(0);

/** Returns the state of a new session, whose first refresh token has generation 1 and has not been used yet. */
export function firstState(childNonce: string): RotationState {
  return {
    generation: 0,
    nonce: "",
    siblingsSince: LONG_AGO,
    childNonce,
    childMintedAt: LONG_AGO,
    childServedAt: LONG_AGO,
  };
}

/**
 * Decides the outcome for a token with a valid MAC, in a session that exists and is within both lifetimes.
 *
 * @param freshNonce the nonce of the next refresh token, if one is made
 * @param reuseIntervalMs the reuse interval (R), in ms
 * @param isHeld whether the request proves the session's key. If so, tokens of every earlier generation are accepted, too
 */
export function decide(
  state: RotationState,
  token: TokenFields,
  freshNonce: string,
  now: StoreMs,
  reuseIntervalMs: number,
  isHeld = false,
): Decision {
  // If a clock was set back, a time may lie in the future. It then counts as if it were equally far in the past.
  const within = (time: StoreMs, limitMs: number) => Math.abs(now - time) <= limitMs;
  const { childNonce, childMintedAt, childServedAt, siblingsSince } = state;
  const ahead = token.generation - state.generation;

  const child =
    ahead === 1 && (isHeld || token.nonce === childNonce || token.issuedAt >= childMintedAt - 2 * reuseIntervalMs);
  const confirmed =
    // The token may be any earlier one if the request proves the session's key, because the holder of the key may still have old tokens.
    (ahead === 0 && (token.nonce === state.nonce || token.issuedAt >= siblingsSince)) || (isHeld && ahead <= 0);
  // The token was replaced only recently, so its tab may have sent the request before it received the newer token.
  const late = (ahead === 0 || ahead === -1) && within(siblingsSince, 2 * reuseIntervalMs);

  // Rule 1: a new token that was made a moment ago is returned again. A repeated or slow request, or one of another tab, presents the token
  // that it replaces, or it is presented itself.
  if (within(childMintedAt, reuseIntervalMs) && (child || confirmed || late)) {
    return { outcome: "repeat", next: { ...state, childServedAt: now } };
  }

  const fresh = { childNonce: freshNonce, childMintedAt: now, childServedAt: now };
  const { generation, nonce } = token;
  if (child) {
    // Rule 2: a new token is used for the first time. Another one that was returned recently stays valid: the browser may hold that one.
    const since = within(childServedAt, reuseIntervalMs) ? childMintedAt : NEVER;
    return { outcome: "rotate", next: { generation, nonce, siblingsSince: since, ...fresh } };
  }
  if (ahead > 1) {
    // Rule 3: the token is newer than the stored state, so the store has lost its last writes. The MAC proves that the token is genuine.
    return { outcome: "heal", next: { generation, nonce, siblingsSince: now, ...fresh } };
  }

  // Rule 4: the newest used token (or an earlier one, by the device that holds the key) is presented again, because the response to its
  // refresh was lost, however long ago. It is replaced again.
  if (confirmed) return { outcome: "recover", next: { ...state, ...fresh } };

  return { outcome: "reuse" }; // Rule 5: the token was used before, or another one in its place, longer ago than 2 R.
}
