/** Whether a rule could notice a theft earlier than ours does without ending the session of an honest browser. */
import { describe, expect, test } from "vitest";
import { decide } from "../../../../src/service/session/rotation/rotation.ts";
import { explain, R } from "./rotation-search/explained.ts";

/** Distances a little above 2 R, 3 R and 5 R. */
const FAR = [2 * R + 1, 3 * R + 1, 5 * R + 1];
/** Distances up to 2 R, and one above it. */
const ALL = [0, 1, R / 2, R, R + 1, 2 * R, 2 * R + 1];

describe("no rule that ends no honest session notices a theft earlier", () => {
  test("presentations more than 2 R apart: a history is served exactly as long as an honest browser explains it", () => {
    const found = explain({ decide, distances: FAR, length: 5 });
    expect(found).toMatchObject({ wrong: [], missed: [] });
    expect(found.decided).toBeGreaterThan(1_000);
  });

  test("a thief that uses its token between two refreshes of the victim looks like a lost response", () => {
    // The victim, the thief, the victim. Only the last one could be refused, by a rule that ends sessions whose response was lost.
    expect(explain({ decide, distances: [2 * R + 1], length: 3 }).missed).toEqual([]);
    const strict: typeof decide = (...args) => {
      const decision = decide(...args);
      return decision.outcome === "recover" ? { outcome: "reuse" } : decision;
    };
    expect(explain({ decide: strict, distances: [2 * R + 1], length: 3 }).wrong).toEqual([
      ["0 R later a: rotate", "2.25 R later a: reuse"],
      ["0 R later a: rotate", "2.25 R later b: rotate", "2.25 R later b: reuse"],
    ]);
  });

  test("a rule that served a replaced child for longer would be noticed", () => {
    const lax: typeof decide = (state, token, fresh, now, interval) => decide(state, token, fresh, now, 2 * interval);
    expect(explain({ decide: lax, distances: FAR, length: 3 }).missed).not.toEqual([]);
  });
});

describe("at any distances", () => {
  const found = explain({ decide, distances: ALL, length: 4 });

  test("no history of an honest browser ends", () => {
    expect(found.wrong).toEqual([]);
  });

  test("the price of a state of constant size: between R and 2 R, a replaced child is served once more", () => {
    const apart = found.missed.filter((lines) => lines.slice(1).every((line) => Number.parseFloat(line) > 1));
    expect(apart[0]).toEqual(["0 R later a: rotate", "1.25 R later a: recover", "1.25 R later b: rotate"]);
    // Nothing but that: the last token presented is a child that was replaced by `recover` at most 2 R after it was minted.
    const others = apart.filter((lines) => !/ a: recover$| [b-d]: recover$/.test(lines.at(-2) ?? ""));
    expect(others).toEqual([]);
  });
});
