import { describe, expect, test } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { storeMs, wallMs } from "../../../../src/service/session/time.ts";
import { type Destination, Dispatch } from "../../../../src/service/signals/delivery/dispatch.ts";
import { Lane } from "../../../../src/service/signals/delivery/lane.ts";
import type { Item } from "../../../../src/service/signals/delivery/line.ts";
import type { DeliveryDeps } from "../../../../src/service/signals/delivery/ports.ts";
import { signalId } from "../../../../src/service/signals/model.ts";
import type { Cursor, SubscriptionStore } from "../../../../src/service/signals/ports.ts";
import type { Sender, SendResult } from "../../../../src/service/signals/send/sender.ts";
import { quiet } from "../managed-world.ts";

const SUBSCRIPTIONS = 6;
const SIGNALS = 8;

/** Returns a subscription whose receiver never responds. By default it has as many signals as may be sent to one receiver at once. */
function destination(name: string, count = SIGNALS): Destination {
  const lane = new Lane();
  lane.open(0, "0" as Cursor);
  const signals = Array.from({ length: count }, (_, at) => {
    const ending = { sessionId: `${name}-${at}` as SessionId, reason: "logout", happenedAt: storeMs(at) } as const;
    return { signal: { id: signalId(ending), ...ending }, cursor: String(at + 1) as Cursor };
  });
  for (const line of lane.lines) lane.add(line, signals, false, {});
  const sealedSecret = `whsec_${"A".repeat(32)}`;
  const target = { kind: "webhook", endpoint: `https://${name}.example/`, sealedSecret } as const;
  return { lane, subscription: { id: name, ...target, filter: {}, audience: [], state: "active" }, recording: false };
}

