/** Events of sessions are collected, and written in batches apart from the operations that caused them. */
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { type AuditEvent, UNKNOWN_REQUESTER } from "../../../../src/service/session/audit.ts";
import type { DueRecord, EventRecord } from "../../../../src/service/session/events/events.ts";
import { EventRecorder } from "../../../../src/service/session/events/record-events.ts";
import type { Session, SessionId } from "../../../../src/service/session/model.ts";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const sid = "A".repeat(23) as SessionId;
const client = { userAgent: "agent", ipAddress: "::1", displayName: "" };
const session = { sid, subject: "alice", client, clientId: "web" } as Session;
const elevated = { event: "session_elevated", sid, subject: "alice", methods: [], contextClass: "" } as const;
const ended: AuditEvent = { event: "session_ended", sid, subject: "alice", reason: "logout" };

/** How far the wall clock is ahead of the store's time, in ms. */
const SHIFT_MS = 100;

const NOTHING_DUE = {
  log: { dueRecords: async () => [], claimRecord: async () => false, shiftMs: () => SHIFT_MS },
  clock: () => wallMs(5),
  steady: () => Date.now(),
  newId: () => "id",
  retentionMs: 1_000,
  maxStepMs: 10_000,
};

function setUp() {
  const written: (readonly EventRecord[])[] = [];
  const lost: number[] = [];
  const store = { responds: true };
  const lines: AuditEvent[] = [];
  const recorder = new EventRecorder({
    ...NOTHING_DUE,
    lines: (line) => lines.push(line),
    log: {
      ...NOTHING_DUE.log,
      async recordEvents(records, retentionMs) {
        if (!store.responds) throw new StoreUnavailable("out");
        expect(retentionMs).toBe(1_000);
        written.push(records);
        return [];
      },
    },
    onLost: (count) => lost.push(count),
  });
  onTestFinished(() => recorder.close());
  return { written, lines, lost, store, recorder };
}

test("what happens at about one time is written together, with who caused it; refreshes and refusals are not", async () => {
  const { written, lines, recorder } = setUp();
  const requester = { address: () => "192.0.2.1", adminName: "support" };
  recorder.audit({ event: "session_created", sid, subject: "alice", session }, UNKNOWN_REQUESTER);
  recorder.audit({ event: "session_renewed", sid, subject: "alice", outcome: "rotate" }, UNKNOWN_REQUESTER);
  recorder.audit({ event: "authn_failed", operation: "Refresh", reason: "forged" }, UNKNOWN_REQUESTER);
  recorder.audit({ event: "session_elevated", sid, subject: "alice", methods: [], contextClass: "" }, requester);
  recorder.audit(ended, requester);
  const device = { algorithm: "ES256", thumbprint: "thumb" } as const;
  recorder.audit({ event: "device_registered", sid, subject: "alice", ...device }, UNKNOWN_REQUESTER);
  recorder.audit({ event: "device_bound", sid, subject: "alice", ...device }, UNKNOWN_REQUESTER);
  recorder.audit({ event: "all_sessions_ended", revokedUntil: storeMs(4) }, requester);
  await vi.advanceTimersByTimeAsync(100);
  const by = { address: "192.0.2.1", admin: "support" };
  expect(lines).toHaveLength(8);
  expect(written.map((records) => records.map(({ event }) => event))).toEqual([
    [
      { time: 5, type: "created", sid, subject: "alice", client, clientId: "web" },
      { time: 5, type: "elevated", sid, subject: "alice", ...by },
      { time: 5, type: "ended", sid, subject: "alice", reason: "logout", ...by },
      { time: 5, type: "device_bound", sid, subject: "alice" },
      { time: 5, type: "all_ended", revokedUntil: 4 + SHIFT_MS, ...by },
    ],
  ]);
  // An id distinguishes an event that has no due record from an equal one.
  expect(written.flat().map(({ dueKey, id }) => ({ dueKey, id }))).toEqual([
    { dueKey: `+${sid}` },
    { id: "id" },
    { dueKey: sid },
    { id: "id" },
    { dueKey: "*4" },
  ]);
});

