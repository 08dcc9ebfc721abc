/** What a poll returns, acknowledges and counts (RFC 8936 section 2), on a log of two partitions in memory. */
import { describe, expect, onTestFinished, test, vi } from "vitest";
import type { Requester } from "../../../../src/service/session/audit.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { setSubscriptionState } from "../../../../src/service/signals/manage.ts";
import { signalId } from "../../../../src/service/signals/model.ts";
import type { Cursor, LoggedSignal, SignalLog, SubscriptionStore } from "../../../../src/service/signals/ports.ts";
import type { Verdicts } from "../../../../src/service/signals/streams/poll-pass.ts";
import { Poller } from "../../../../src/service/signals/streams/poller.ts";
import { updateStatus } from "../../../../src/service/signals/streams/status.ts";
import { verifyStream } from "../../../../src/service/signals/streams/stream-events.ts";
import { NOW, openSignals, operator, receiver } from "../managed-world.ts";

const SHIFT_MS = 250;

/** Opens a stream that is polled, and whose log has as many signals in its partitions as the test says. */
async function openPolls(...counts: readonly number[]) {
  const recorded: unknown[] = [];
  const world = openSignals((store: SubscriptionStore) => ({
    recordAttempt: (id, failure) => {
      recorded.push(failure);
      return store.recordAttempt(id, failure);
    },
  }));
  const id = await world.stream("poll");
  const logs = counts.map((count, partition) =>
    Array.from({ length: count }, (_, at): LoggedSignal => {
      const sessionId = `session-${partition}-${at}` as SessionId;
      const ending = { sessionId, reason: "logout", happenedAt: storeMs(NOW - 1_000) } as const;
      return { signal: { id: signalId(ending), ...ending }, cursor: String(at + 1) as Cursor };
    }),
  );
  const positions = counts.map(() => "0" as Cursor);
  const passed = { delivered: 0, deadLetters: 0 };
  const log: Pick<SignalLog, "positions" | "ends" | "read" | "pass"> = {
    positions: async () => [...positions],
    ends: async () => logs.map(({ length }) => String(length) as Cursor),
    read: async (partition, after, limit) => {
      const signals = (logs[partition] ?? []).slice(Number(after), Number(after) + limit);
      return { ok: true, signals, more: Number(after) + limit < (logs[partition]?.length ?? 0) };
    },
    pass: async (partition, _, from, to, { delivered, deadLetters }) => {
      if (positions[partition] !== from) return false;
      positions[partition] = to;
      passed.delivered += delivered;
      passed.deadLetters += deadLetters;
      return true;
    },
  };
  const attempts: unknown[] = [];
  const losses: unknown[] = [];
  const givenUp: unknown[] = [];
  const hints = new Set<() => void>();
  const onSigned = { call() {} };
  const poller = new Poller({
    ...world.deps,
    log: log as SignalLog,
    signClaims(...token) {
      onSigned.call();
      return world.deps.signClaims(...token);
    },
    store: {
      shiftMs: (place) =>
        place !== undefined && "sid" in place && `${place.sid}`.startsWith("session-") ? SHIFT_MS : 0,
      onRevocation(listener) {
        const hint = () => listener([]);
        hints.add(hint);
        return () => hints.delete(hint);
      },
    },
    reports: {
      onAttempt: (...one) => void attempts.push(one),
      onLoss: (...one) => void losses.push(one),
      onGivenUp: (...one) => void givenUp.push(one),
    },
  });
  type Request = { maxEvents?: number; returnImmediately?: boolean; verdicts?: Verdicts; by?: Requester };
  const stopping = new AbortController();
  const poll = ({ maxEvents, returnImmediately = true, verdicts = new Map(), by = receiver }: Request = {}) =>
    poller.poll(id, { maxEvents, returnImmediately, verdicts }, by, stopping.signal);
  const verificationLimit = { take: () => undefined, giveBack() {} };
  return {
    ...{
      ...world,
      id,
      log,
      logs,
      positions,
      passed,
      recorded,
      attempts,
      losses,
      givenUp,
      hints,
      poll,
      stopping,
      onSigned,
    },
    idOf: (partition: number, at: number) => logs[partition]?.[at]?.signal.id ?? "",
    verify: (state: string) => verifyStream({ ...world.deps, verificationLimit }, id, state, receiver),
    failures: async () => (await world.deps.subscriptions.get(id))?.failures,
  };
}

