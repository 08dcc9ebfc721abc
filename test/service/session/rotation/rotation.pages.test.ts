/**
 * The search of the model in which servers that render pages refresh the session with the browser's cookies, as the browser itself does.
 */
import { describe, expect, test } from "vitest";
import { decide } from "../../../../src/service/session/rotation/rotation.ts";
import { explore } from "./rotation-search/explore.ts";
import { type PagesAssumptions, pages } from "./rotation-search/pages.ts";
import { grid, type Time } from "./rotation-search/time.ts";

const search = (assumptions: Omit<PagesAssumptions, "decide" | "time" | "share"> & { readonly time?: Time }) =>
  explore(pages({ decide, time: grid(2), share: 1, ...assumptions }));

describe("servers that share a refresh beside the browser kit, with navigations of up to R/2", () => {
  test("log nobody out by mistake where the first navigation alone brings the cookies", () => {
    const half = { time: grid(1), flight: 1, cookiesFor: "the first" } as const;
    for (const [inFlight, processes] of [
      [1, 2],
      [2, 1],
    ] as const) {
      expect(search({ ...half, inFlight, processes })).toMatchObject({ fixpoint: true, counterexample: [] });
    }
  });

  test("would where all bring them: what is shared is older than its navigation", () => {
    const { counterexample } = search({ inFlight: 2, processes: 1, flight: 2, cookiesFor: "all" });
    expect(counterexample).toEqual([
      "a request leaves for process 0",
      "a request through process 0 runs: rotate",
      "0.25 R",
      "a request leaves for process 0",
      "process 0 has the result",
      "2 × 0.25 R",
      "a request leaves for the kit",
      "a response arrives",
      "2 × 0.25 R",
      "a request leaves for the kit",
      "a request through the kit runs: rotate",
      "a request through the kit runs: reuse",
    ]);
  });
});
