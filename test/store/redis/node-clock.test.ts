import fc from "fast-check";
import { expect, test } from "vitest";
import { NodeClock } from "../../../src/store/redis/clocks.ts";

const TIMEOUT = 500;

test("while nothing is known no command may act", () => {
  const { from, until } = new NodeClock(TIMEOUT).window(1_000);
  expect(from).toBeGreaterThan(until);
});

/**
 * One reading of a node's clock, in ms: the time since the last reading, the delays of the request (`there`) and of the reply (`back`), and
 * a step by which the clock was set before the reading.
 */
const sample = fc.record({
  wait: fc.nat(5_000),
  there: fc.nat(2_000),
  back: fc.nat(2_000),
  step: fc.oneof({ weight: 9, arbitrary: fc.constant(0) }, fc.integer({ min: -100_000, max: 100_000 })),
});

test("a command's time is over by the node's clock when it is by ours, or earlier; a step masks no more than the way of the last question", () => {
  fc.assert(
    fc.property(fc.array(sample, { minLength: 1, maxLength: 20 }), fc.nat(1e12), (samples, start) => {
      const clock = new NodeClock(TIMEOUT);
      let now = 0;
      let ahead = start;
      let masked = false;
      for (const { wait, there, back, step } of samples) {
        now += wait;
        ahead += step;
        clock.observe(now + there + ahead, now, now + there + back);
        now += there + back;
        masked ||= step !== 0;
        if (clock.step !== 0) {
          // The step of the clock was noticed. No command may take effect until all instances have agreed on the new time.
          expect(masked).toBe(true);
          expect(clock.window(now).from).toBeGreaterThan(clock.window(now).until);
          clock.settle(0);
          masked = false;
        }
        const { from, until } = clock.window(now);
        const truth = now + ahead;
        // If a step of the clock looks like a delayed reply, it is not noticed. Commands may then take effect for longer, but by no more
        // than such a delay.
        expect(until).toBeLessThanOrEqual(truth + TIMEOUT + (masked ? there : 0));
        expect(until - from).toBe(2 * TIMEOUT);
      }
    }),
    { numRuns: 2_000 },
  );
});

test.each([-TIMEOUT - 1, TIMEOUT + 1, -80_000, 80_000])(
  "a step by %d ms is noticed by the next quick reply",
  (step) => {
    const clock = new NodeClock(TIMEOUT);
    clock.observe(10_000, 0, 0);
    clock.observe(10_100 + step, 100, 100);
    expect(clock.step).toBe(step);
    expect(clock.window(100).from).toBeGreaterThan(clock.window(100).until);
  },
);

test("one quick reply is worth more than slow ones after it", () => {
  const clock = new NodeClock(TIMEOUT);
  clock.observe(10_001, 0, 2);
  clock.observe(10_101, 100, 900);
  expect(clock.window(1_000)).toEqual({ from: 10_499, until: 11_499, shift: 0 });
});