test("events that the store does not take are written later, and beyond a bound they are lost and counted", async () => {
  const { written, lost, store, recorder } = setUp();
  store.responds = false;
  for (let at = 0; at < 5_003; at++) recorder.audit(elevated, UNKNOWN_REQUESTER);
  await vi.advanceTimersByTimeAsync(100);
  expect(written).toEqual([]);
  store.responds = true;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(written.flat()).toHaveLength(5_000);
  expect(lost.reduce((sum, count) => sum + count, 0)).toBe(3);
});

test("events beyond what can wait within one turn are lost and counted one by one", async () => {
  const { written, lost, recorder } = setUp();
  for (let at = 0; at < 5_003; at++) recorder.audit(elevated, UNKNOWN_REQUESTER);
  expect(lost).toEqual([1, 1, 1]);
  await vi.advanceTimersByTimeAsync(100);
  expect(written.flat()).toHaveLength(5_000);
});

test("of the events that come back from the store and those that came meanwhile, the oldest are lost", async () => {
  const reply = Promise.withResolvers<void>();
  const lost: number[] = [];
  const written: string[] = [];
  let calls = 0;
  let id = 0;
  const recorder = new EventRecorder({
    ...NOTHING_DUE,
    newId: () => String(id++),
    lines: () => {},
    log: {
      ...NOTHING_DUE.log,
      async recordEvents(records) {
        if (calls++ === 0) {
          await reply.promise;
          return records.slice(-2);
        }
        written.push(...records.map((record) => record.id ?? ""));
        return [];
      },
    },
    onLost: (count) => lost.push(count),
  });
  onTestFinished(() => recorder.close());
  for (let at = 0; at < 5; at++) recorder.audit(elevated, UNKNOWN_REQUESTER);
  await vi.advanceTimersByTimeAsync(20);
  for (let at = 0; at < 4_999; at++) recorder.audit(elevated, UNKNOWN_REQUESTER);
  reply.resolve();
  await vi.advanceTimersByTimeAsync(2_000);
  expect(lost).toEqual([1]);
  expect([written.length, written[0], written.at(-1)]).toEqual([5_000, "4", "5003"]);
});

test("what came while the store was writing is written a moment after it has replied", async () => {
  const replies: (() => void)[] = [];
  const recorder = new EventRecorder({
    ...NOTHING_DUE,
    lines: () => {},
    log: { ...NOTHING_DUE.log, recordEvents: () => new Promise((resolve) => replies.push(() => resolve([]))) },
    onLost: () => {},
  });
  recorder.audit(elevated, UNKNOWN_REQUESTER);
  await vi.advanceTimersByTimeAsync(20);
  recorder.audit(elevated, UNKNOWN_REQUESTER);
  replies[0]?.();
  await vi.advanceTimersByTimeAsync(20);
  expect(replies).toHaveLength(2);
  replies[1]?.();
  await recorder.close();
});

test("without events nothing is written, and no timer waits to write", async () => {
  const { written, lost, recorder } = setUp();
  const timers = vi.getTimerCount();
  await recorder.flush();
  expect([written, vi.getTimerCount()]).toEqual([[], timers]);
  recorder.audit(ended, UNKNOWN_REQUESTER);
  await recorder.flush();
  expect([written.length, vi.getTimerCount()]).toEqual([1, timers]);
  await recorder.close();
  expect([written.length, lost]).toEqual([1, []]);
});

test("endings beyond what can wait have no line yet: their due records stay, and are found later", async () => {
  const { written, lines, lost, recorder } = setUp();
  // This many sessions end within one turn of the event loop, as when a subject with very many sessions logs out of all of them.
  for (let at = 0; at < 9_999; at++) recorder.audit(ended, UNKNOWN_REQUESTER);
  await vi.advanceTimersByTimeAsync(100);
  expect(written.flat()).toHaveLength(5_000);
  expect(lines).toHaveLength(5_000);
  expect(lost).toEqual([]);
});