/** Lets a poll end that found nothing to return, and time pass. */
function useClock() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  return (ms: number) => vi.advanceTimersByTimeAsync(ms);
}

const verdictsOn = (verdict: "accepted" | "refused", ...ids: readonly string[]): Verdicts =>
  new Map(ids.map((id) => [id, verdict]));

describe("a poll", () => {
  test("returns signals until they are acknowledged, with the same id and the time by the wall clock", async () => {
    const { poll, idOf, passed, attempts, recorded } = await openPolls(2);
    const both = [idOf(0, 0), idOf(0, 1)];
    for (let times = 0; times < 2; times++) {
      const { sets, moreAvailable } = await poll();
      expect([Object.keys(sets), moreAvailable]).toEqual([both, false]);
      expect(JSON.parse(sets[idOf(0, 0)] ?? "")).toMatchObject({
        ...{ typ: "secevent+jwt", jti: idOf(0, 0), aud: "receiver", iat: Math.floor(NOW / 1000) },
        sub_id: { format: "opaque", id: "session-0-0" },
        events: {
          "https://schemas.openid.net/secevent/caep/event-type/session-revoked": {
            event_timestamp: Math.floor((NOW - 1_000 + SHIFT_MS) / 1000),
          },
        },
      });
    }
    expect(attempts).toEqual([]);
    expect(await poll({ verdicts: verdictsOn("accepted", ...both) })).toEqual({ sets: {}, moreAvailable: false });
    expect(passed).toEqual({ delivered: 2, deadLetters: 0 });
    const attempt = ["ssf_poll", undefined, 1_000 - SHIFT_MS];
    expect([attempts, recorded]).toEqual([[attempt, attempt], []]);
  });

  test("gives up what the receiver refuses, which counts as a failure", async () => {
    const { poll, idOf, passed, attempts, givenUp, deps, id } = await openPolls(2);
    const verdicts = new Map([
      [idOf(0, 0), "refused"],
      [idOf(0, 1), "accepted"],
    ] as const);
    await poll({ verdicts });
    expect([passed, givenUp]).toEqual([{ delivered: 1, deadLetters: 1 }, [[id, 1]]]);
    expect(attempts).toEqual([
      ["ssf_poll", "refused", 1_000 - SHIFT_MS],
      ["ssf_poll", undefined, 1_000 - SHIFT_MS],
    ]);
    expect(await deps.subscriptions.get(id)).toMatchObject({ failures: 1, lastError: "refused", lastErrorAt: NOW });
  });

  test("ends the failures of a stream with a signal that the receiver accepts, and with nothing else", async () => {
    const { poll, idOf, recorded, failures } = await openPolls(3);
    await poll({ verdicts: verdictsOn("refused", idOf(0, 0)) });
    await poll();
    expect([await failures(), recorded.length]).toEqual([1, 1]);
    await poll({ verdicts: verdictsOn("accepted", idOf(0, 1)) });
    expect([await failures(), recorded.at(-1)]).toEqual([0, undefined]);
    await poll({ verdicts: verdictsOn("accepted", idOf(0, 2)) });
    expect(recorded).toHaveLength(2);
  });

  test("has as many events as it asks for, a hundred at most", async () => {
    const { poll } = await openPolls(150);
    const sizes = [];
    for (const maxEvents of [0, 1, 100, 101, undefined]) {
      const { sets, moreAvailable } = await poll(maxEvents === undefined ? {} : { maxEvents });
      sizes.push([Object.keys(sets).length, moreAvailable]);
    }
    expect(sizes.slice(1)).toEqual([
      ...[
        [1, true],
        [64, true],
      ],
      ...[
        [64, true],
        [64, true],
      ],
    ]);
    expect(sizes[0]?.[0]).toBe(0);
  });

  test("begins with another partition than the one before, so that none waits for the other", async () => {
    const { poll, idOf } = await openPolls(1, 1);
    const found = [];
    for (let times = 0; times < 3; times++) found.push(...Object.keys((await poll({ maxEvents: 1 })).sets));
    expect(found).toEqual([idOf(0, 0), idOf(1, 0), idOf(0, 0)]);
  });

  test("signs eight tokens in a turn of the event loop at most, so that no logout waits for all", async () => {
    const { poll, onSigned } = await openPolls(20);
    let turn = 0;
    let ended = false;
    const count = () => {
      turn++;
      if (!ended) setImmediate(count);
    };
    const signedIn = new Map<number, number>();
    onSigned.call = () => signedIn.set(turn, (signedIn.get(turn) ?? 0) + 1);
    setImmediate(count);
    await poll();
    ended = true;
    expect([...signedIn.values()]).toEqual([8, 8, 4]);
  });

  test("reports what was lost before the log began", async () => {
    const { poll, log, id, idOf, losses } = await openPolls(9);
    const { read } = log;
    log.read = async (partition, after, limit) =>
      after === "0" ? { ok: false, reason: "behind", oldest: "7" as Cursor, lost: 7 } : read(partition, after, limit);
    expect(Object.keys((await poll()).sets)).toEqual([idOf(0, 7), idOf(0, 8)]);
    expect(losses).toEqual([[id, 7]]);
  });

  test.each(["of another receiver", "that is pushed"])("of a stream %s finds none", async (which) => {
    const { poll, deps, stream, stopping, log, store } = await openPolls(1);
    const notFound = { code: "E404_NOT_FOUND" };
    if (which === "of another receiver") return expect(poll({ by: operator })).rejects.toMatchObject(notFound);
    const poller = new Poller({
      ...{ ...deps, log: log as SignalLog, store },
      reports: { onAttempt() {}, onLoss() {}, onGivenUp() {} },
    });
    const request = { maxEvents: 1, returnImmediately: true, verdicts: new Map() };
    const polled = poller.poll(await stream("push"), request, receiver, stopping.signal);
    await expect(polled).rejects.toMatchObject(notFound);
  });
});

