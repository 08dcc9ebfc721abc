/** Overload control in front of a real store, while the test blocks the event loop. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { TURN_MS, Turns, turns } from "../../../../src/platform/clock/turns.ts";
import { PROBES } from "../../../../src/service/api/limits/admission.ts";
import { createOverloadControl, type OverloadControl } from "../../../../src/service/api/limits/overload.ts";
import { type SessionStore, StoreBusy } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { type Backend, embeddedBackend } from "../../../support/store/backends.ts";
import { newSession, nonce, sidOf, subject } from "../../../support/store/sessions.ts";

/** The overload control refuses requests that waited for more than a quarter of the reuse interval. */
const REUSE_INTERVAL_MS = 4_000;

let backend: Backend;
let overload: OverloadControl;
let store: SessionStore;
beforeEach(async () => {
  backend = await embeddedBackend();
  overload = createOverloadControl({
    maxWaiting: 1_000,
    maxLoopDelayMs: 200,
    maxStoreDelayMs: 250,
    reuseIntervalMs: REUSE_INTERVAL_MS,
    onRefused: () => {},
  });
  store = overload.limit(await backend.open());
});
afterEach(async () => {
  overload.close();
  await backend.stop();
});

const nextTurn = () =>
  new Promise<void>((resolve) => {
    const stop = turns.follow(() => {
      stop();
      resolve();
    });
  });

function holdUp(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

const rotate = () => store.rotate(sidOf(subject()), { generation: 1, nonce: nonce(), issuedAt: storeMs(0) }, nonce());
const UNKNOWN = { ok: false, reason: "unknown" };

test("what is read right after a stall of a quarter of R is refused, and what is read a turn later is served", async () => {
  await nextTurn();
  expect(await rotate()).toEqual(UNKNOWN);
  holdUp(REUSE_INTERVAL_MS / 4 + TURN_MS);
  await expect(rotate()).rejects.toThrow(/was stalled/);
  // A login is served however long it waited, because it uses no refresh token.
  expect(await store.create(newSession(subject()), nonce(), { cap: 10 })).toMatchObject({ evicted: [] });
  await nextTurn();
  expect(await rotate()).toEqual(UNKNOWN);
});

test("what is read after a shorter stall is served", async () => {
  await nextTurn();
  holdUp(REUSE_INTERVAL_MS / 16);
  expect(await rotate()).toEqual(UNKNOWN);
});

test("each refusal is reported with its cause, each reply with its command, and turns are followed until the end", async () => {
  let turn = () => {};
  let following = 0;
  const loop = {
    clock: Object.assign(() => 0, { refresh() {} }),
    every(_: number, then: () => void) {
      turn = then;
      following++;
      return () => void following--;
    },
    afterPoll: (then: () => void) => then(),
  };
  const refused: string[] = [];
  const replies: string[] = [];
  const control = createOverloadControl(
    {
      maxWaiting: PROBES + 2,
      maxLoopDelayMs: 0,
      maxStoreDelayMs: TURN_MS,
      reuseIntervalMs: REUSE_INTERVAL_MS,
      onRefused: (cause) => refused.push(cause),
      onReply: (verb) => replies.push(verb),
    },
    new Turns(loop as never),
  );
  const { promise, resolve } = Promise.withResolvers<void>();
  const limited = control.limit({ ...store, find: () => promise } as unknown as SessionStore);
  const asked = Array.from({ length: PROBES }, () => limited.find(sidOf("x")));
  expect([control.accept(), control.waiting(), following]).toEqual([true, PROBES, 1]);
  turn();
  expect([control.accept(), refused]).toEqual([false, ["store"]]);
  await expect(limited.find(sidOf("x"))).rejects.toThrow(StoreBusy);
  expect([control.waiting(), refused]).toEqual([PROBES, ["store", "store"]]);
  resolve();
  await Promise.all(asked);
  expect([control.waiting(), replies]).toEqual([0, Array(PROBES).fill("find")]);
  control.close();
  expect(following).toBe(0);
});
