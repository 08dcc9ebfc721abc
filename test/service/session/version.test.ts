/** When a change of a session makes its earlier access tokens stale, and when the log needs a mark of it. */
import { expect, test } from "vitest";
import { wallMs } from "../../../src/service/session/time.ts";
import { countVersion, isStale, recordAuthentication } from "../../../src/service/session/version.ts";

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
])("%s", (_, session, isChanged, refresh, expected, needsMark) => {
  expect(countVersion(session, isChanged, refresh)).toEqual({ session: expected, needsMark });
});

const FORMER = { time: wallMs(1_000), methods: ["pwd"], contextClass: "" };
const LATTER = { time: wallMs(2_000), methods: ["pwd", "otp"], contextClass: "gold" };

test.each([
  ["a first elevation that refreshes", {}, true, true],
  ["a first elevation that does not", {}, false, false],
  ["another elevation that refreshes", { authentication: FORMER, version: 1 }, true, true],
  ["another elevation that does not", { authentication: FORMER, version: 1 }, false, true],
  ["a repetition that refreshes", { authentication: LATTER, version: 1 }, true, false],
  ["a repetition that does not", { authentication: LATTER, version: 1 }, false, false],
  ["a refresh after an elevation that did not", { authentication: LATTER }, true, true],
])("%s", (_, session, refresh, isCounted) => {
  expect(recordAuthentication(session, LATTER, refresh)).toEqual({
    elevated: { ...session, authentication: LATTER },
    isCounted,
  });
});

test("a token of the version itself is not stale, one of the version before is, and one without a version counts as 0", () => {
  const session = { version: 3, staleBelow: 3 };
  expect([{ sv: 2 }, { sv: 3 }, {}].map((claims) => isStale(claims, session))).toEqual([true, false, true]);
  expect(isStale({}, {})).toBe(false);
});
