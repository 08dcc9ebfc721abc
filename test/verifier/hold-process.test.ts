import { getEventListeners } from "node:events";
import { expect, test } from "vitest";
import { holdProcess } from "../../src/verifier/hold-process.ts";

test("nothing is left of a verifier that became ready, however often that was awaited", async () => {
  const { signal } = new AbortController();
  for (const ready of [Promise.resolve(), Promise.reject(new Error("refused"))]) {
    for (let times = 0; times < 20; times++) holdProcess(ready, signal);
    await ready.catch(() => {});
  }
  expect(getEventListeners(signal, "abort")).toEqual([]);
});
