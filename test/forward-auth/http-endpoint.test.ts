import { expect, test } from "vitest";
import { isCheck } from "../../src/forward-auth/http-endpoint.ts";

test.each([
  ["/check", true],
  ["/check/a", true],
  ["/check?a", true],
  ["/checks", false],
  ["/a/check", false],
  ["/", false],
  [undefined, false],
])("whether a path is that of the check: %s is %s", (url, expected) => {
  expect(isCheck(url)).toBe(expected);
});
