import { expect, test } from "vitest";
import { createReceiverLimits } from "../../../../src/service/api/limits/receiver-limits.ts";

const HOUR_MS = 3_600_000;

test("a verification that its stream refuses is not counted as one of its receiver's", () => {
  const { verificationLimit } = createReceiverLimits(HOUR_MS, 2);
  expect(verificationLimit.take("first", "receiver")).toBeUndefined();
  for (let at = 0; at < 3; at++) expect(verificationLimit.take("first", "receiver")).toBeGreaterThan(0);
  expect(verificationLimit.take("second", "receiver")).toBeUndefined();
  // The receiver has used what it may use, whatever the stream.
  expect(verificationLimit.take("third", "receiver")).toBeGreaterThan(0);
  expect(verificationLimit.take("third", "other")).toBeUndefined();
});

test("a verification that did not take place is given back to the stream and to the receiver", () => {
  const { verificationLimit } = createReceiverLimits(HOUR_MS, 1);
  expect(verificationLimit.take("stream", "receiver")).toBeUndefined();
  verificationLimit.giveBack("stream", "receiver");
  expect(verificationLimit.take("stream", "receiver")).toBeUndefined();
  expect(verificationLimit.take("stream", "receiver")).toBeGreaterThan(0);
});
