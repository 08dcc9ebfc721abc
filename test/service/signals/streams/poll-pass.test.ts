/** How a poll reads a partition with more signals than it examines at once. */
import { expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { type SignalFilter, signalId } from "../../../../src/service/signals/model.ts";
import type { Cursor, LoggedSignal, SignalLog } from "../../../../src/service/signals/ports.ts";
import { passOver, type Verdicts } from "../../../../src/service/signals/streams/poll-pass.ts";

const SIGNALS: readonly LoggedSignal[] = Array.from({ length: 100 }, (_, at) => {
  const ending = { sessionId: `session-${at}` as SessionId, reason: "logout", happenedAt: storeMs(at) } as const;
  return { signal: { id: signalId(ending), ...ending }, cursor: String(at + 1) as Cursor };
});

/**
 * Searches the log once for signals to return, if the receiver has accepted the first `accepted` ones, and given the verdicts `others`.
 * Returns the stored position, the signals that were found, and the verdicts that are kept.
 */
async function pass(accepted: number, others: Verdicts = new Map()) {
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
  const { found, more, open } = await passOver(
    deps,
    { id: "stream", filter: {} },
    new Map([...verdicts, ...others]),
    5,
  );
  return { position, found: found.map(({ cursor }) => cursor), more, open: [...open.keys()] };
}

test("the first signals without a verdict are returned, although there are more", async () => {
  expect(await pass(0)).toMatchObject({ position: "0", found: ["1", "2", "3", "4", "5"], more: true });
});

test("signals that are all settled are passed, and the next ones are examined", async () => {
  expect(await pass(70)).toMatchObject({ position: "70", found: ["71", "72", "73", "74", "75"], more: true });
});

type Step = readonly [from: string, to: string, counts: { readonly delivered: number; readonly deadLetters: number }];

/** Searches partitions of ten signals each, whose logs begin with a loss or have lost a position, as the test says. */
async function passPartitions({
  partitions = 1,
  start = 0,
  limit = 5,
  verdicts = new Map() as Verdicts,
  filter = {} as SignalFilter,
  reply = (_: number, _after: string): Awaited<ReturnType<SignalLog["read"]>> | undefined => undefined,
  passed = true,
  positions = undefined as readonly string[] | undefined,
}) {
  const steps: Step[] = [];
  const settled: string[] = [];
  const losses: number[] = [];
  const reads: string[] = [];
  const log: Pick<SignalLog, "positions" | "ends" | "read" | "pass"> = {
    positions: async () => (positions ?? Array.from({ length: partitions }, () => "0")) as Cursor[],
    ends: async () => Array.from({ length: partitions }, () => "10" as Cursor),
    read: async (partition, after, most) => {
      reads.push(`${partition}:${after}`);
      const signals = signalsOf(partition).slice(Number(after), Math.min(10, Number(after) + most));
      return reply(partition, after) ?? { ok: true, signals, more: false };
    },
    pass: async (_, _id, from, to, counts) => {
      steps.push([from, to, counts]);
      return passed;
    },
  };
  const deps = {
    log: log as SignalLog,
    start,
    onSettled: ({ cursor }: LoggedSignal, verdict: string) => void settled.push(`${cursor} ${verdict}`),
    onLoss: (lost: number) => void losses.push(lost),
  };
  const result = await passOver(deps, { id: "stream", filter }, verdicts, limit);
  const found = result.found.map(({ signal, cursor }) => `${signal.sessionId} ${cursor}`);
  return { found, more: result.more, open: [...result.open.keys()], steps, settled, losses, reads };
}

const signalsOf = (partition: number): readonly LoggedSignal[] =>
  SIGNALS.slice(partition * 10, partition * 10 + 10).map(({ signal }, at) => ({
    signal,
    cursor: String(at + 1) as Cursor,
  }));
const idOf = (at: number) => SIGNALS[at]?.signal.id ?? "";

test("refused signals are counted apart from accepted ones, and a verdict behind an open signal is kept", async () => {
  const verdicts = new Map([
    [idOf(0), "accepted"],
    [idOf(1), "refused"],
    [idOf(2), "accepted"],
    [idOf(4), "refused"],
  ] as const);
  const result = await passPartitions({ verdicts });
  expect(result.steps).toEqual([["0", "3", { delivered: 2, deadLetters: 1 }]]);
  expect(result.settled).toEqual(["1 accepted", "2 refused", "3 accepted"]);
  expect(result.open).toEqual([idOf(4)]);
  expect(result.found).toEqual([4, 6, 7, 8, 9].map((at) => `session-${at - 1} ${at}`));
  expect(result.more).toBe(true);
});

test("what the filter leaves out is passed without being counted, even with a verdict", async () => {
  const result = await passPartitions({
    filter: { reasons: ["reuse"] },
    verdicts: new Map([[idOf(0), "accepted"]]),
  });
  expect(result).toMatchObject({ found: [], settled: [], more: false });
  expect(result.steps).toEqual([["0", "10", { delivered: 0, deadLetters: 0 }]]);
});

test("partitions are examined from the given one on, and no more than are needed", async () => {
  const result = await passPartitions({ partitions: 3, start: 2, limit: 12 });
  expect(result.reads).toEqual(["2:0", "0:0"]);
  expect(result.found.slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, at) => `session-${20 + at} ${at + 1}`));
  expect(result.found.slice(10)).toEqual(["session-0 1", "session-1 2"]);
  expect(result.more).toBe(true);
  // Exactly all signals leave nothing for another poll.
  expect(await passPartitions({ limit: 10 })).toMatchObject({ more: false });
});

