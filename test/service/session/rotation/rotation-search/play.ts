/** Plays single histories of a session whose first token was stolen, with times in ms. */
import {
  type Decision,
  type decide,
  firstState,
  type RotationState,
  type TokenFields,
} from "../../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../../src/service/session/time.ts";
import { childOf } from "./holders.ts";

/** The reuse interval R, in ms. */
export const R = 10_000;

/**
 * Plays a script: `v` and `t` present the newest token of the victim and of the thief, `s` the stolen one.
 *
 * @param waits the times before the presentations, in ms; they repeat if there are fewer than presentations
 */
export function play(rule: typeof decide, script: string, ...waits: number[]): Decision["outcome"][] {
  const stolen: TokenFields = { generation: 1, nonce: "stolen", issuedAt: storeMs(0) };
  const held = new Map([...script].map((holder) => [holder, stolen]));
  const outcomes: Decision["outcome"][] = [];
  let state: RotationState = firstState("stolen");
  let now = 1e9;
  for (const [at, holder] of [...script].entries()) {
    now += waits[at % waits.length] ?? 0;
    const decision = rule(state, (holder === "s" ? stolen : held.get(holder)) ?? stolen, `n${at}`, storeMs(now), R);
    outcomes.push(decision.outcome);
    if (decision.outcome === "reuse") break;
    state = decision.next;
    held.set(holder, childOf(state));
  }
  return outcomes;
}

/** Plays a thief that presents the stolen token at regular intervals, and then a victim. Returns the outcome for the victim. */
export function keepsAsking(rule: typeof decide, rhythm: number, times: number, offset: number) {
  return play(rule, `v${"s".repeat(times)}v`, ...Array.from({ length: times + 1 }, () => rhythm), offset).at(-1);
}
