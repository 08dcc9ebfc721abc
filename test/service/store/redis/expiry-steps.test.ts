/** The work of one step of the search for expired sessions is limited. */
import { expect, test } from "vitest";
import { Expiry } from "../../../../src/service/store/redis/expiry.ts";

test("a step runs 64 scripts at most, however many spans there are", async () => {
  let scripts = 0;
  // A simulated script that never finds an expired session and always has more to examine.
  const run = async () => ["examined", String(++scripts), ""].map((text) => Buffer.from(text));
  const expiry = new Expiry({ run, now: () => 0 }, 60_000);
  expect(await expiry.step()).toEqual({ ended: [], isDone: false });
  expect(scripts).toBe(64);
  await expiry.step();
  expect(scripts).toBe(128);
});
