import { expect, test } from "vitest";
import { chunksOf } from "../../../src/connect-http-routes/call/body-chunks.ts";

test("a body that has been read already is one chunk, and an empty one is none", async () => {
  const bytes = new Uint8Array([1, 2]);
  const body = chunksOf(bytes);
  expect([await body.next(), await body.next()]).toEqual([bytes, undefined]);
  expect(await chunksOf(new Uint8Array()).next()).toBeUndefined();
});

test("a body that is cancelled has no more chunks", async () => {
  const body = chunksOf(new Uint8Array([1]));
  body.cancel(new Error("over"));
  expect(await body.next()).toBeUndefined();
});
