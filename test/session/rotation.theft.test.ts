import { describe, expect, it } from "vitest";
import {
  type Decision,
  decide,
  firstState,
  type PresentedToken,
  type RotationState,
} from "../../src/session/rotation.ts";
import { explore } from "./rotation-search/explore.ts";
import { holders } from "./rotation-search/holders.ts";

const R = 10_000;
const proved = { fixpoint: true, counterexample: [] };

describe("theft is cut off: two holders of one token, more than R apart, in every order and at any length", () => {
  it.each([R, 0])(
    "at most two changes of hands are served when both use what they were given (R = %d)",
    (reuseInterval) => {
      expect(explore(holders({ decide, reuseInterval, hoards: false, allowed: 2 }))).toMatchObject(proved);
      expect(explore(holders({ decide, reuseInterval, hoards: false, allowed: 1 })).fixpoint).toBe(false);
    },
  );

  it.each([R, 0])("at most three when the thief keeps and uses whatever it ever had (R = %d)", (reuseInterval) => {
    expect(explore(holders({ decide, reuseInterval, hoards: true, allowed: 3 }))).toMatchObject(proved);
    expect(explore(holders({ decide, reuseInterval, hoards: true, allowed: 2 })).fixpoint).toBe(false);
  });

  it("a token two generations behind is never served, however close together they come", () => {
    expect(explore(holders({ decide, reuseInterval: R, hoards: true, allowed: "any" }))).toMatchObject(proved);
  });
});

/**
 * A session whose first token was stolen: `v` and `t` present the newest that victim and thief were given, `s` what was
 * stolen. The time before each presentation is the next of `waits`, over and over.
 */
function play(script: string, ...waits: number[]): Decision["outcome"][] {
  const stolen: PresentedToken = { generation: 1, nonce: "stolen", issuedAt: 0 };
  const held = new Map([...script].map((who) => [who, stolen]));
  const outcomes: Decision["outcome"][] = [];
  let state: RotationState = firstState("stolen");
  let now = 1e9;
  for (const [at, who] of [...script].entries()) {
    now += waits[at % waits.length] ?? 0;
    const decision = decide(state, (who === "s" ? stolen : held.get(who)) ?? stolen, `n${at}`, now, R);
    outcomes.push(decision.outcome);
    if (decision.outcome === "reuse") break;
    state = decision.next;
    held.set(who, { generation: state.generation + 1, nonce: state.childNonce, issuedAt: state.childMintedAt });
  }
  return outcomes;
}

describe("a thief", () => {
  it.each([
    ["in lock-step", "vtvtvt", ["rotate", "recover", "rotate", "reuse"]],
    ["that comes first", "tvtv", ["rotate", "recover", "rotate", "reuse"]],
    ["that comes after the victim went on", "vvt", ["rotate", "rotate", "reuse"]],
    ["that waits and uses an old token", "vvvvs", ["rotate", "rotate", "rotate", "rotate", "reuse"]],
    ["that presents the stolen token again and again", "vsvs", ["rotate", "recover", "rotate", "reuse"]],
    ["that goes on alone", "tttv", ["rotate", "rotate", "rotate", "reuse"]],
  ] as const)("%s ends the session", (_, script, outcomes) => {
    for (const wait of [R + 1, 1.5 * R, 3 * R, 30 * R]) expect(play(script, wait)).toEqual(outcomes);
  });

  it("with a sibling is served as long as the victim keeps coming within R of it, and ends with the first time it does not", () => {
    expect(play("vtvtvtvtvt", 1.5 * R, 0.5 * R)).not.toContain("reuse");
    expect(play("vtvtvtvtvt", 1.5 * R, 0.5 * R, 1.5 * R, 1.5 * R, 1.5 * R).at(-1)).toBe("reuse");
  });
});
