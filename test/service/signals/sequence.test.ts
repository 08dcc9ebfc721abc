/** Work under one key is done one after the other. */
import { expect, test } from "vitest";
import { createSequences } from "../../../src/service/signals/sequence.ts";
import { quiet } from "./managed-world.ts";

/** Returns work that ends when the test says. */
function openWork() {
  const begun: string[] = [];
  const ends = new Map<string, PromiseWithResolvers<string>>();
  const work = (name: string) => async () => {
    begun.push(name);
    const end = Promise.withResolvers<string>();
    ends.set(name, end);
    return end.promise;
  };
  return { begun, ends, work };
}

test("work waits for all earlier work under its key, also if that fails, and for none under another", async () => {
  const { begun, ends, work } = openWork();
  const inSequence = createSequences();
  const first = inSequence("key", work("first"));
  const second = inSequence("key", work("second"));
  const other = inSequence("other", work("other"));
  await quiet();
  expect(begun).toEqual(["first", "other"]);
  ends.get("first")?.reject(new Error("failed"));
  await expect(first).rejects.toThrow("failed");
  await quiet();
  expect(begun).toEqual(["first", "other", "second"]);
  // The first has ended, and the second has not.
  const third = inSequence("key", work("third"));
  await quiet();
  expect(begun).toHaveLength(3);
  ends.get("second")?.resolve("two");
  ends.get("other")?.resolve("another");
  await quiet();
  ends.get("third")?.resolve("three");
  expect(await Promise.all([second, other, third])).toEqual(["two", "another", "three"]);
});
