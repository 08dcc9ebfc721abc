import { expect, test } from "vitest";
import { expiresIn, resourcesOf } from "../../../../src/service/api/public/oauth-parameters.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";

test.each([
  "https://a.example",
  "https://a.example/b?c=d&e[]=%20",
  "urn:example:orders",
  "api://orders",
  "HTTP://A.EXAMPLE",
])("%s is a resource (RFC 8707 section 2)", (text) => {
  expect(resourcesOf({ resource: [text] })).toEqual([text]);
});

test.each([
  "",
  "orders",
  "/orders",
  "//a.example",
  "https://a.example#",
  "https://a.example/#b",
  "https:",
  "https://a b",
  "https://ä.example",
  "1a:b",
  "urn:a\n",
])("%j is none", (text) => {
  expect(() => resourcesOf({ resource: ["https://a.example", text] })).toThrow("absolute URI without a fragment");
});

test("a token that expires within the second is said to expire in one, because 0 would be left out of the response", () => {
  const store = { shiftMs: () => 5_000 };
  const at = (nowMs: number) =>
    expiresIn(store, "a" as SessionId, { token: "", expiresAt: wallMs(100_000) }, storeMs(nowMs));
  expect([at(35_000), at(92_500), at(94_500), at(96_000)]).toEqual([60, 2, 1, 1]);
});