test("what waits is written at the end", async () => {
  const { written, recorder } = setUp();
  recorder.audit(ended, UNKNOWN_REQUESTER);
  await recorder.close();
  expect(written.flat()).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(written).toHaveLength(1);
  expect(vi.getTimerCount()).toBe(0);
});

test("while the store has not replied nothing else is sent to it, and at the end every event is written or counted as lost", async () => {
  const calls: { readonly count: number; readonly reply: PromiseWithResolvers<EventRecord[]> }[] = [];
  const lost: number[] = [];
  const recorder = new EventRecorder({
    ...NOTHING_DUE,
    lines: () => {},
    log: {
      ...NOTHING_DUE.log,
      recordEvents(events) {
        const reply = Promise.withResolvers<EventRecord[]>();
        calls.push({ count: events.length, reply });
        return reply.promise;
      },
    },
    onLost: (count) => lost.push(count),
  });
  const counts = () => calls.map(({ count }) => count);
  const fail = (at: number) => calls[at]?.reply.reject(new StoreUnavailable("out"));
  recorder.audit(ended, UNKNOWN_REQUESTER);
  await vi.advanceTimersByTimeAsync(20);
  recorder.audit(ended, UNKNOWN_REQUESTER);
  await vi.advanceTimersByTimeAsync(100);
  expect(counts()).toEqual([1]);
  fail(0);
  await vi.advanceTimersByTimeAsync(1_999);
  recorder.audit(ended, UNKNOWN_REQUESTER);
  expect(counts()).toEqual([1]);
  await vi.advanceTimersByTimeAsync(1);
  expect(counts()).toEqual([1, 3]);
  recorder.audit(ended, UNKNOWN_REQUESTER);
  const closed = recorder.close();
  fail(1);
  await vi.advanceTimersByTimeAsync(0);
  expect(counts()).toEqual([1, 3, 4]);
  fail(2);
  await closed;
  expect(lost).toEqual([4]);
  expect(vi.getTimerCount()).toBe(0);
});

/** Creates a store with an event that is due to be written, and a recorder that writes events. */
function withDue() {
  const left: DueRecord = {
    key: sid,
    since: storeMs(0),
    ids: { requestId: "r1" },
    event: { ...dueEnding, address: "192.0.2.1" },
  };
  const due = new Map([[sid, left]]);
  const store: { reads: boolean; writes: boolean; held?: Promise<void> } = { reads: true, writes: true };
  const events: string[] = [];
  const lines: { readonly line: AuditEvent; readonly requestId: string | undefined }[] = [];
  const recorder = new EventRecorder({
    ...NOTHING_DUE,
    steady: () => performance.now(),
    lines: (line, { correlation }) => lines.push({ line, requestId: correlation?.().requestId }),
    onLost: () => {},
    log: {
      ...NOTHING_DUE.log,
      async dueRecords() {
        if (!store.reads) throw new StoreUnavailable("out");
        return [{ part: "all", now: storeMs(performance.now()), records: [...due.values()] }];
      },
      async claimRecord(record) {
        const isFirst = due.get(sid)?.since === record.since;
        if (isFirst) due.set(sid, { ...record, since: storeMs(performance.now()) });
        return isFirst;
      },
      async recordEvents(records) {
        await store.held;
        if (!store.writes) return records;
        for (const { event } of records) if (event.sid && due.delete(event.sid)) events.push(event.type);
        return [];
      },
    },
  });
  onTestFinished(() => recorder.close());
  return { recorder, due, store, events, lines };
}
const dueEnding = { time: storeMs(7), type: "ended", sid, subject: "alice", reason: "reuse" } as const;

test("what is due is recorded with who asked for it once it is older than a step may take, and not before", async () => {
  const { events, lines } = withDue();
  await vi.advanceTimersByTimeAsync(30_000);
  expect(lines).toEqual([]);
  await vi.advanceTimersByTimeAsync(10_000);
  const common = { sid, subject: "alice", happenedAt: 7 };
  expect(lines).toEqual([
    { line: { event: "authn_token_reuse", ...common }, requestId: "r1" },
    { line: { event: "session_ended", ...common, reason: "reuse" }, requestId: "r1" },
  ]);
  expect(events).toEqual(["ended"]);
  await vi.advanceTimersByTimeAsync(120_000);
  expect(lines).toHaveLength(2);
});

