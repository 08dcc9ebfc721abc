import { expect, test } from "vitest";
import type { SessionId } from "../../../src/service/session/model.ts";
import { storeMs, wallMs } from "../../../src/service/session/time.ts";
import { type Destination, Dispatch } from "../../../src/service/signals/delivery/dispatch.ts";
import { Lane } from "../../../src/service/signals/delivery/lane.ts";
import type { DeliveryDeps } from "../../../src/service/signals/delivery/ports.ts";
import { signalId } from "../../../src/service/signals/model.ts";
import type { Cursor } from "../../../src/service/signals/ports.ts";
import type { Sender } from "../../../src/service/signals/send/sender.ts";

const SUBSCRIPTIONS = 6;
const SIGNALS = 8;

/** Returns a subscription whose receiver never responds. By default it has as many signals as may be sent to one receiver at once. */
function destination(name: string, count = SIGNALS): Destination {
  const lane = new Lane();
  lane.open(0, "0" as Cursor);
  const signals = Array.from({ length: count }, (_, at) => {
    const ending = { sessionId: `${name}-${at}` as SessionId, reason: "logout", endedAt: storeMs(at) } as const;
    return { signal: { id: signalId(ending), ...ending }, cursor: String(at + 1) as Cursor };
  });
  for (const line of lane.lines) lane.add(line, signals, false, {});
  const sealedSecret = `whsec_${"A".repeat(32)}`;
  const target = { kind: "webhook", endpoint: `https://${name}.example/`, sealedSecret } as const;
  return { lane, subscription: { id: name, ...target, filter: {}, audience: [], state: "active" }, recording: false };
}

function openDispatch(respond: Sender["send"] = () => new Promise<never>(() => {})) {
  const state = { nowMs: 0, begun: 0 };
  const deps: Partial<DeliveryDeps> = {
    clock: () => state.nowMs,
    fraction: () => 0,
    wallClock: () => wallMs(state.nowMs),
    issuer: "https://auth.example",
    signClaims: () => "",
    openSecret: (sealed) => sealed,
    events: { onAttempt() {}, onFailure() {}, onLoss() {}, onPause() {} },
    store: { onRevocation: () => () => {}, shiftMs: () => 0 },
    sender: {
      send(request) {
        state.begun++;
        return respond(request);
      },
      close() {},
    },
  };
  return { state, dispatch: new Dispatch(deps as DeliveryDeps, { onRoom() {}, async onPaused() {} }) };
}

const turn = () => new Promise((resolve) => setImmediate(resolve));

/** Returns how many requests begin in a turn of the event loop that is late by this many ms. */
async function begunWhenLate(lateMs: number): Promise<number> {
  const { state, dispatch } = openDispatch();
  for (let at = 0; at < SUBSCRIPTIONS; at++) dispatch.wake(destination(`subscription${at}`));
  state.nowMs = lateMs;
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
  expect([looks, state.begun]).toEqual([1, 0]);
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
