/** The time for which a key set is used. */
import { expect, test } from "vitest";
import { readMaxAgeMs } from "../../src/verifier/jwks.ts";

test.each([
  [undefined, 60_000],
  ["no-store", 60_000],
  ["max-age=90", 90_000],
  ["public, max-age=90, immutable", 90_000],
  ["public,max-age=90", 90_000],
  ["s-maxage=90", 60_000],
  ["x-max-age=90", 60_000],
  ["max-age=0", 1_000],
  ["max-age=1", 1_000],
  ["max-age=2", 2_000],
  ["max-age=300", 300_000],
  ["max-age=301", 300_000],
  ["max-age=999999999", 300_000],
])("with cache-control %s it is %i ms", (cacheControl, maxAgeMs) => {
  const headers = cacheControl === undefined ? {} : { "cache-control": cacheControl };
  expect(readMaxAgeMs(new Response("", { headers }))).toBe(maxAgeMs);
});
