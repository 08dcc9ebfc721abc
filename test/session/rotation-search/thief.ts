/**
 * An attacker in plain milliseconds that presents in a rhythm, and a victim that does not know of it.
 *
 * All that the attacker knows is the responses. They reveal one thing: when a response was minted at another time than it
 * asked, the victim came in between, and has that child too.
 */
import { type decide, firstState, type PresentedToken } from "../../../src/session/rotation.ts";
import { storeMs } from "../../../src/session/time.ts";
import { childOf } from "./holders.ts";

export type Life = {
  readonly decide: typeof decide;
  readonly reuseIntervalMs: number;
  /** Time to the victim's next refresh, ms. */
  readonly pause: () => number;
  /** Time to the thief's next presentation, ms. */
  readonly rhythm: () => number;
  /**
   * `confirmed`: stays on the token that it has until it is behind. `newest`: moves on with every response. `watchful`: moves on
   * when it sees that the victim came, and stays away until the victim may come again. `punctual`: comes once for each refresh
   * of the victim that it expects.
   */
  readonly thief: "confirmed" | "newest" | "watchful" | "punctual";
  /** The shortest pause of the victim: all that a watchful thief knows of it, ms. */
  readonly quiet: number;
};

/** Returns how many refreshes of the victim succeed after the theft, at most `most`. */
export function served({ decide, reuseIntervalMs: R, pause, rhythm, thief, quiet }: Life, most: number): number {
  let state = firstState("stolen");
  let now = 1e9;
  let refreshes = 0;
  let minted = 0;
  function present(token: PresentedToken): PresentedToken | undefined {
    const decision = decide(state, token, `n${minted++}`, storeMs(now), R);
    if (decision.outcome === "reuse") return undefined;
    state = decision.next;
    return childOf(state);
  }
  const stolen = childOf(state);
  let victim = present(stolen) ?? stolen;
  // Some thieves present in time to get the first child, and then wait.
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
