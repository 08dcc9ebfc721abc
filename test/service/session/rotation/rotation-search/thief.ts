/**
 * Simulates an attacker that presents a stolen token at intervals of its choice, and a victim that does not know of the attacker. Times are
 * plain milliseconds.
 *
 * The attacker knows only the responses to its own requests. They reveal one fact: if the successor token (child) in a response was not
 * created at the time of the request, the victim has sent a request in between, and has the same successor.
 */
import { type decide, firstState, type TokenFields } from "../../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../../src/service/session/time.ts";
import { childOf } from "./holders.ts";

export type Life = {
  readonly decide: typeof decide;
  readonly reuseIntervalMs: number;
  /** Returns the time to the victim's next refresh, in ms. */
  readonly pause: () => number;
  /** Returns the time to the thief's next request, in ms. */
  readonly rhythm: () => number;
  /**
   * How the thief acts. `confirmed`: it presents the same token until the victim has used the successor of that token, and then takes the
   * newest token. `newest`: it presents the token of the last response. `watchful`: it takes a newer token when it sees that the victim has
   * sent a request, and then sends no request until the victim may refresh again. `punctual`: it sends one request for each refresh that it
   * expects of the victim.
   */
  readonly thief: "confirmed" | "newest" | "watchful" | "punctual";
  /** The shortest pause of the victim between two refreshes, in ms. A watchful thief knows nothing else of the victim. */
  readonly quiet: number;
};

/** Returns how many refreshes of the victim succeed after the theft, at most `most`. */
export function served({ decide, reuseIntervalMs: R, pause, rhythm, thief, quiet }: Life, most: number): number {
  let state = firstState("stolen");
  let now = 1e9;
  let refreshes = 0;
  let minted = 0;
  function present(token: TokenFields): TokenFields | undefined {
    const decision = decide(state, token, `n${minted++}`, storeMs(now), R);
    if (decision.outcome === "reuse") return undefined;
    state = decision.next;
    return childOf(state);
  }
  const stolen = childOf(state);
  let victim = present(stolen) ?? stolen;
  // Watchful and punctual thieves present the stolen token at once, and begin with the successor token that they get. They wait for at
  // least `quiet` before their next request.
  const waits = thief === "watchful" || thief === "punctual";
  let held = waits ? victim : stolen;
  let newest = victim;
  let victimAt = now + pause();
  let thiefAt = now + rhythm() + (waits ? quiet : 0);
  while (refreshes < most) {
    now = Math.min(victimAt, thiefAt);
    if (victimAt <= thiefAt) {
      const child = present(victim);
      if (child === undefined) break;
      victim = child;
      victimAt = now + pause();
      refreshes++;
      continue;
    }
    const child = present(held);
    if (child === undefined) break;
    const behind = child.generation > held.generation + 1;
    const foreign = child.issuedAt !== now && child.nonce !== newest.nonce;
    thiefAt = now + rhythm();
    if (thief === "newest") held = child;
    else if (thief === "punctual" || (thief === "watchful" && foreign)) {
      held = child;
      thiefAt = child.issuedAt + quiet + rhythm();
    } else if (behind) held = newest;
    newest = child;
  }
  return refreshes;
}
