/**
 * Computes the shortest pause between a victim's refreshes with which an attacker that polls at regular intervals is detected at the
 * victim's next refresh.
 *
 * R is the reuse interval. If the attacker polls every P, a successor token (child) is minted every m, the first multiple of P beyond R.
 * The victim's child is outdated as soon as another one is minted more than 2 R later. So with a pause of 2 R + m, the victim's next
 * refresh always detects the theft. For intervals P of up to 2 R, m is at most 2 R, so a pause of 4 R is always enough.
 */
import type { decide } from "../../../../../src/service/session/rotation/rotation.ts";
import { type Life, served } from "./thief.ts";

/** The number of ticks in the reuse interval R. */
export const TICKS = 8;
/** The length of a tick, in ms. */
const TICK = 1_000;
const R = TICKS * TICK;
/**
 * The time by which the victim's requests are shifted from the ticks, in ms. Without the shift, requests would be exactly one reuse
 * interval (R) apart, and the outcome would depend on whether the limit itself is included.
 */
const OFF = 1;

/**
 * A victim refreshes every `pause` ticks, and a thief polls every `rhythm` ticks. Returns how many refreshes of the victim succeed if the
 * thief begins at the time that is worst for the victim.
 */
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

/** Returns the shortest pause between two refreshes of the victim, in ticks, with which the second refresh always detects the theft. */
export function line(rule: typeof decide, thief: Life["thief"], rhythm: number): number {
  let pause = 8 * TICKS;
  while (pause > 1 && worst(rule, thief, rhythm, pause - 1, 1) === 0) pause--;
  return pause;
}

/**
 * Returns a pause between the victim's refreshes with which the theft is always detected, in ticks: 2 R + m, where R is the reuse interval
 * and m the first multiple of `rhythm` beyond it.
 */
export function promised(rhythm: number): number {
  return 2 * TICKS + rhythm * (Math.floor(TICKS / rhythm) + 1);
}
