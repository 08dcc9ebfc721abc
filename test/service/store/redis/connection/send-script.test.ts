import fc from "fast-check";
import { Command } from "ioredis";
import { expect, test } from "vitest";
import { scriptCall } from "../../../../../src/service/store/redis/connection/send.ts";

const text = fc.oneof(
  fc.string(),
  fc.string({ unit: "binary" }).map((given) => given.toWellFormed()),
);
const number = fc.oneof(fc.maxSafeInteger(), fc.constantFrom(0, -1, 2 ** 31, 2 ** 48 - 1, Number.POSITIVE_INFINITY));
const sha = "a1b2".repeat(10);

test("a call of a script is sent as ioredis would send it", () => {
  fc.assert(
    fc.property(fc.array(text, { maxLength: 3 }), fc.array(fc.oneof(text, number)), number, (keys, args, shift) => {
      const window = { from: 1, until: 1_700_000_000_000, shift };
      const expected = new Command("evalsha", [sha, keys.length, ...keys, ...args, 1, 1_700_000_000_000, shift]);
      expect(scriptCall(sha, keys, args, window)?.toWritable({})).toBe(expected.toWritable({}));
    }),
  );
});

test("arguments that are no text are left to ioredis", () => {
  expect(scriptCall(sha, ["{00}"], [Buffer.of(255)], { from: 1, until: 2, shift: 0 })).toBeUndefined();
});
