import { expect, test } from "vitest";
import { bearerOf } from "../../src/api/bearer.ts";

test.each<[string | null, string | undefined]>([
  [null, undefined],
  ["", undefined],
  ["Bearer abc", "abc"],
  ["bearer abc", "abc"],
  ["BEARER   a.b-c_d~e+f/g==", "a.b-c_d~e+f/g=="],
  ["Bearerabc", undefined],
  ["Basic YTpi", undefined],
  // Credentials are there, and they are none: not the same as absent.
  ["Bearer", ""],
  ["Bearer ", ""],
  ["Bearer a b", ""],
  ["Bearer a, Bearer b", ""],
  ["Bearer a,b", ""],
])("%j holds %j", (authorization, token) => {
  const headers = new Headers(authorization === null ? {} : { authorization });
  expect(bearerOf(headers)).toBe(token);
});
