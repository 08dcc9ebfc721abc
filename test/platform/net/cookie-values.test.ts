import { expect, test } from "vitest";
import { cookieValues, trimmed } from "../../../src/platform/net/cookie-values.ts";

test("spaces and tabs around a text are removed, and nothing else", () => {
  expect(["ab", " \ta b\t ", "\u00a0a", " \t"].map((text) => trimmed(text))).toEqual(["ab", "a b", "\u00a0a", ""]);
});

test.each([
  ["a=1", ["1"]],
  ["a=1; b=2; a=3", ["1", "3"]],
  ["b; a=1;a = 2 ;; a", ["1", "2"]],
  ["a;a=1", ["1"]],
  ["b=a=1; a==", ["="]],
  ["aa=1; =2; A=3", []],
  ["a=", [""]],
  ["", []],
  [";", []],
])("the values of a cookie are those of all pairs with its name: %j", (header, values) => {
  expect(cookieValues(header, "a")).toEqual(values);
});

test("pairs without an equals sign take linear time", () => {
  const header = "a;".repeat(1_000_000);
  expect(cookieValues(`${header}a=1`, "a")).toEqual(["1"]);
  expect(cookieValues(header, "a")).toEqual([]);
});
