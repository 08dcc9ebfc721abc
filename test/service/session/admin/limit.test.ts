import { describe, expect, test } from "vitest";
import {
  groupOf,
  LIMIT_WINDOW,
  type LimitPolicy,
  limitOf,
  type SessionLimit,
  takeExcess,
  windowOf,
} from "../../../../src/service/session/admin/limit.ts";

const limit = (maxSessions: number): SessionLimit => ({
  scope: "subject",
  maxSessions,
  whenExceeded: "end_least_recently_used",
});

describe("the first policy that matches a session holds for it", () => {
  const policies: readonly LimitPolicy[] = [
    { clientId: "web", clientKind: "tv", limit: limit(1) },
    { clientId: "web", clientKind: undefined, limit: limit(2) },
    { clientId: undefined, clientKind: "browser", limit: limit(3) },
    { clientId: undefined, clientKind: undefined, limit: limit(4) },
    { clientId: "cli", clientKind: undefined, limit: limit(5) },
  ];
  test.each([
    ["web", "tv", 1],
    ["web", "browser", 2],
    ["web", undefined, 2],
    ["other", "browser", 3],
    ["other", undefined, 4],
    ["cli", "cli", 4],
  ] as const)("%s on %s", (clientId, kind, expected) => {
    expect(limitOf(policies, { clientId, ...(kind && { kind }) })?.maxSessions).toBe(expected);
  });

  test("without one that matches there is no limit", () => {
    expect(limitOf(policies.slice(0, 3), { clientId: "other", kind: "tv" })).toBeUndefined();
    expect(limitOf([], { clientId: "web" })).toBeUndefined();
  });
});

test("the least recently used of the oldest sessions ends, and one behind the window stays", () => {
  const used = [5, 4, 1].map((usedAt) => ({ usedAt }));
  expect(takeExcess([...used], 1, 2)).toEqual([{ usedAt: 4 }]);
  expect(takeExcess([...used], 2, 2)).toEqual([{ usedAt: 4 }, { usedAt: 1 }]);
  expect(takeExcess([...used], 2, 1)).toEqual([{ usedAt: 5 }, { usedAt: 4 }]);
  expect(takeExcess([...used], 4, 1)).toEqual(used);
});

test.each([
  ["subject", "browser", ""],
  ["client_id", "browser", "web"],
  ["client_kind", "browser", "browser"],
  ["client_kind", undefined, ""],
] as const)("a limit of %s counts a session of kind %s with those of %j", (scope, kind, group) => {
  expect(groupOf({ clientId: "web", ...(kind && { kind }) }, scope)).toBe(group);
});

test("of the oldest sessions one is compared if the oldest is to end, and otherwise as many as the window has", () => {
  const windows = (["end_oldest", "end_least_recently_used", "refuse"] as const).map((whenExceeded) =>
    windowOf({ ...limit(1), whenExceeded }),
  );
  expect(windows).toEqual([1, LIMIT_WINDOW, LIMIT_WINDOW]);
});
