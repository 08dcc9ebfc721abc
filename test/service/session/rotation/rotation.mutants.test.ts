import { describe, expect, test } from "vitest";
import type { decide } from "../../../../src/service/session/rotation/rotation.ts";
import { browser } from "./rotation-search/browser.ts";
import { explore } from "./rotation-search/explore.ts";
import { holders } from "./rotation-search/holders.ts";
import { MUTANTS, type Mutant, mutated } from "./rotation-search/mutants.ts";
import { keepsAsking, play, R } from "./rotation-search/play.ts";
import { poller } from "./rotation-search/poller.ts";
import { grid } from "./rotation-search/time.ts";

const time = grid(2);
const asked = (rule: typeof decide) => [
  // The victim presents its token when the current successor token is younger than one reuse interval (R).
  keepsAsking(rule, 1.001 * R, 9, R / 2),
  keepsAsking(rule, 2.1 * R, 1, 30 * R), // The victim presents a superseded token after its time.
];
const setBack = (rule: typeof decide) => play(rule, "vv", 0, -R - 1);

type Found = { readonly counterexample: readonly unknown[] };
const SEARCHES: Record<Mutant["noticedBy"], (rule: typeof decide) => Found> = {
  browser: (rule) => explore(browser({ decide: rule, time, inFlight: 2 })),
  failover: (rule) => explore(browser({ decide: rule, time, inFlight: 1, failover: "lost" })),
  holders: (rule) => explore(holders({ decide: rule, reuseIntervalMs: 10, hoards: false, allowed: 2 })),
  "close holders": (rule) => explore(holders({ decide: rule, reuseIntervalMs: 10, hoards: true, allowed: "any" })),
  poller: (rule) => explore(poller({ decide: rule, ticks: 2, apart: 4, hoard: 2 })),
  "kept asking": (rule) => ({ counterexample: asked(rule).filter((outcome) => outcome !== "reuse") }),
  "another tab": (rule) => ({ counterexample: play(rule, "vs", R / 2).filter((outcome) => outcome === "recover") }),
  "clock set back": (rule) => ({
    counterexample: setBack(rule)
      .slice(1)
      .filter((outcome) => outcome === "repeat"),
  }),
};

describe("the searches can fail", () => {
  test.each(MUTANTS)("$name: noticed by $noticedBy", async (mutant) => {
    const { counterexample } = SEARCHES[mutant.noticedBy](await mutated(mutant));
    expect(counterexample).not.toEqual([]);
  });
});