test("verdicts on signals of partitions that were not examined are kept, and all are examined while one is open", async () => {
  const verdicts = new Map([[idOf(15), "accepted"]] as const);
  const all = await passPartitions({ partitions: 2, limit: 5, verdicts });
  expect(all.reads).toEqual(["0:0", "1:0"]);
  expect(all.open).toEqual([idOf(15)]);
});

test("verdicts on signals behind the window are kept while there is more to read, and forgotten after all was read", async () => {
  const behind = new Map([[idOf(80), "accepted"]] as const);
  expect(await pass(0, behind)).toMatchObject({ more: true, open: [idOf(80)] });
  // No partition of this log has the signal.
  expect(await passPartitions({ limit: 10, verdicts: behind })).toMatchObject({ more: false, open: [] });
});

test("a position before the log is a loss, and the rest is found from its oldest entry on", async () => {
  const behind = { ok: false, reason: "behind", oldest: "7" as Cursor, lost: 7 } as const;
  const reply = (_: number, after: string) => (after === "0" ? behind : undefined);
  const result = await passPartitions({ reply });
  expect(result.steps).toEqual([["0", "7", { delivered: 0, deadLetters: 7 }]]);
  expect(result).toMatchObject({
    losses: [7],
    reads: ["0:0", "0:7"],
    found: ["session-7 8", "session-8 9", "session-9 10"],
  });
  // Another poll has counted the loss.
  expect(await passPartitions({ reply, passed: false })).toMatchObject({ losses: [], found: [], reads: ["0:0"] });
});

test("a position that the store has lost ends the search of its partition alone", async () => {
  const result = await passPartitions({
    partitions: 2,
    reply: (partition) => (partition === 0 ? { ok: false, reason: "rewound" } : undefined),
  });
  expect(result).toMatchObject({ steps: [], losses: [], reads: ["0:0", "1:0"] });
  expect(result.found[0]).toBe("session-10 1");
});

test("signals whose cursor another poll has moved are neither counted nor returned now", async () => {
  const verdicts = new Map([[idOf(0), "accepted"]] as const);
  expect(await passPartitions({ verdicts, passed: false })).toMatchObject({ settled: [], found: [], more: true });
});

test("a search that another poll or the store has overtaken finds nothing, and promises nothing", async () => {
  const nothing = { found: [], more: false, open: [] };
  expect(await passPartitions({ reply: () => ({ ok: false, reason: "rewound" }) })).toMatchObject(nothing);
  const behind = { ok: false, reason: "behind", oldest: "7" as Cursor, lost: 7 } as const;
  expect(await passPartitions({ reply: () => behind, passed: false })).toMatchObject(nothing);
});

test("sixteen readings without a signal to return are enough for one poll, also if they are empty", async () => {
  for (const signals of [[], SIGNALS.slice(0, 1)]) {
    const reply = () => ({ ok: true, signals, more: true }) as const;
    const result = await passPartitions({ reply, filter: { reasons: ["reuse"] } });
    expect([result.reads.length, result.found, result.more]).toEqual([16, [], true]);
  }
});

test("a partition without a position of the stream, or without news, is not read", async () => {
  const result = await passPartitions({ partitions: 3, positions: ["", "0", "10"] });
  expect(result.reads).toEqual(["1:0"]);
});