function openDispatch(respond: Sender["send"] = () => new Promise<never>(() => {})) {
  const state = { nowMs: 1_000, begun: 0, turns: 0 };
  const attempts: unknown[] = [];
  const recorded: unknown[] = [];
  const failures: unknown[] = [];
  const hints: unknown[] = [];
  const paused: unknown[] = [];
  const store = { record: async (): Promise<boolean> => true, setState: async (): Promise<boolean> => true };
  const deps: Partial<DeliveryDeps> = {
    clock() {
      state.turns++;
      return state.nowMs;
    },
    fraction: () => 0.5,
    wallClock: () => wallMs(state.nowMs),
    issuer: "https://auth.example",
    signClaims: () => "",
    openSecret: (sealed) => sealed,
    events: {
      onAttempt: (...attempt) => void attempts.push(attempt),
      onFailure: (error) => void failures.push(error),
      onLoss() {},
      onGivenUp() {},
      onPause: (...pause) => void paused.push(pause),
    },
    subscriptions: {
      recordAttempt(id, failure) {
        recorded.push([id, failure]);
        return store.record();
      },
      setState(...change) {
        paused.push(change);
        return store.setState();
      },
    } as Partial<SubscriptionStore> as SubscriptionStore,
    store: {
      onRevocation: () => () => {},
      shiftMs: (place) => (place !== undefined && "sid" in place && place.sid === "one-0" ? 7 : 0),
    },
    sender: {
      send(request) {
        state.begun++;
        return respond(request);
      },
      close() {},
    },
  };
  const dispatch = new Dispatch(deps as DeliveryDeps, {
    onRoom: ({ partition }) => void hints.push(partition),
    onPaused: async ({ subscription }) => void paused.push(subscription.id),
  });
  return { state, dispatch, attempts, recorded, failures, hints, paused, store };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Returns how many requests begin in a turn of the event loop that is late by this many ms. */
async function begunWhenLate(lateMs: number): Promise<number> {
  const { state, dispatch } = openDispatch();
  for (let at = 0; at < SUBSCRIPTIONS; at++) dispatch.wake(destination(`subscription${at}`));
  state.nowMs += lateMs;
  await turn();
  return state.begun;
}

test("a turn begins few requests, and as many more as it came late: there are few turns when the thread is busy", async () => {
  expect(await begunWhenLate(0)).toBe(8);
  expect(await begunWhenLate(8)).toBe(8);
  expect(await begunWhenLate(20)).toBe(20);
  expect(await begunWhenLate(32)).toBe(32);
});

test("however late a turn comes, it begins no more than 32 requests", async () => {
  expect(await begunWhenLate(5_000)).toBe(32);
});

test("a receiver that got only one request in a turn gets the others in the next one, although none has ended", async () => {
  const { state, dispatch } = openDispatch();
  dispatch.wake(destination("first", 7));
  dispatch.wake(destination("second", 5));
  await turn();
  expect(state.begun).toBe(8);
  await turn();
  expect(state.begun).toBe(12);
});

test("a receiver that has nothing to get is not looked at again", async () => {
  const { state, dispatch } = openDispatch();
  const idle = destination("idle", 0);
  let looks = 0;
  const { take } = idle.lane;
  idle.lane.take = (...args) => {
    looks++;
    return take.apply(idle.lane, args);
  };
  dispatch.wake(idle);
  for (let time = 0; time < 3; time++) await turn();
  // The clock is read when the turn is scheduled and when it begins.
  expect([looks, state.begun, state.turns]).toEqual([1, 0, 2]);
});

test("a stop waits for the requests under way", async () => {
  const response = Promise.withResolvers<{ readonly ok: true; readonly status: number }>();
  const { state, dispatch } = openDispatch(() => response.promise);
  dispatch.wake(destination("slow", 1));
  await turn();
  let isStopped = false;
  const stopped = dispatch.stop().then(() => {
    isStopped = true;
  });
  await turn();
  expect([state.begun, isStopped]).toEqual([1, false]);
  response.resolve({ ok: true, status: 200 });
  await stopped;
});

test("a receiver for which a turn has no request left gets its signals in the next one", async () => {
  const { state, dispatch } = openDispatch();
  for (const name of ["first", "second"]) dispatch.wake(destination(name));
  await turn();
  await turn();
  expect(state.begun).toBe(16);
});

test("a stop begins no request that waits for its turn, and none later", async () => {
  const { state, dispatch } = openDispatch();
  dispatch.wake(destination("waits"));
  await dispatch.stop();
  await turn();
  dispatch.wake(destination("late"));
  await turn();
  expect(state.begun).toBe(0);
});

const accepted: SendResult = { ok: true, status: 200 };
const failed: SendResult = { ok: true, status: 500 };

describe("a response", () => {
  test("makes room for the next signal, and is reported with the time since the session has ended", async () => {
    const responses: PromiseWithResolvers<SendResult>[] = [];
    const { state, dispatch, attempts, recorded, hints } = openDispatch(() => {
      const response = Promise.withResolvers<SendResult>();
      responses.push(response);
      return response.promise;
    });
    dispatch.wake(destination("one", 9));
    await quiet();
    expect(state.begun).toBe(8);
    responses[0]?.resolve(accepted);
    await quiet();
    expect([state.begun, attempts]).toEqual([9, [["webhook", undefined, 1_000 - 7]]]);
    responses[1]?.resolve(accepted);
    await quiet();
    expect(attempts[1]).toEqual(["webhook", undefined, 999]);
    // Nothing has failed, and the log has no more signals.
    expect([recorded, hints]).toEqual([[], []]);
  });

  test("asks for more signals where the log has some, as long as the partition is read here", async () => {
    const { dispatch, hints } = openDispatch(async () => accepted);
    const more = destination("more", 1);
    for (const line of more.lane.lines) line.more = true;
    dispatch.wake(more);
    await quiet();
    expect(hints).toEqual([0]);
    const response = Promise.withResolvers<SendResult>();
    const closed = openDispatch(() => response.promise);
    const lost = destination("closed", 1);
    for (const line of lost.lane.lines) line.more = true;
    closed.dispatch.wake(lost);
    await quiet();
    lost.lane.closeAll();
    response.resolve(accepted);
    await quiet();
    expect(closed.hints).toEqual([]);
  });

  test("that is a failure is stored, and so is the first success after it", async () => {
    const results = [accepted, failed, accepted, accepted];
    const { state, dispatch, recorded } = openDispatch(async () => results.shift() ?? accepted);
    for (const name of ["before", "fails"]) {
      dispatch.wake(destination(name, 1));
      await quiet();
    }
    const at = state.nowMs;
    expect(recorded).toEqual([["fails", { error: "server_error", at }]]);
    const one = destination("fails", 3);
    one.lane.settle(one.lane.take(0, 1)[0] as Item, "timeout", 0, 1);
    dispatch.wake(one);
    await quiet();
    expect(recorded.slice(1)).toEqual([["fails", undefined]]);
  });

  test("is not stored while another one of the subscription is", async () => {
    const stored = Promise.withResolvers<boolean>();
    const { state, dispatch, recorded, store, failures } = openDispatch(async () => failed);
    store.record = () => stored.promise;
    const one = destination("one", 3);
    dispatch.wake(one);
    await quiet();
    expect([state.begun, recorded.length]).toEqual([3, 1]);
    stored.reject(new Error("out"));
    await quiet();
    expect(failures).toEqual([new Error("out")]);
    state.nowMs += 1_000;
    store.record = async () => true;
    dispatch.wake(one);
    await quiet();
    expect(recorded.length).toBeGreaterThan(1);
  });
});

describe("a receiver that wants no more signals", () => {
  const gone: SendResult = { ok: true, status: 410 };
  const change = ["one", { state: "paused", because: "receiver" }, { state: "active" }];

  test("is paused, and then reported", async () => {
    const { dispatch, paused } = openDispatch(async () => gone);
    dispatch.wake(destination("one", 1));
    await quiet();
    expect(paused).toEqual([change, "one", ["one", "receiver"]]);
  });

  test("is not reported where an operator has paused it in the meantime", async () => {
    const { dispatch, paused, store } = openDispatch(async () => gone);
    store.setState = async () => false;
    dispatch.wake(destination("one", 1));
    await quiet();
    expect(paused).toEqual([change, "one"]);
  });

  test("is paused by a later failure if the store is away", async () => {
    const { dispatch, paused, failures, store } = openDispatch(async () => gone);
    store.setState = async () => Promise.reject(new Error("out"));
    dispatch.wake(destination("one", 1));
    await quiet();
    expect([paused, failures]).toEqual([[change], [new Error("out")]]);
  });
});
