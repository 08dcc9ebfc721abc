/** The rules for when a mutant counts as killed, on a machine that may have become busy. */
import { expect, test } from "vitest";
import { type Outcome, openTests } from "./tests.ts";
import { judgeBy } from "./worker.ts";

const PASSES: Outcome = { hangs: false };
const failing = (isConfirmed: boolean): Outcome => ({
  hangs: false,
  failed: { files: ["b.test.ts"], name: "b.test.ts fails", isConfirmed },
});
const FAILS = failing(true);
const DOES_NOT_LOAD = failing(false);
const HANGS: Outcome = { hangs: true };

/** Judges a mutant by tests whose runs have these outcomes. */
async function judged(outcomes: readonly Outcome[], passWithout = true) {
  const left = [...outcomes];
  const steps: string[] = [];
  const broken = new Set<string>();
  let inPlace = false;
  const without = (step: string) => async (files: readonly string[]) => {
    expect(inPlace).toBe(false);
    steps.push(`${step} ${files.join(" ")}`);
    if (!passWithout && files.length === 1) broken.add(files[0] as string);
    return passWithout;
  };
  const tests = {
    async run(files: readonly string[]) {
      expect(inPlace).toBe(true);
      steps.push(`run ${files.join(" ")}`);
      return left.shift() as Outcome;
    },
    measure: without("measure"),
    pass: without("pass"),
    isBroken: (file: string) => broken.has(file),
  };
  const verdict = await judgeBy(tests, ["a.test.ts", "b.test.ts"], async (act) => {
    inPlace = true;
    const result = await act();
    inPlace = false;
    return result;
  });
  expect(left).toEqual([]);
  return { outcome: verdict?.outcome, by: verdict?.by, steps };
}

test("a test that fails twice kills, if it passes without the mutant", async () => {
  const { outcome, by, steps } = await judged([FAILS]);
  expect({ outcome, by }).toEqual({ outcome: "killed", by: "b.test.ts fails" });
  expect(steps).toEqual(["run a.test.ts b.test.ts", "pass b.test.ts"]);
});

test("a file that fails without the mutant is left out, and the others judge", async () => {
  const { outcome, steps } = await judged([FAILS, PASSES], false);
  expect(outcome).toBeUndefined();
  expect(steps).toEqual(["run a.test.ts b.test.ts", "pass b.test.ts", "run a.test.ts"]);
});

test("what fails without a test is run again, alone", async () => {
  const { outcome, steps } = await judged([DOES_NOT_LOAD, DOES_NOT_LOAD]);
  expect(outcome).toBe("killed");
  expect(steps).toEqual(["run a.test.ts b.test.ts", "run b.test.ts", "pass b.test.ts"]);
  expect((await judged([DOES_NOT_LOAD, PASSES])).outcome).toBeUndefined();
});

test("tests that pass let the mutant live", async () => {
  expect((await judged([PASSES])).outcome).toBeUndefined();
});

test("tests that hang have to hang twice, with a measurement in between", async () => {
  const { outcome, steps } = await judged([HANGS, HANGS]);
  expect(outcome).toBe("timeout");
  expect(steps).toEqual(["run a.test.ts b.test.ts", "measure a.test.ts b.test.ts", "run a.test.ts b.test.ts"]);
  expect((await judged([HANGS, PASSES])).outcome).toBeUndefined();
  expect((await judged([HANGS, FAILS])).outcome).toBe("killed");
  expect((await judged([HANGS], false)).outcome).toBeUndefined();
});

test("limits follow how long tests took when they passed", async () => {
  const limits: number[] = [];
  const left = [1_000, 9_000];
  const tests = openTests("/nowhere", async (_, limitMs) => {
    limits.push(limitMs);
    return { code: 0, output: "", timedOut: false, tookMs: left.shift() ?? 1 };
  });
  for (const _ of [1, 2, 3]) await tests.run(["a.test.ts"]);
  expect(limits).toEqual([70_000, 13_000, 37_000]);
  expect(await tests.pass(["a.test.ts"])).toBe(true);
  expect(limits).toHaveLength(3);
});

test("tests pass without a mutant when one of two runs passes", async () => {
  const codes = [1, 0, 1, 1];
  const tests = openTests("/nowhere", async () => ({
    code: codes.shift() ?? 0,
    output: "",
    timedOut: false,
    tookMs: 1,
  }));
  expect(await tests.measure(["a.test.ts"])).toBe(true);
  expect(await tests.pass(["b.test.ts"])).toBe(false);
  expect(["a.test.ts", "b.test.ts"].map(tests.isBroken)).toEqual([false, true]);
  expect(codes).toEqual([]);
});
