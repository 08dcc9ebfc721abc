/** When a change of a session makes its earlier access tokens stale, and when the log needs a mark of it. */
import { expect, test } from "vitest";
import { countVersion, isStale } from "../../../src/service/session/version.ts";

test.each([
  ["a change that refreshes", { version: 2 }, true, true, { version: 3, staleBelow: 3 }, true],
  ["a change that does not refresh", { version: 2, staleBelow: 1 }, true, false, { version: 3, staleBelow: 1 }, false],
  [
    "a refresh after a change that did not",
    { version: 3, staleBelow: 1 },
    false,
    true,
    { version: 3, staleBelow: 3 },
    true,
  ],
  ["a repeated refresh", { version: 3, staleBelow: 3 }, false, true, { version: 3, staleBelow: 3 }, false],
  ["a refresh of a session that never changed", {}, false, true, {}, false],
])("%s", (_, session, isChanged, refresh, expected, isMarked) => {
  expect(countVersion(session, isChanged, refresh)).toEqual({ session: expected, isMarked });
});

test("a token of the version itself is not stale, one of the version before is, and one without a version counts as 0", () => {
  const session = { version: 3, staleBelow: 3 };
  expect([{ sv: 2 }, { sv: 3 }, {}].map((claims) => isStale(claims, session))).toEqual([true, false, true]);
  expect(isStale({}, {})).toBe(false);
});
