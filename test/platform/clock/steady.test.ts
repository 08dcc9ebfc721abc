/** The steady clock on a simulated machine that sleeps whenever the test wants it to. */
import { expect, test } from "vitest";
import { createSteadyClock } from "../../../src/platform/clock/turns.ts";

/** Returns a machine whose two clocks began at different moments. */
function machine() {
  let [up, awake] = [500_000, 90_000];
  return {
    clock: createSteadyClock(
      () => up,
      () => awake,
    ),
    run(ms: number, driftMs = 0) {
      up += ms + driftMs;
      awake += ms;
    },
    sleep(ms: number) {
      up += ms;
    },
  };
}

test("while the machine is awake, it is its clock", () => {
  const { clock, run } = machine();
  const startedAt = clock();
  run(70_000);
  clock.refresh();
  expect(clock() - startedAt).toBe(70_000);
});

test("sleep is counted from the next look on, each of several", () => {
  const { clock, run, sleep } = machine();
  const startedAt = clock();
  sleep(3_600_000);
  expect(clock() - startedAt).toBe(0);
  clock.refresh();
  expect(clock() - startedAt).toBe(3_600_000);
  run(10);
  sleep(5_000);
  clock.refresh();
  clock.refresh();
  expect(clock() - startedAt).toBe(3_605_010);
});

test("what the clocks differ by without a sleep is left out, and the clock never goes back", () => {
  const { clock, run, sleep } = machine();
  const startedAt = clock();
  run(10_000, 1_000);
  clock.refresh();
  expect(clock() - startedAt).toBe(10_000);
  sleep(1);
  clock.refresh();
  expect(clock() - startedAt).toBe(11_001);
  run(10_000, -900);
  clock.refresh();
  expect(clock() - startedAt).toBe(21_001);
});
