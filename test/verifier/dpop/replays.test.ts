import { expect, test } from "vitest";
import { createReplays } from "../../../src/verifier/dpop/replays.ts";

test("a proof is new once in the window, and forgotten after two of them", () => {
  let nowMs = 0;
  const replays = createReplays({ windowMs: 100, monotonic: () => nowMs });
  expect(replays.isNew("a")).toBe(true);
  for (nowMs of [0, 99, 100]) expect(replays.isNew("a")).toBe(false);
  expect(replays.isNew("b")).toBe(true);
  nowMs = 199;
  expect(replays.isNew("b")).toBe(false);
  nowMs = 200;
  expect(replays.isNew("b")).toBe(false);
  nowMs = 1000;
  expect(replays.isNew("b")).toBe(true);
});

test("memory is bounded: beyond it the older half is forgotten", () => {
  const replays = createReplays({ windowMs: 100, monotonic: () => 0, maxProofs: 4 });
  for (const id of ["a", "b", "c", "d"]) expect(replays.isNew(id)).toBe(true);
  expect(replays.isNew("a")).toBe(false);
  expect(replays.isNew("e")).toBe(true);
  expect(replays.isNew("c")).toBe(false);
  expect(replays.isNew("a")).toBe(true);
});

test("each set is kept for exactly its window, counted from the proof that began it", () => {
  let nowMs = 0;
  const replays = createReplays({ windowMs: 100, monotonic: () => nowMs });
  expect(replays.isNew("a")).toBe(true);
  for (nowMs of [100, 199]) expect(replays.isNew("a")).toBe(false);
  nowMs = 200;
  expect(replays.isNew("a")).toBe(true);
  // After two windows without a proof, nothing is left of the young set either.
  nowMs = 400;
  expect(replays.isNew("a")).toBe(true);
});