test.each([5_000, 600_000])("after %i ms of outage those who could not write have as long again", async (ms) => {
  const { store, lines } = withDue();
  await vi.advanceTimersByTimeAsync(20_000);
  store.reads = false;
  await vi.advanceTimersByTimeAsync(ms);
  store.reads = true;
  await vi.advanceTimersByTimeAsync(30_000);
  expect(lines).toEqual([]);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(lines).toHaveLength(2);
});

test("a process that was stopped has not seen the store all that time", async () => {
  const { lines } = withDue();
  await vi.advanceTimersByTimeAsync(10_000);
  stop(600_000);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(lines).toEqual([]);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(lines).toHaveLength(2);
});

test("what an instance has recorded and cannot write is not found due by itself", async () => {
  const { recorder, store, events, lines } = withDue();
  store.writes = false;
  recorder.audit(ended, UNKNOWN_REQUESTER);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(lines).toHaveLength(1);
  store.writes = true;
  await vi.advanceTimersByTimeAsync(2_000);
  expect(events).toEqual(["ended"]);
});

test("what an instance is writing is not found due by itself, however long the store takes", async () => {
  const { recorder, store, events, lines } = withDue();
  const { promise, resolve } = Promise.withResolvers<void>();
  store.held = promise;
  recorder.audit(ended, UNKNOWN_REQUESTER);
  await vi.advanceTimersByTimeAsync(600_000);
  expect([lines.length, events]).toEqual([1, []]);
  resolve();
  await vi.advanceTimersByTimeAsync(2_000);
  expect([lines.length, events]).toEqual([1, ["ended"]]);
});

test("after the process was stopped it leaves endings to be found: another instance may have found them", async () => {
  const { recorder, due, lines } = withDue();
  stop(6_000);
  recorder.audit({ event: "authn_token_reuse", sid, subject: "alice" }, UNKNOWN_REQUESTER);
  recorder.audit(ended, UNKNOWN_REQUESTER);
  recorder.audit({ event: "session_renewed", sid, subject: "alice", outcome: "rotate" }, UNKNOWN_REQUESTER);
  await vi.advanceTimersByTimeAsync(100);
  expect(lines.map(({ line }) => line.event)).toEqual(["session_renewed"]);
  expect(due.size).toBe(1);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(lines.map(({ line }) => line.event)).toEqual(["session_renewed", "authn_token_reuse", "session_ended"]);
  recorder.audit({ event: "session_created", sid, subject: "alice", session }, UNKNOWN_REQUESTER);
  expect(lines).toHaveLength(4);
});

/** Blocks this process, so that time passes while no timer runs. */
function stop(ms: number): void {
  const now = performance.now.bind(performance);
  vi.spyOn(performance, "now").mockImplementation(() => now() + ms);
  onTestFinished(() => void vi.restoreAllMocks());
}

test.each([
  ["is no suspension", 5_000, 1],
  ["leaves the process in doubt", 5_001, 0],
])("a pause of the process's timers that %s (%i ms)", async (_name, ms, count) => {
  const { recorder, lines } = withDue();
  stop(ms);
  recorder.audit(ended, UNKNOWN_REQUESTER);
  expect(lines).toHaveLength(count);
});

test("a process that was suspended is in doubt for as long as a step of the store may take, also after its next check", async () => {
  const { recorder, lines } = withDue();
  stop(6_000);
  await vi.advanceTimersByTimeAsync(1_000); // The check that notices the pause. Those after it do not.
  await vi.advanceTimersByTimeAsync(9_999);
  recorder.audit(ended, UNKNOWN_REQUESTER);
  expect(lines).toHaveLength(0);
  await vi.advanceTimersByTimeAsync(1);
  recorder.audit(ended, UNKNOWN_REQUESTER);
  expect(lines).toHaveLength(1);
});

