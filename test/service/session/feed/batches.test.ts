/** Which batch a watcher of the feed gets, and with whom it shares the batch. */
import { expect, test } from "vitest";
import { FeedBatches, FeedLog } from "../../../../src/service/session/feed/batches.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { sidOf } from "../../../support/session/scripted.ts";

const FACTS = { revokedUntil: storeMs(0), asOf: storeMs(1_000), isCurrent: true };

function batchesOf(count: number) {
  const log = new FeedLog();
  const entries = [..."abcdefghijklmnopqrst"].slice(0, count).map((letter) => ({
    ...{ sid: sidOf(letter), revokedAt: storeMs(1_000), expiresAt: storeMs(2_000), reason: "logout" as const },
  }));
  log.append(entries, FACTS.asOf);
  return { log, entries, batches: new FeedBatches(log, "instance") };
}

test("watchers at one position share a batch, until watchers at sixteen others have had theirs", () => {
  const { batches } = batchesOf(20);
  const first = batches.after(0, FACTS);
  for (let position = 1; position < 16; position++) batches.after(position, FACTS);
  expect(batches.after(0, FACTS)).toBe(first);
  const seventeenth = batches.after(16, FACTS);
  expect(batches.after(16, FACTS)).toBe(seventeenth);
  expect(batches.after(0, FACTS)).not.toBe(first);
  expect(batches.after(0, FACTS)).toEqual(first);
});

test.each([
  ["that ended everyone's sessions", { revokedUntil: storeMs(900) }, { revokedUntil: 900 }],
  ["at a later time", { asOf: storeMs(1_001) }, { asOf: 1_001 }],
  ["that is not recent any more", { isCurrent: false }, { caughtUp: false }],
])("no batch from before is given out after a reading of the log %s", (_name, facts, expected) => {
  const { batches } = batchesOf(3);
  const before = batches.after(0, FACTS);
  expect(batches.after(0, { ...FACTS, ...facts }).batch).toEqual({ ...before.batch, ...expected });
});

test("no batch from before is given out once the log has another entry, or has forgotten some", () => {
  const { log, entries, batches } = batchesOf(2);
  batches.after(0, FACTS);
  const added = { ...entries[0], sid: sidOf("z") } as (typeof entries)[number];
  log.append([added], FACTS.asOf);
  expect(batches.after(0, FACTS)).toMatchObject({ position: 3, batch: { revocations: [...entries, added] } });
  log.forgetExpired(storeMs(2_000));
  expect(batches.after(0, FACTS)).toMatchObject({ position: 3, batch: { revocations: [] } });
});
