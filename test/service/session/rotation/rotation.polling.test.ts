import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { decide } from "../../../../src/service/session/rotation/rotation.ts";
import { dice } from "../../../support/dice.ts";
import { R } from "./rotation-search/play.ts";
import { line, promised, TICKS } from "./rotation-search/polling-line.ts";
import { type Life, served } from "./rotation-search/thief.ts";

/**
 * A thief that polls, and a victim that refreshes at random intervals of `quiet` to `quiet + window`. Times are multiples of the reuse
 * interval (R).
 */
const life = fc.record({
  quiet: fc.double({ min: 4.001, max: 100, noNaN: true }),
  window: fc.double({ min: 6, max: 60, noNaN: true }),
  /**
   * The shortest time between two requests of the thief, in reuse intervals (R). Unless the thief is `steady`, the time is random, up to
   * twice this value.
   */
  rhythm: fc.oneof(fc.constantFrom(0.3, 0.9, 1.0001, 1.9999), fc.double({ min: 0.05, max: 6, noNaN: true })),
  steady: fc.boolean(),
  seed: fc.nat(),
});

type Habit = Life["thief"];
type Drawn = typeof life extends fc.Arbitrary<infer T> ? T : never;

function refreshes(thief: Habit, { quiet, window, rhythm, steady, seed }: Drawn, most = 1_000): number {
  const { below } = dice(seed);
  const roll = () => below(1_000_000) / 1_000_000;
  return served(
    {
      decide,
      thief,
      reuseIntervalMs: R,
      quiet: quiet * R,
      pause: () => Math.round((quiet + window * roll()) * R),
      rhythm: () => Math.round(rhythm * R * (steady ? 1 : 1 + roll())),
    },
    most,
  );
}

/**
 * The shortest pause of the victim, in reuse intervals (R), with which every thief that polls at irregular intervals of up to 2 R is
 * detected.
 */
const IRREGULAR_LINE = 7;

/**
 * Intervals of polling, in reuse intervals (R). They are just below and just above the intervals at which the responses of the service
 * change.
 */
const EDGES = [0.05, 0.9, 0.999, 1, 1.01, 1.9, 1.99, 2];

/**
 * Simulates `lives` thieves, which poll at irregular intervals of up to two reuse intervals (2 R), and a victim that refreshes every
 * `pause` R. Returns how many thieves are still undetected after a refresh of the victim.
 */
function outlasting(thief: Habit, pause: number, lives: number): number {
  let found = 0;
  for (let seed = 0; seed < lives; seed++) {
    const { below } = dice(seed);
    const roll = () => below(1_000_000) / 1_000_000;
    const rhythm = () => Math.round(R * (roll() < 0.5 ? (EDGES[below(EDGES.length)] ?? 1) : 2 * roll()));
    const pauses = () => Math.round(R * (pause + 0.02 * roll()));
    if (served({ decide, thief, reuseIntervalMs: R, quiet: pause * R, pause: pauses, rhythm }, 5) > 0) found++;
  }
  return found;
}

describe("an attacker that asks again and again", () => {
  const often = life.filter(({ quiet, rhythm, steady }) =>
    steady ? rhythm <= 2 : rhythm * 2 <= 2 && quiet > IRREGULAR_LINE,
  );

  test.each<Habit>(["confirmed", "newest"])(
    "at any rhythm up to 2 R, with the %s token, is seen with the victim's next refresh",
    (habit) => {
      fc.assert(
        fc.property(often, (drawn) => refreshes(habit, drawn) === 0),
        { numRuns: 1_000 },
      );
    },
  );
});

describe("where the line runs", () => {
  const rhythms = Array.from({ length: 2 * TICKS }, (_, at) => at + 1);

  test.each<Habit>(["confirmed", "newest"])(
    "with the %s token, asking every P: from 2 R + the first multiple of P beyond R on, and 4 R at most",
    (habit) => {
      for (const rhythm of rhythms) {
        expect(promised(rhythm)).toBeLessThanOrEqual(4 * TICKS);
        expect(line(decide, habit, rhythm)).toBeLessThanOrEqual(promised(rhythm));
      }
      // If the thief polls at its longest interval (2 R), the theft is detected only if the victim pauses for 4 R or longer.
      expect(line(decide, habit, 2 * TICKS)).toBe(4 * TICKS);
    },
  );
});

describe("where the line runs for irregular rhythms up to 2 R", () => {
  test.each<Habit>(["confirmed", "newest"])("with the %s token: at 7 R", (habit) => {
    expect(outlasting(habit, IRREGULAR_LINE + 0.001, 60_000)).toBe(0);
  });

  test("and not earlier", () => {
    expect(outlasting("newest", IRREGULAR_LINE - 0.1, 60_000)).toBeGreaterThan(0);
  });
});

describe("an attacker that expects the victim", () => {
  test.each<Habit>(["watchful", "punctual"])(
    "and is %s does not stay unseen if the victim's refreshes can be predicted to 6 R only",
    (habit) => {
      fc.assert(
        fc.property(life, (drawn) => refreshes(habit, drawn) < 40),
        { numRuns: 1_000 },
      );
    },
  );

  test("to within R stays unseen: that is the limit", () => {
    fc.assert(
      fc.property(life, (drawn) => {
        expect(refreshes("punctual", { ...drawn, window: 0.99, rhythm: 0.99, steady: true }, 200)).toBe(200);
      }),
      { numRuns: 50 },
    );
  });
});