describe("events about the stream itself", () => {
  test("come first, count towards the events of the poll, and wait until they are acknowledged", async () => {
    const { poll, verify, idOf, deps, id } = await openPolls(3);
    for (const state of ["first", "second"]) await verify(state);
    const [first = "", second = ""] = Object.keys((await poll({ maxEvents: 2 })).sets);
    const { sets, moreAvailable } = await poll({ maxEvents: 3 });
    expect([Object.keys(sets), moreAvailable]).toEqual([[first, second, idOf(0, 0)], true]);
    expect(JSON.parse(sets[first] ?? "")).toMatchObject({
      ...{ jti: first, iat: Math.floor(NOW / 1000), sub_id: { format: "opaque", id } },
      events: { "https://schemas.openid.net/secevent/ssf/event-type/verification": { state: "first" } },
    });
    expect(Object.keys((await poll({ maxEvents: 1 })).sets)).toEqual([first]);
    await poll({ verdicts: verdictsOn("accepted", first) });
    expect(Object.keys((await poll({ maxEvents: 1 })).sets)).toEqual([second]);
    await poll({ verdicts: verdictsOn("refused", second) });
    expect(Object.keys((await poll({ maxEvents: 1 })).sets)).toEqual([idOf(0, 0)]);
    expect((await deps.subscriptions.get(id))?.stream).not.toHaveProperty("pending");
  });

  test("that the response has no room for are more to ask for, without signals and while the stream is paused", async () => {
    const { poll, verify, deps, id } = await openPolls(0);
    for (const state of ["first", "second"]) await verify(state);
    for (const [maxEvents, moreAvailable] of [
      [0, true],
      [1, true],
      [2, false],
    ] as const) {
      const polled = await poll({ maxEvents });
      expect([Object.keys(polled.sets).length, polled.moreAvailable]).toEqual([maxEvents, moreAvailable]);
    }
    for (const change of ["paused", "resumed", "paused"] as const)
      await setSubscriptionState(deps, id, change, operator);
    const { sets, moreAvailable } = await poll({ maxEvents: 1 });
    expect([Object.keys(sets).length, moreAvailable]).toEqual([1, true]);
  });

  test("are not written again by a poll that acknowledges none of them", async () => {
    let writes = 0;
    const { poll, verify, deps } = await openPolls(1);
    const { define } = deps.subscriptions;
    deps.subscriptions.define = (...change) => {
      writes++;
      return define(...change);
    };
    await verify("state");
    await poll({ verdicts: verdictsOn("accepted", "another") });
    expect(writes).toBe(1);
  });

  test("of a paused stream are those of its pause alone", async () => {
    const { poll, verify, deps, id, idOf } = await openPolls(1);
    await verify("waits");
    await setSubscriptionState(deps, id, "paused", operator);
    const { sets, moreAvailable } = await poll();
    expect(moreAvailable).toBe(false);
    expect(Object.values(sets).map((token) => JSON.parse(token).events)).toEqual([
      {
        "https://schemas.openid.net/secevent/ssf/event-type/stream-updated": {
          ...{ status: "paused", reason: "paused by an operator" },
        },
      },
    ]);
    await setSubscriptionState(deps, id, "resumed", operator);
    expect(Object.keys((await poll()).sets)).toHaveLength(4);
    expect(Object.keys((await poll()).sets)).toContain(idOf(0, 0));
    await updateStatus(deps, id, { status: "paused" }, receiver);
    expect(Object.keys((await poll({ maxEvents: 1 })).sets)).toHaveLength(1);
  });
});

