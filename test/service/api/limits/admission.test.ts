/** Admission under overload, at the exact limits, with a clock and event loop turns that the test controls. */
import { beforeEach, describe, expect, test, vi } from "vitest";
import { TURN_MS } from "../../../../src/platform/clock/turns.ts";
import { Admission, LATE_CALLS_PER_TURN, PROBES } from "../../../../src/service/api/limits/admission.ts";

const MAX_WAITING = 100;
const MAX_LOOP_DELAY_MS = 200;
const MAX_STORE_DELAY_MS = 250;
const STORE_TURNS = MAX_STORE_DELAY_MS / TURN_MS;

let now: number;
let worked: number;
let admission: Admission;
let refused: string[];

function createAdmission(more: Partial<ConstructorParameters<typeof Admission>[0]> = {}): Admission {
  return new Admission({
    maxWaiting: MAX_WAITING,
    maxLoopDelayMs: MAX_LOOP_DELAY_MS,
    maxStoreDelayMs: MAX_STORE_DELAY_MS,
    onRefused: (cause) => refused.push(cause),
    clock: () => now,
    processorTime: () => worked,
    ...more,
  });
}

/** Ends a turn of the event loop `lateMs` too late. The process has used `workMs` of processor time in this turn. */
function tick(lateMs = 0, workMs = lateMs): void {
  now += TURN_MS + lateMs;
  worked += workMs;
  admission.turn();
}

function ticks(count: number): void {
  for (let time = 0; time < count; time++) tick();
}

const begin = (count: number) => Array.from({ length: count }, () => admission.begin());

function finish(
  begun: readonly ReturnType<Admission["begin"]>[],
  outcome: "replied" | "slow" | "lost" = "replied",
): void {
  for (const one of begun) admission.finish(one, outcome);
}

/** Requests admission for a call. Returns why it is refused. */
const accept = () => (admission.accept() ? undefined : refused.at(-1));

/** Requests admission for `calls` calls. Returns how many of them are accepted. */
function accepted(calls: number): number {
  let count = 0;
  for (let call = 0; call < calls; call++) if (accept() === undefined) count++;
  return count;
}

beforeEach(() => {
  now = 1_000;
  worked = 100;
  refused = [];
  admission = createAdmission();
});

describe("commands that wait for the store", () => {
  test("are as many as the limit, and not one more", () => {
    begin(MAX_WAITING - 1);
    expect([admission.storeIsBusy(), accept()]).toEqual([false, undefined]);
    const last = admission.begin();
    expect([admission.storeIsBusy(), accept()]).toEqual([true, "store"]);
    admission.finish(last, "replied");
    expect(accept()).toBeUndefined();
  });

  test("that end sessions wait in four times the number", () => {
    begin(4 * MAX_WAITING - 1);
    expect(admission.storeIsFull()).toBe(false);
    begin(1);
    expect(admission.storeIsFull()).toBe(true);
  });

  test("are counted", () => {
    const begun = begin(3);
    tick();
    begin(2);
    expect(admission.waiting).toBe(5);
    finish(begun);
    expect(admission.waiting).toBe(2);
  });

  test("are not limited where the limit is 0", () => {
    admission = createAdmission({ maxWaiting: 0 });
    begin(100_000);
    ticks(1_000);
    expect([admission.storeIsBusy(), admission.storeIsFull(), accept()]).toEqual([false, false, undefined]);
  });
});

describe("a store that does not reply", () => {
  test("is given a quarter of a second before most is refused", () => {
    begin(PROBES);
    ticks(STORE_TURNS - 1);
    expect(accept()).toBeUndefined();
    tick();
    expect(accept()).toBe("store");
  });

  test("is always asked by a few, so that its return is seen", () => {
    begin(PROBES - 1);
    ticks(100);
    expect(accept()).toBeUndefined();
    begin(1);
    expect(accept()).toBe("store");
  });

  test("is late from its first lost command until its first reply", () => {
    const begun = begin(PROBES + 2);
    expect(accept()).toBeUndefined();
    finish(begun.slice(0, 1), "lost");
    expect(accept()).toBe("store");
    finish(begun.slice(1, 2), "replied");
    expect(accept()).toBeUndefined();
  });

  test("is late no longer with the first reply to a command that no call made", () => {
    const lost = admission.begin();
    admission.finish(lost, "lost");
    begin(PROBES);
    expect(accept()).toBe("store");
    admission.hear(admission.now);
    expect(accepted(1_000)).toBe(1_000);
  });

  test("of which one node is down goes on serving the rest", () => {
    begin(PROBES);
    for (let time = 0; time < 20; time++) {
      tick();
      finish(begin(1));
      expect(accept()).toBeUndefined();
    }
  });

  test("after an idle time is late only a quarter of a second after a command came", () => {
    ticks(10_000);
    begin(PROBES);
    expect(accept()).toBeUndefined();
    ticks(STORE_TURNS - 1);
    expect(accept()).toBeUndefined();
    tick();
    expect(accept()).toBe("store");
  });
});

