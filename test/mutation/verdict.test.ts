/** What counts as a kill, on a machine that may have become busy. */
import { expect, test } from "vitest";
import type { Outcome } from "./tests.ts";
import { judgeBy } from "./worker.ts";

const PASSES: Outcome = { hangs: false, failed: undefined };
const FAILS: Outcome = { hangs: false, failed: { file: "b.test.ts", name: "b.test.ts fails" } };
const HANGS: Outcome = { hangs: true, failed: undefined };

/** Judges by tests whose runs with the mutant have these outcomes, and whose runs without take these times. */
async function judged(outcomes: readonly Outcome[], usualMs: readonly (number | undefined)[] = [1000, 1000]) {
  const left = [...outcomes];
  const durations = [...usualMs];
  const runs: { readonly files: readonly string[]; readonly limitMs: number }[] = [];
  let inPlace = false;
  const measure = async () => {
    expect(inPlace).toBe(false);
    return durations.shift();
  };
  const tests = {
    run: async (files: readonly string[], limitMs: number) => {
      expect(inPlace).toBe(true);
      runs.push({ files, limitMs });
      return left.shift() as Outcome;
    },
    measure,
    measureAgain: measure,
  };
  const verdict = await judgeBy(tests, ["a.test.ts", "b.test.ts"], async (act) => {
    inPlace = true;
    const result = await act();
    inPlace = false;
    return result;
  });
  expect(left).toEqual([]);
  return { outcome: verdict?.outcome, by: verdict?.by, runs };
}

test("tests that fail twice kill; the second time the file that failed runs alone", async () => {
  const { outcome, by, runs } = await judged([FAILS, FAILS]);
  expect({ outcome, by }).toEqual({ outcome: "killed", by: "b.test.ts fails" });
  expect(runs.map(({ files }) => files)).toEqual([["a.test.ts", "b.test.ts"], ["b.test.ts"]]);
});

test("tests that fail once, or pass, let the mutant live", async () => {
  expect((await judged([PASSES])).outcome).toBeUndefined();
  expect((await judged([FAILS, PASSES])).outcome).toBeUndefined();
});

test("tests that hang have to hang twice, the second time with a limit for the machine as it is now", async () => {
  const { outcome, runs } = await judged([HANGS, HANGS], [1000, 20_000]);
  expect(outcome).toBe("timeout");
  expect(runs.map(({ limitMs }) => limitMs)).toEqual([13_000, 70_000]);
  expect((await judged([HANGS, PASSES])).outcome).toBeUndefined();
  expect((await judged([HANGS, FAILS, FAILS])).outcome).toBe("killed");
});

test("tests that fail without a mutant judge none", async () => {
  expect((await judged([], [undefined])).outcome).toBeUndefined();
  expect((await judged([HANGS], [1000, undefined])).outcome).toBeUndefined();
});
