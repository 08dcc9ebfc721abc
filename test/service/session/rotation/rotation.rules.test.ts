/** What each rule of rotation decides, as tables, at the edges of its times. The searches show that the rules are the right ones. */
import { expect, test } from "vitest";
import { decide, firstState, type RotationState } from "../../../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../../../src/service/session/time.ts";

const R = 10_000;
const MINTED = 1_000_000;
const NEVER = 2 ** 48 - 1;

/** The confirmed token has generation 5, and others of this generation count as used from SIBLINGS on. */
const SIBLINGS = MINTED - 20 * R;
const STATE: RotationState = {
  generation: 5,
  nonce: "confirmed",
  siblingsSince: storeMs(SIBLINGS),
  childNonce: "child",
  childMintedAt: storeMs(MINTED),
  childServedAt: storeMs(MINTED),
};

type Given = readonly [generation: number, nonce: string, issuedAt: number];

/** @param afterMs the time since the child was minted */
function decision([generation, nonce, issuedAt]: Given, afterMs: number, isHeld?: boolean, more: object = {}) {
  const token = { generation, nonce, issuedAt: storeMs(issuedAt) };
  return decide({ ...STATE, ...more }, token, "fresh", storeMs(MINTED + afterMs), R, isHeld);
}

/** The outcomes before and after the child is one reuse interval old. */
const outcomes = (token: Given, isHeld?: boolean) =>
  [R, R + 1].map((afterMs) => decision(token, afterMs, isHeld).outcome);

test.each<[string, Given, string, string]>([
  ["the child", [6, "child", MINTED], "repeat", "rotate"],
  ["the child, whose time of issue is far earlier because a clock was set", [6, "child", 0], "repeat", "rotate"],
  ["another child, issued up to 2 R before it", [6, "other", MINTED - 2 * R], "repeat", "rotate"],
  ["another child, issued earlier", [6, "other", MINTED - 2 * R - 1], "reuse", "reuse"],
  ["the confirmed token", [5, "confirmed", 0], "repeat", "recover"],
  ["another token of its generation, issued since siblings count", [5, "other", SIBLINGS], "repeat", "recover"],
  ["another token of its generation, issued before", [5, "other", SIBLINGS - 1], "reuse", "reuse"],
  ["a token of the generation before", [4, "earlier", MINTED], "reuse", "reuse"],
  ["a token that is newer than the store", [7, "newer", 0], "heal", "heal"],
])("%s: %3$s for R, then %4$s", (_, token, first, later) => {
  expect(outcomes(token)).toEqual([first, later]);
});

test.each<[string, Given, string, string]>([
  ["any child", [6, "other", 0], "repeat", "rotate"],
  ["any token of the confirmed generation", [5, "other", 0], "repeat", "recover"],
  ["any earlier token", [1, "earlier", 0], "repeat", "recover"],
  ["a token that is newer than the store", [7, "newer", 0], "heal", "heal"],
])("with a proof of the session's key %s: %3$s for R, then %4$s", (_, token, first, later) => {
  expect(outcomes(token, true)).toEqual([first, later]);
});

test("a token that was replaced a moment ago is late for 2 R, if the child is younger than R", () => {
  const late = (generation: number, siblingsAgoMs: number, afterMs = R) =>
    decision([generation, "late", 0], afterMs, false, { siblingsSince: MINTED + afterMs - siblingsAgoMs }).outcome;
  expect([3, 4, 5, 6].map((generation) => late(generation, 2 * R))).toEqual(["reuse", "repeat", "repeat", "reuse"]);
  expect([4, 5].map((generation) => late(generation, 2 * R + 1))).toEqual(["reuse", "reuse"]);
  expect([4, 5].map((generation) => late(generation, R, R + 1))).toEqual(["reuse", "reuse"]);
});

test("each outcome keeps of the state what later requests are decided by", () => {
  const fresh = (now: number) => ({ childNonce: "fresh", childMintedAt: now, childServedAt: now });
  const now = MINTED + R + 1;
  expect(decision([6, "child", MINTED], R)).toEqual({
    outcome: "repeat",
    next: { ...STATE, childServedAt: MINTED + R },
  });
  expect(decision([6, "used", MINTED], R + 1)).toEqual({
    outcome: "rotate",
    next: { generation: 6, nonce: "used", siblingsSince: NEVER, ...fresh(now) },
  });
  expect(decision([6, "used", MINTED], R + 1, false, { childServedAt: MINTED + 1 })).toEqual({
    outcome: "rotate",
    next: { generation: 6, nonce: "used", siblingsSince: MINTED, ...fresh(now) },
  });
  expect(decision([9, "newer", MINTED], R + 1)).toEqual({
    outcome: "heal",
    next: { generation: 9, nonce: "newer", siblingsSince: now, ...fresh(now) },
  });
  expect(decision([5, "confirmed", 0], R + 1)).toEqual({ outcome: "recover", next: { ...STATE, ...fresh(now) } });
  expect(decision([4, "earlier", 0], R + 1)).toEqual({ outcome: "reuse" });
});

test("a time that lies in the future, because a clock was set back, counts as equally far in the past", () => {
  expect([-R, -R - 1].map((afterMs) => decision([6, "child", MINTED], afterMs).outcome)).toEqual(["repeat", "rotate"]);
});

test("the first token of a session is its first child, whenever it was issued", () => {
  const token = { generation: 1, nonce: "any", issuedAt: storeMs(1) };
  expect(decide(firstState("first"), token, "fresh", storeMs(MINTED), R)).toMatchObject({ outcome: "rotate" });
});
