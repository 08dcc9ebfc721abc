import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { createReplays } from "../../../src/platform/dpop/replays.ts";

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

test("every one of many proofs is remembered, and none is taken for another", () => {
  const replays = createReplays({ windowMs: 100, monotonic: () => 0 });
  const ids = Array.from({ length: 5_000 }, (_, n) => createHash("sha256").update(String(n)).digest("base64url"));
  expect(ids.filter((id) => !replays.isNew(id))).toEqual([]);
  expect(ids.filter((id) => replays.isNew(id))).toEqual([]);
});

test("ids that differ in one character are different proofs", () => {
  const replays = createReplays({ windowMs: 100, monotonic: () => 0 });
  const id = "AAAAAAAAAAAAAAA";
  const others = [...id].map((_, at) => `${id.slice(0, at)}B${id.slice(at + 1)}`);
  for (const each of [id, ...others]) expect(replays.isNew(each), each).toBe(true);
  for (const each of [id, ...others]) expect(replays.isNew(each), each).toBe(false);
});
