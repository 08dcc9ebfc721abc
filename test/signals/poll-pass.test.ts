/** How a poll reads a partition with more signals than it examines at once. */
import { expect, test } from "vitest";
import type { SessionId } from "../../src/session/model.ts";
import { storeMs } from "../../src/session/time.ts";
import { signalId } from "../../src/signals/model.ts";
import type { Cursor, LoggedSignal, SignalLog } from "../../src/signals/ports.ts";
import { passOver } from "../../src/signals/streams/poll-pass.ts";

const SIGNALS: readonly LoggedSignal[] = Array.from({ length: 100 }, (_, at) => {
  const ending = { sessionId: `session-${at}` as SessionId, reason: "logout", endedAt: storeMs(at) } as const;
  return { signal: { id: signalId(ending), ...ending }, cursor: String(at + 1) as Cursor };
});

/**
 * Searches the log once for signals to return, if the receiver has accepted the first `accepted` ones. Returns the stored position and the
 * signals that were found.
 */
async function pass(accepted: number) {
  let position = "0" as Cursor;
  const log: Pick<SignalLog, "positions" | "ends" | "read" | "pass"> = {
    positions: async () => [position],
    ends: async () => ["100" as Cursor],
    read: async (_, after, limit) => {
      const signals = SIGNALS.slice(Number(after), Number(after) + limit);
      return { ok: true, signals, more: Number(after) + limit < SIGNALS.length };
    },
    pass: async (_, _id, _from, to) => {
      position = to;
      return true;
    },
  };
  const deps = { log: log as SignalLog, start: 0, onSettled() {}, onLoss() {} };
  const verdicts = new Map(SIGNALS.slice(0, accepted).map(({ signal }) => [signal.id, "accepted"] as const));
  const { found, more } = await passOver(deps, { id: "stream", filter: {} }, verdicts, 5);
  return { position, found: found.map(({ cursor }) => cursor), more };
}

test("the first signals without a verdict are returned, although there are more", async () => {
  expect(await pass(0)).toEqual({ position: "0", found: ["1", "2", "3", "4", "5"], more: true });
});

test("signals that are all settled are passed, and the next ones are examined", async () => {
  expect(await pass(70)).toEqual({ position: "70", found: ["71", "72", "73", "74", "75"], more: true });
});
