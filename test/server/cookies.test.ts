import { expect, test } from "vitest";
import { distinctValues, withSetCookies } from "../../src/server/cookies.ts";

test.each([
  [null, []],
  ["a=1", ["1"]],
  ["x=0; a=1;a = 2 ;a=1; a=", ["1", "2"]],
  ["xa=1; A=2; a", []],
  ["\u00a0a=planted", []],
  ["a=b=c", ["b=c"]],
])("%j holds %j", (header, values) => expect(distinctValues(header, "a")).toEqual(values));

test.each<[string | null, string[], string]>([
  [null, [], ""],
  ["a=1; b=2", ["a=3; Path=/; Max-Age=60"], "b=2; a=3"],
  ["a=1; b=2", ["a=; Path=/; Max-Age=0"], "b=2"],
  ["a=1", ["a=2; Path=/", "a=; Path=/v1; Max-Age=0"], "a=2"],
  ["a=1", ["a=2; Path=/", "c=; Path=/; Max-Age=-1"], "a=2"],
  ["flag; a=1; a=0", ["a=2"], "flag; a=2"],
  ["=x; a=1", ["a=2"], "x; a=2"],
  ["a=1", ["a=;  Max-Age=-10 "], ""],
  ["a=1", ["a=;max-age=0"], ""],
  ["a=1", ["a=2; x-max-age=0; Max-Age=0x; Max-Age=10"], "a=2"],
])("%j after %j is %j", (header, lines, expected) => expect(withSetCookies(header, lines)).toBe(expected));
