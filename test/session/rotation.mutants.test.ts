import { describe, expect, it } from "vitest";
import type { decide } from "../../src/session/rotation.ts";
import { browser } from "./rotation-search/browser.ts";
import { explore, type Result } from "./rotation-search/explore.ts";
import { holders } from "./rotation-search/holders.ts";
import { MUTANTS, type Mutant, mutated } from "./rotation-search/mutants.ts";
import { grid } from "./rotation-search/time.ts";

const time = grid(2);
const SEARCHES: Record<Mutant["noticedBy"], (rule: typeof decide) => Result> = {
  browser: (rule) => explore(browser({ decide: rule, time, inFlight: 2 })),
  failover: (rule) => explore(browser({ decide: rule, time, inFlight: 1, failover: "lost" })),
  holders: (rule) => explore(holders({ decide: rule, reuseInterval: 10, hoards: false, allowed: 2 })),
  "close holders": (rule) => explore(holders({ decide: rule, reuseInterval: 10, hoards: true, allowed: "any" })),
};

describe("the searches can fail", () => {
  it.each(MUTANTS)("$name: noticed by $noticedBy", async (mutant) => {
    const { counterexample } = SEARCHES[mutant.noticedBy](await mutated(mutant));
    expect(counterexample).not.toEqual([]);
  });
});