/** Creates a recorder over a store with due records. @param claim whether the recorder is the one that gets a record */
function takingOver(
  records: (now: number) => readonly DueRecord[],
  claim: (record: DueRecord) => boolean = () => true,
) {
  const lines: AuditEvent[] = [];
  const claimed: DueRecord[] = [];
  const recorder = new EventRecorder({
    ...NOTHING_DUE,
    steady: () => performance.now(),
    lines: (line) => lines.push(line),
    onLost: () => {},
    log: {
      ...NOTHING_DUE.log,
      async dueRecords() {
        return [{ part: "all", now: storeMs(performance.now()), records: records(performance.now()) }];
      },
      async claimRecord(record) {
        claimed.push(record);
        return claim(record);
      },
      recordEvents: async () => [],
    },
  });
  onTestFinished(() => recorder.close());
  return { recorder, lines, claimed };
}
const dueOf = (key: string, since: number): DueRecord => ({
  key,
  since: storeMs(since),
  ids: {},
  event: { ...dueEnding, sid: key as SessionId, reason: "logout" },
});
/** How old a due record is when it is taken over: the longest step of the store and 20 s. */
const OVERDUE_MS = 30_000;

test("a due record is taken over once it is old enough, however long the store was readable before", async () => {
  const start = performance.now();
  const since = start + 60_000;
  const { claimed } = takingOver(
    () => [dueOf("a", since)],
    () => false,
  );
  await vi.advanceTimersByTimeAsync(60_000 + OVERDUE_MS - 5_000);
  expect(claimed).toEqual([]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(claimed).toEqual([dueOf("a", since)]);
});

test("while the store was readable for too short a time, nothing is asked for", async () => {
  const { claimed } = takingOver(
    () => [dueOf("a", 0)],
    () => false,
  );
  // The first look is after five seconds.
  await vi.advanceTimersByTimeAsync(5_000 + OVERDUE_MS - 5_000);
  expect(claimed).toEqual([]);
  await vi.advanceTimersByTimeAsync(5_000);
  expect(claimed).toEqual([dueOf("a", 0)]);
});

test("what another instance has claimed is not recorded", async () => {
  const { claimed, lines } = takingOver(
    () => [dueOf("a", 0), dueOf("b", 0)],
    ({ key }) => key === "b",
  );
  await vi.advanceTimersByTimeAsync(5_000 + OVERDUE_MS);
  expect(claimed.map(({ key }) => key).slice(0, 2)).toEqual(["a", "b"]);
  expect(new Set(lines.map((line) => "sid" in line && line.sid))).toEqual(new Set(["b"]));
});

test("one look takes over everything that is due, although the store lists it in parts", async () => {
  const left = ["a", "b", "c"];
  const { lines } = takingOver(
    () => left.slice(0, 1).map((key) => dueOf(key, 0)),
    () => left.shift() !== undefined,
  );
  await vi.advanceTimersByTimeAsync(5_000 + OVERDUE_MS);
  expect(lines.map((line) => "sid" in line && line.sid)).toEqual(["a", "b", "c"]);
});

test("a look takes over no more than half of what can wait", async () => {
  let made = 0;
  const { lines } = takingOver(() => Array.from({ length: 1_250 }, () => dueOf(String(made++), 0)));
  await vi.advanceTimersByTimeAsync(5_000 + OVERDUE_MS);
  expect(lines).toHaveLength(2_500);
});

test("closing ends a look after the part that is under way", async () => {
  let made = 0;
  const { recorder, lines } = takingOver(
    () => [dueOf(String(made++), 0)],
    () => {
      void recorder.close();
      return true;
    },
  );
  await vi.advanceTimersByTimeAsync(5_000 + OVERDUE_MS);
  expect(lines).toHaveLength(1);
});

test.each([
  ["counts as readable", 10_000, 1],
  ["does not", 10_001, 0],
])("a part of the store that was read again after a pause %s (%i ms)", async (_name, ms, count) => {
  const { claimed } = takingOver(
    () => [dueOf("a", 0)],
    () => false,
  );
  await vi.advanceTimersByTimeAsync(10_000);
  stop(ms);
  await vi.advanceTimersByTimeAsync(15_000);
  expect(claimed).toHaveLength(count);
});