describe("a poll that may wait", () => {
  test("waits neither for events that it does not want, nor where the response has some", async () => {
    useClock();
    const { poll, hints } = await openPolls(1);
    expect(await poll({ maxEvents: 0, returnImmediately: false })).toMatchObject({ sets: {} });
    expect(Object.keys((await poll({ returnImmediately: false })).sets)).toHaveLength(1);
    expect(hints.size).toBe(0);
  });

  test("has the response of twenty seconds without an event, and of a service that stops", async () => {
    const pass = useClock();
    const { poll, stopping, hints } = await openPolls(0);
    let replied = 0;
    const waiting = () => void poll({ returnImmediately: false }).then(() => replied++);
    waiting();
    await pass(19_999);
    expect([replied, hints.size]).toEqual([0, 1]);
    await pass(1);
    expect([replied, hints.size]).toEqual([1, 0]);
    waiting();
    await pass(10);
    stopping.abort();
    await pass(0);
    expect([replied, hints.size]).toEqual([2, 0]);
  });

  test("reads its stream again after four seconds, so that a pause holds within five", async () => {
    const pass = useClock();
    const { poll, deps, id } = await openPolls(0);
    await pass(7_000);
    const response = poll({ returnImmediately: false });
    let replied = false;
    void response.then(() => {
      replied = true;
    });
    await pass(10);
    await setSubscriptionState(deps, id, "paused", operator);
    await pass(3_000);
    expect(replied).toBe(false);
    await pass(1_000);
    expect(Object.values((await response).sets)[0]).toContain("stream-updated");
  });

  test("has its response at once where too many wait, and polls that do not wait give no place back", async () => {
    const pass = useClock();
    const { poll, hints } = await openPolls(0);
    const waiting = Array.from({ length: 16 }, () => poll({ returnImmediately: false }));
    await pass(10);
    await poll();
    expect(await poll({ returnImmediately: false })).toMatchObject({ sets: {} });
    expect(hints.size).toBe(16);
    await pass(20_000);
    await Promise.all(waiting);
  });

  test("gives its place to others in the end", async () => {
    const pass = useClock();
    const { poll, hints } = await openPolls(0);
    for (let times = 0; times < 17; times++) {
      void poll({ returnImmediately: false });
      await pass(0);
      expect(hints.size).toBe(1);
      await pass(20_000);
      expect(hints.size).toBe(0);
    }
  });
});
