import { expect, test } from "vitest";
import { bearerToken, dpopToken } from "../../../src/platform/net/bearer-token.ts";

test.each<[string | null, string | undefined]>([
  [null, undefined],
  ["", undefined],
  ["Bearer abc", "abc"],
  ["bearer abc", "abc"],
  ["BEARER   a.b-c_d~e+f/g==", "a.b-c_d~e+f/g=="],
  ["Bearerabc", undefined],
  ["Basic YTpi", undefined],
  ["Other bearer abc", undefined],
  // A header with the scheme but no valid token is malformed ("") and does not count as absent (undefined).
  ["Bearer", ""],
  ["Bearer ", ""],
  ["Bearer-abc", ""],
  ["Bearer a b", ""],
  ["Bearer a, Bearer b", ""],
  ["Bearer a,b", ""],
])("%j holds %j", (authorization, token) => {
  expect(bearerToken(authorization)).toBe(token);
  expect(dpopToken(authorization?.replace(/bearer/gi, "DPoP"))).toBe(token);
});
