/**
 * Computes how long the victim's pause must be so that an attacker which polls in a steady rhythm is detected at the victim's next
 * refresh.
 *
 * An attacker that polls every P has a child minted every m: the first multiple of P beyond R. The victim's child is outdated by one
 * that is minted more than 2 R later, so that a pause of 2 R + m always lets the victim's next refresh find the theft. For no
 * rhythm up to 2 R is m more than 2 R: 4 R are enough for all of them.
 */
import type { decide } from "../../../src/session/rotation.ts";
import { type Life, served } from "./thief.ts";

/** The number of ticks in the reuse interval R. */
export const TICKS = 8;
/** The length of a tick, in ms. */
const TICK = 1_000;
const R = TICKS * TICK;
/** A shift of the victim's requests, in ms. It keeps them off the ticks, so that nothing happens at exactly R: the rules say "within". */
const OFF = 1;

/** Returns how often a victim that comes every `pause` ticks is served beside a thief that comes every `rhythm`, at the worst phase. */
function worst(rule: typeof decide, thief: Life["thief"], rhythm: number, pause: number, most: number): number {
  let worst = 0;
  for (let phase = 0; phase < rhythm * 2; phase++) {
    let next = pause * TICK + (phase * TICK) / 2 + OFF;
    const pauses = () => {
      const now = next;
      next = pause * TICK;
      return now;
    };
    const life: Life = {
      decide: rule,
      thief,
      reuseIntervalMs: R,
      quiet: 0,
      pause: pauses,
      rhythm: () => rhythm * TICK,
    };
    worst = Math.max(worst, served(life, most));
  }
  return worst;
}

/** Returns the shortest pause, in ticks, from which on the theft is detected at the next refresh, whatever the phase. */
export function line(rule: typeof decide, thief: Life["thief"], rhythm: number): number {
  let pause = 8 * TICKS;
  while (pause > 1 && worst(rule, thief, rhythm, pause - 1, 1) === 0) pause--;
  return pause;
}

/** Returns 2 R + m, in ticks. */
export function promised(rhythm: number): number {
  return 2 * TICKS + rhythm * (Math.floor(TICKS / rhythm) + 1);
}
