import { expect, test } from "vitest";
import { checkAtIntervals } from "../../../src/platform/listener/pages.ts";

function counted(clock: () => number) {
  const checks: PromiseWithResolvers<void>[] = [];
  const check = checkAtIntervals(() => {
    const next = Promise.withResolvers<void>();
    checks.push(next);
    return next.promise;
  }, clock);
  return { checks, check };
}

test("callers share a check that is under way, however long it takes", async () => {
  let now = 0;
  const { checks, check } = counted(() => now);
  const first = check();
  now = 60_000;
  const second = check();
  expect(checks).toHaveLength(1);
  checks[0]?.resolve();
  await Promise.all([first, second]);
});

test.each(["success", "failure"])("a %s counts for 100 ms after its end, and no longer", async (outcome) => {
  let now = 0;
  const { checks, check } = counted(() => now);
  const expected = outcome === "success" ? ["fulfilled"] : ["rejected"];
  const statusOf = async (asked: Promise<void>) => (await Promise.allSettled([asked])).map(({ status }) => status);
  const first = check();
  now = 50;
  if (outcome === "success") checks[0]?.resolve();
  else checks[0]?.reject(new Error("no store"));
  expect(await statusOf(first)).toEqual(expected);
  now = 149;
  expect(await statusOf(check())).toEqual(expected);
  expect(checks).toHaveLength(1);
  now = 150;
  void check();
  expect(checks).toHaveLength(2);
});
