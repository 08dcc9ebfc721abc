/** The search with servers that render pages as further readers of the browser's jar. */
import { describe, expect, test } from "vitest";
import { decide } from "../../src/session/rotation.ts";
import { explore } from "./rotation-search/explore.ts";
import { type PagesAssumptions, pages } from "./rotation-search/pages.ts";
import { grid } from "./rotation-search/time.ts";

const search = (assumptions: Omit<PagesAssumptions, "decide" | "time" | "share">) =>
  explore(pages({ decide, time: grid(2), share: 1, ...assumptions }));

describe("servers that share a refresh for R/4 beside the browser kit", () => {
  test("log nobody out by mistake while navigations take up to R/4, through two processes", () => {
    const result = search({ inFlight: 1, processes: 2, sharedFrom: "call", flight: 1 });
    expect(result).toMatchObject({ fixpoint: true, counterexample: [] });
  });

  test("may with navigations of R/2: what is shared is older than its navigation", () => {
    const { counterexample } = search({ inFlight: 2, processes: 1, sharedFrom: "call", flight: 2 });
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

  test("would with navigations of R/4 if the time began with the result: the service may have sent it long before", () => {
    const { counterexample } = search({ inFlight: 2, processes: 1, sharedFrom: "result", flight: 1 });
    expect(counterexample.at(-1)).toBe("a request through the kit runs: reuse");
  });
});
