import { describe, expect, test } from "vitest";
import { type Decision, decide } from "../../../../src/service/session/rotation/rotation.ts";
import { explore } from "./rotation-search/explore.ts";
import { holders } from "./rotation-search/holders.ts";
import { keepsAsking, play, R } from "./rotation-search/play.ts";
import { poller } from "./rotation-search/poller.ts";

const proved = { fixpoint: true, counterexample: [] };

describe("theft is cut off: two holders of one token, more than R apart, in every order and at any length", () => {
  test.each([
    ["when both use what they were given", R, false, 2],
    ["when both use what they were given", 0, false, 1],
    ["when the attacker keeps and uses whatever it ever had", R, true, 3],
    ["when the attacker keeps and uses whatever it ever had", 0, true, 2],
  ])("%s (R = %d): changes of hands that are served", (_, reuseIntervalMs, hoards, most) => {
    expect(explore(holders({ decide, reuseIntervalMs, hoards, allowed: most }))).toMatchObject(proved);
    expect(explore(holders({ decide, reuseIntervalMs, hoards, allowed: most - 1 })).fixpoint).toBe(false);
  });

  test("a token two generations behind is never served, however close together they come", () => {
    expect(explore(holders({ decide, reuseIntervalMs: R, hoards: true, allowed: "any" }))).toMatchObject(proved);
  });
});

type Outcomes = Decision["outcome"][];

describe("an attacker", () => {
  test.each([
    ["in lock-step", "vtvtvt", ["rotate", "recover", "rotate", "reuse"], ["rotate", "recover", "reuse"]],
    ["that comes first", "tvtv", ["rotate", "recover", "rotate", "reuse"], ["rotate", "recover", "reuse"]],
    ["that comes after the victim went on", "vvt", ["rotate", "rotate", "reuse"]],
    ["that waits and uses an old token", "vvvvs", ["rotate", "rotate", "rotate", "rotate", "reuse"]],
    [
      "that presents the stolen token again",
      "vsvs",
      ["rotate", "recover", "rotate", "reuse"],
      ["rotate", "recover", "reuse"],
    ],
    ["that goes on alone", "tttv", ["rotate", "rotate", "rotate", "reuse"]],
  ] satisfies [string, string, Outcomes, Outcomes?][])(
    "%s ends the session",
    (_, script, upTo2R, beyond?: Outcomes) => {
      for (const wait of [R + 1, 1.5 * R, 2 * R]) expect(play(decide, script, wait)).toEqual(upTo2R);
      for (const wait of [2 * R + 1, 3 * R, 30 * R]) expect(play(decide, script, wait)).toEqual(beyond ?? upTo2R);
    },
  );

  test.each([0.1, 0.5, 0.9, 1, 1.001, 1.5, 1.9, 2])(
    "that keeps asking with the confirmed token, every %d R, ends the session with the victim's next refresh",
    (rhythm) => {
      for (const offset of [0.01, 0.5, 0.99]) {
        expect(keepsAsking(decide, rhythm * R, 39, offset * rhythm * R)).toBe("reuse");
      }
    },
  );

  test("with the victim's token is served as long as each victim's refresh is within R of its own", () => {
    expect(play(decide, "vtvtvtvtvt", 1.5 * R, 0.5 * R)).not.toContain("reuse");
    expect(play(decide, "vtvtvtvtvt", 1.5 * R, 0.5 * R, 1.5 * R, 1.5 * R, 1.5 * R).at(-1)).toBe("reuse");
  });

  test("with a sibling of the victim's token is not, however close they come", () => {
    expect(play(decide, "vtvt", 1.5 * R, 1.5 * R, 20 * R, 1)).toEqual(["rotate", "recover", "rotate", "reuse"]);
  });
});

describe("an attacker that presents as often as it likes, at the best of times", () => {
  test("is not served any more once it has missed two refreshes of the victim, one after the other, by more than R", () => {
    expect(explore(poller({ decide, ticks: 2, apart: 2, hoard: 2 }))).toMatchObject(proved);
  });
});
