import fc from "fast-check";
import { expect, test } from "vitest";
import { digitsOf } from "../../../src/platform/runtime/digits.ts";
import { grownWithEachCall } from "../../support/old-generation.ts";

test("a number has the text that String gives", () => {
  const number = fc.oneof(
    fc.double(),
    fc.integer(),
    fc.maxSafeInteger(),
    fc.constantFrom(0, -0, 1e21, -1e21, 2 ** 32, 2 ** 53),
  );
  fc.assert(fc.property(number, (each) => digitsOf(each) === String(each)));
});

test("the text of a new number is not made in the old generation", () => {
  let next = 1_700_000_000_000;
  // What String makes takes 32 bytes there.
  expect(grownWithEachCall(() => digitsOf(next++))).toBeLessThan(8);
});
