/** The decisions of a lane at their exact limits: a lane does no I/O, and the test passes the times. */
import { beforeEach, describe, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { backoffMs, GIVE_UP_MS, hasFilter, Lane, MAX_LINE } from "../../../../src/service/signals/delivery/lane.ts";
import type { Item, Line } from "../../../../src/service/signals/delivery/line.ts";
import type { DeliveryError, SignalFilter } from "../../../../src/service/signals/model.ts";
import type { Cursor, LoggedSignal } from "../../../../src/service/signals/ports.ts";

const NOW = 1_000_000;
const MAX_LANE = 512;
const MAX_AHEAD = 10_000;

let lane: Lane;
let line: Line;
let number: number;

const cursorAt = (at: number) => `${at} sid` as Cursor;
/** Returns the next signal of the log. Without a session, it is that of a session of its own. */
function next(session = `session ${number + 1}`, subject = "alice"): LoggedSignal {
  number++;
  const sessionId = session as SessionId;
  return {
    signal: { id: `${number}`, sessionId, subject, reason: "logout", happenedAt: storeMs(number) },
    cursor: cursorAt(number),
  };
}
function add(count: number, session?: string, filter: SignalFilter = {}): void {
  for (let at = 0; at < count; at++) lane.add(line, [next(session)], false, filter);
}
const take = (now = NOW, limit = 100) => lane.take(now, limit);
const one = (now = NOW): Item => take(now, 1)[0] as Item;
const settle = (item: Item, error?: DeliveryError, now = NOW, fraction = 0) => lane.settle(item, error, now, fraction);
const idsOf = (items: readonly Item[]) => items.map(({ signal: { id } }) => id);

beforeEach(() => {
  number = 0;
  lane = new Lane();
  lane.open(0, cursorAt(0));
  line = lane.line(0) as Line;
});

test("the longest delay of a retry doubles from a second to an hour", () => {
  expect([1, 2, 3, 12, 13, 1_000].map((failures) => backoffMs(failures, 1))).toEqual([
    1_000, 2_000, 4_000, 2_048_000, 3_600_000, 3_600_000,
  ]);
  expect(backoffMs(2, 0.5)).toBe(1_000);
});

describe("signals to send", () => {
  test("are at most eight at a time, in the order of the log", () => {
    add(10);
    const taken = take();
    expect(idsOf(taken)).toEqual(["1", "2", "3", "4", "5", "6", "7", "8"]);
    expect([take(), lane.inFlight]).toEqual([[], 8]);
    settle(taken[0] as Item);
    expect([idsOf(take()), lane.inFlight]).toEqual([["9"], 8]);
  });

  test("are no more than the caller wants", () => {
    add(3);
    expect([idsOf(take(NOW, 2)), idsOf(take(NOW, 0)), idsOf(take())]).toEqual([["1", "2"], [], ["3"]]);
  });

  test("of one session are sent one after the other", () => {
    add(2, "the same");
    const [first] = take();
    expect(take()).toEqual([]);
    settle(first as Item);
    expect(idsOf(take())).toEqual(["2"]);
  });

  test("that failed wait for their retry, to the millisecond", () => {
    add(1);
    settle(one(), "timeout", NOW, 1);
    expect([take(NOW + 999), idsOf(take(NOW + 1_000))]).toEqual([[], ["1"]]);
  });

  test("of a line that was closed are not sent, and their results change nothing", () => {
    add(3);
    const item = one();
    lane.closeAll();
    expect([take(), lane.line(0), [...lane.lines]]).toEqual([[], undefined, []]);
    settle(item);
    settle({ ...item }, "timeout");
    expect([take(NOW + GIVE_UP_MS), lane.progress(line)]).toEqual([[], undefined]);
  });
});

test("signals that are settled free their room, also after attempts that failed", () => {
  for (let signal = 0; signal < 2 * MAX_LANE; signal++) {
    add(1);
    settle(one(NOW + signal), "timeout", NOW + signal);
    settle(one(NOW + signal), undefined, NOW + signal);
  }
  expect([lane.room(line), line.tried, line.items]).toEqual([MAX_LINE, 0, []]);
});

test("a partition that is opened again begins a new line, and ends the old one", () => {
  add(3);
  const item = one();
  lane.open(0, cursorAt(9));
  expect([line.open, lane.line(0)?.items, lane.room(lane.line(0) as Line)]).toEqual([false, [], MAX_LINE]);
  settle(item, "timeout");
  expect(take(NOW + GIVE_UP_MS)).toEqual([]);
});

describe("a receiver that fails", () => {
  function failTimes(count: number, error: DeliveryError = "timeout"): void {
    for (let time = 0; time < count; time++) settle(one(), error);
  }

  test("gets as many requests as before until it has failed five times", () => {
    add(10);
    failTimes(4);
    expect(take()).toHaveLength(8);
  });

  test("gets one request at a time from its fifth failure on, and none before the next retry", () => {
    add(10);
    failTimes(4);
    settle(one(), "timeout", NOW, 1);
    expect([lane.failures, take(NOW + 999)]).toEqual([5, []]);
    const [only, ...others] = take(NOW + 1_000);
    expect(others).toEqual([]);
    settle(only as Item, "timeout", NOW + 1_000, 1);
    expect([take(NOW + 2_999), take(NOW + 3_000).length]).toEqual([[], 1]);
  });

  test("does not wait where it only refuses, and one refusal begins the count anew", () => {
    add(30);
    failTimes(4);
    failTimes(5, "refused");
    failTimes(4);
    expect([lane.failures, take().length]).toEqual([13, 8]);
  });

  test("is paused after a day, and not a millisecond earlier", () => {
    add(2);
    expect(settle(one(), "timeout")).toBeUndefined();
    expect(settle(one(NOW), "timeout", NOW + GIVE_UP_MS - 1)).toBeUndefined();
    expect(settle(one(NOW + 2 * GIVE_UP_MS), "timeout", NOW + GIVE_UP_MS)).toBe("pause");
  });

  test("is not paused if it has accepted a signal in between", () => {
    add(3);
    settle(one(), "timeout");
    settle(one());
    expect(settle(one(NOW + GIVE_UP_MS), "timeout", NOW + GIVE_UP_MS)).toBeUndefined();
  });
});

describe("a signal that is not accepted", () => {
  /** Fails the first signal, and then lets the receiver accept another signal at a time. */
  function failThenAccept(acceptedAt: number): Item {
    add(2);
    const [item, other] = take() as [Item, Item];
    settle(item, "timeout");
    settle(other, undefined, acceptedAt);
    return item;
  }

  test("is given up after a day in which the receiver has accepted others, from the first failure on", () => {
    const item = failThenAccept(NOW);
    settle(one(NOW + GIVE_UP_MS), "timeout", NOW + GIVE_UP_MS - 1);
    expect(line.items).toEqual([item]);
    settle(one(NOW + 2 * GIVE_UP_MS), "timeout", NOW + GIVE_UP_MS);
    expect([line.items, lane.progress(line)]).toEqual([
      [],
      { to: cursorAt(2), entries: 2, counts: { delivered: 1, deadLetters: 1 } },
    ]);
  });

  test("is kept for longer if the receiver has accepted nothing since it failed", () => {
    const item = failThenAccept(NOW - 1);
    settle(one(NOW + GIVE_UP_MS), "timeout", NOW + GIVE_UP_MS);
    expect([line.items, take(NOW + 2 * GIVE_UP_MS)]).toEqual([[item], [item]]);
  });

  test("is given up with the tenth refusal between which others were accepted", () => {
    add(1);
    const item = one();
    settle(item, "refused");
    for (let time = 1; time <= 10; time++) {
      expect(line.items).toEqual([item]);
      add(1);
      const taken = take(NOW + time);
      for (const other of taken) if (other !== item) settle(other, undefined, NOW + time);
      settle(item, "refused", NOW + time);
    }
    expect([line.items, lane.progress(line)?.counts]).toEqual([[], { delivered: 10, deadLetters: 1 }]);
  });

  test("counts refusals only after another one was accepted", () => {
    add(3);
    const item = one();
    settle(item, "refused");
    expect(item.refusals).toBe(0);
    settle(one());
    expect(idsOf([item])).toEqual(["1"]);
    const others = take();
    const again = others.find(({ signal }) => signal.id === "1") as Item;
    settle(again, "refused");
    expect(again.refusals).toBe(1);
    for (const other of others) if (other !== again) settle(other, "timeout");
    settle(take(NOW + 10).find(({ signal }) => signal.id === "1") as Item, "timeout", NOW + 10);
    expect(item.refusals).toBe(1);
  });
});

describe("the capacity of a line", () => {
  test("is sixteen signals besides those that have failed", () => {
    add(MAX_LINE + 5);
    expect([line.items.length, lane.room(line), line.more]).toEqual([MAX_LINE, 0, true]);
    settle(one(), "timeout");
    expect(lane.room(line)).toBe(1);
    settle(one());
    expect(lane.room(line)).toBe(2);
  });

  test("is limited over all lines, and comes back when a line is closed", () => {
    const lines = Array.from({ length: MAX_LANE / MAX_LINE }, (_, partition) => {
      lane.open(partition, cursorAt(0));
      return lane.line(partition) as Line;
    });
    for (const each of lines) for (let at = 0; at < MAX_LINE; at++) lane.add(each, [next()], false, {});
    lane.open(99, cursorAt(0));
    const last = lane.line(99) as Line;
    expect(lane.room(last)).toBe(0);
    lane.close(0);
    lane.close(0);
    expect(lane.room(last)).toBe(MAX_LINE);
  });

  test("ends where too much was delivered ahead of a signal", () => {
    add(1);
    for (let at = 0; at < MAX_AHEAD - 1; at++) lane.add(line, [next("x", "bob")], true, { subject: "alice" });
    expect([line.ahead, lane.room(line)]).toEqual([MAX_AHEAD - 1, MAX_LINE - 1]);
    lane.add(line, [next("x", "bob")], true, { subject: "alice" });
    expect(lane.room(line)).toBe(0);
    settle(one());
    expect([line.ahead, lane.room(line)]).toEqual([0, MAX_LINE]);
  });
});

describe("the cursor of a line", () => {
  test("stays before the first signal that was not accepted, and then passes all that follow", () => {
    add(3);
    const [first, second, third] = take() as [Item, Item, Item];
    settle(third);
    settle(second);
    expect([lane.progress(line), line.ahead]).toEqual([undefined, 2]);
    settle(first);
    const progress = { to: cursorAt(3), entries: 3, counts: { delivered: 3, deadLetters: 0 } };
    expect([lane.progress(line), lane.progress(line, 3), lane.progress(line, 4)]).toEqual([
      progress,
      progress,
      undefined,
    ]);
    expect(line.ahead).toBe(0);
    lane.stored(line, { ...progress, entries: 2, counts: { delivered: 1, deadLetters: 0 } });
    expect(lane.progress(line)).toEqual({ to: cursorAt(3), entries: 1, counts: { delivered: 2, deadLetters: 0 } });
  });

  test("passes what the filter excludes, and whether the log has more is what was read last", () => {
    lane.add(line, [next("a", "bob"), next("b"), next("c", "bob")], true, { subject: "alice" });
    expect([idsOf(line.items), line.position, line.more]).toEqual([["2"], cursorAt(3), true]);
    expect(lane.progress(line)).toMatchObject({ to: cursorAt(1), entries: 1, counts: { delivered: 0 } });
    settle(one());
    expect(lane.progress(line)).toMatchObject({ to: cursorAt(3), entries: 3, counts: { delivered: 1 } });
  });
});

test("a subscription without conditions leaves nothing out", () => {
  expect([hasFilter({ filter: {} }), hasFilter({ filter: { subject: "a" } })]).toEqual([false, true]);
});
