import { expect, test } from "vitest";
import { trimmed } from "../../src/net/cookie-values.ts";

test("spaces and tabs around a text are removed, and nothing else", () => {
  expect(["ab", " \ta b\t ", "\u00a0a", " \t"].map((text) => trimmed(text))).toEqual(["ab", "a b", "\u00a0a", ""]);
});