describe("commands that began in one turn", () => {
  test("are waited for until the last of them has ended", () => {
    const begun = begin(PROBES + 1);
    finish(begun.slice(0, 1));
    ticks(STORE_TURNS);
    expect(accept()).toBe("store");
  });

  test("are forgotten when all of them have ended", () => {
    finish(begin(2));
    ticks(10_000);
    begin(PROBES);
    expect(accept()).toBeUndefined();
  });
});

describe("a store that replies slowly", () => {
  test("gets no more than a few commands until a reply comes in time", () => {
    const slow = begin(2);
    const begun = begin(PROBES);
    ticks(STORE_TURNS - 1);
    finish(slow.slice(0, 1));
    expect(accept()).toBeUndefined();
    tick();
    finish(slow.slice(1));
    expect(accept()).toBe("store");
    finish(begin(1));
    expect(accept()).toBeUndefined();
    finish(begun);
  });

  test("is in time again with a fast reply to a command that no call made, and is not late with a slow one", () => {
    const slow = begin(1);
    ticks(STORE_TURNS);
    finish(slow);
    begin(PROBES);
    expect(accept()).toBe("store");
    const begun = admission.now;
    ticks(STORE_TURNS - 1);
    admission.hear(begun);
    expect(accept()).toBeUndefined();
    ticks(1);
    admission.hear(begun); // The end of a read of the revocation log is reported. Its beginning was reported above.
    expect(accept()).toBeUndefined();
  });

  test("stays late with a slow reply to a command that no call made", () => {
    finish(begin(1));
    const slow = begin(1);
    ticks(STORE_TURNS);
    finish(slow);
    begin(PROBES);
    const begun = admission.now;
    ticks(STORE_TURNS);
    admission.hear(begun);
    expect(accept()).toBe("store");
  });

  test("is not inferred from an ending that waits for replicas", () => {
    const ending = begin(1);
    begin(PROBES);
    ticks(STORE_TURNS);
    finish(ending, "slow");
    expect(accept()).toBeUndefined();
  });
});

describe("an event loop", () => {
  test("that was late once was held up, and refuses nothing", () => {
    tick(10_000);
    expect(accepted(1_000)).toBe(1_000);
  });

  test("that was late once after turns in time was held up as well", () => {
    ticks(2);
    tick(10_000);
    expect(accepted(1_000)).toBe(1_000);
  });

  test("that is late twice in a row accepts a few calls per tick", () => {
    tick(MAX_LOOP_DELAY_MS + 1);
    tick(MAX_LOOP_DELAY_MS + 1);
    expect(accepted(1_000)).toBe(LATE_CALLS_PER_TURN);
    expect(accept()).toBe("event_loop");
    tick(MAX_LOOP_DELAY_MS + 1);
    expect(accepted(1_000)).toBe(LATE_CALLS_PER_TURN);
  });

  test("is late by more than the limit, not by the limit", () => {
    for (let time = 0; time < 5; time++) tick(MAX_LOOP_DELAY_MS);
    expect(accepted(1_000)).toBe(1_000);
  });

  test("that lacks a processor is not overloaded, however late it is", () => {
    for (let time = 0; time < 20; time++) tick(1_000, MAX_LOOP_DELAY_MS);
    expect(accepted(1_000)).toBe(1_000);
  });

  test("that works for too long is overloaded, also where it shares its processor", () => {
    tick(1_000, MAX_LOOP_DELAY_MS + 1);
    tick(1_000, MAX_LOOP_DELAY_MS + 1);
    expect(accepted(1_000)).toBe(LATE_CALLS_PER_TURN);
  });

  test("is not late by the work of other threads while its turns are in time", () => {
    for (let time = 0; time < 5; time++) tick(MAX_LOOP_DELAY_MS, 10_000);
    expect(accepted(1_000)).toBe(1_000);
  });

  test("is measured by the monotonic clock of the process", () => {
    vi.useFakeTimers({ toFake: ["performance"] });
    try {
      admission = new Admission({
        maxWaiting: 0,
        maxLoopDelayMs: 200,
        maxStoreDelayMs: 250,
        onRefused: (cause) => refused.push(cause),
        processorTime: () => worked,
      });
      for (let time = 0; time < 2; time++) {
        vi.advanceTimersByTime(TURN_MS + MAX_LOOP_DELAY_MS + 1);
        worked += 1_000;
        admission.turn();
      }
      expect(accepted(1_000)).toBe(LATE_CALLS_PER_TURN);
    } finally {
      vi.useRealTimers();
    }
  });

  test("accepts everything again with the first turn in time", () => {
    for (let time = 0; time < 5; time++) tick(MAX_LOOP_DELAY_MS + 1);
    expect(accepted(1_000)).toBe(LATE_CALLS_PER_TURN);
    tick();
    expect(accepted(1_000)).toBe(1_000);
  });

  test("may be as late as it likes where the limit is 0", () => {
    admission = createAdmission({ maxLoopDelayMs: 0 });
    for (let time = 0; time < 5; time++) tick(60_000);
    expect(accepted(1_000)).toBe(1_000);
  });
});

test("a pause of the whole process is no overload: replies are read before anything is called late", () => {
  const begun = begin(PROBES);
  tick(60_000);
  expect(accept()).toBeUndefined();
  finish(begun);
  tick();
  expect(accepted(1_000)).toBe(1_000);
});
