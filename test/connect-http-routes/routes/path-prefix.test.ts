import { expect, test } from "vitest";
import { createPathPrefix } from "../../../src/connect-http-routes/routes/path-prefix.ts";

test.each([
  ["/api", "/api/v1/a", "/v1/a"],
  ["/api", "/api", "/"],
  ["/api", "/api/", "/"],
  ["/a/b", "/a/b/c%2Fd", "/c%2Fd"],
  ["/api", "/apis/v1/a", undefined],
  ["/api", "/v1/api", undefined],
  ["/api", "/API/v1", undefined],
  ["/api", "/%61pi/v1", undefined],
  ["/api", "", undefined],
])("below %s, %s is %s", (prefix, path, expected) => {
  expect(createPathPrefix(prefix)(path)).toBe(expected);
});

test.each(["", "/", "api", "/api/", "//api", "/a?b", "/a#b"])("%j is no prefix", (prefix) => {
  expect(() => createPathPrefix(prefix)).toThrow("requestPathPrefix must start with /");
});
