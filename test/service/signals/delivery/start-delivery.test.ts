/** When deliveries run: a round each second, and at once where a session has ended. */
import { expect, onTestFinished, test, vi } from "vitest";
import type { SessionId } from "../../../../src/service/session/model.ts";
import type { SessionStore } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import type { DeliveryDeps } from "../../../../src/service/signals/delivery/ports.ts";
import { startDelivery } from "../../../../src/service/signals/delivery/start-delivery.ts";
import { quiet } from "../managed-world.ts";
import { MemoryStore } from "./memory-store.ts";

type Listener = Parameters<SessionStore["onRevocation"]>[0];

/** Starts deliveries to one subscription. The test moves the clock, and sees how often subscriptions and partitions are read. */
function start() {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const store = new MemoryStore();
  store.add("one");
  const { log, subscriptions } = store.seenBy({ alive: true });
  const seen = { ends: 0, sent: 0, closed: 0, asked: [] as unknown[] };
  const listeners = new Set<Listener>();
  let reply: Promise<void> | undefined;
  const deps: DeliveryDeps = {
    subscriptions,
    log: {
      ...{ partitions: log.partitions, lease: log.lease, release: log.release, cursors: log.cursors },
      ...{ read: log.read, advance: log.advance, pass: log.pass, positions: log.positions },
      ...{ oldestWaiting: log.oldestWaiting, ofSubject: log.ofSubject },
      partitionOf(hint) {
        seen.asked.push(hint);
        return 1;
      },
      async ends() {
        seen.ends++;
        await reply;
        return log.ends();
      },
    },
    holder: "one",
    issuer: "https://auth.example",
    signClaims: () => "",
    openSecret: (sealed) => sealed,
    sender: {
      async send() {
        seen.sent++;
        return { ok: true, status: 200 };
      },
      close: () => void seen.closed++,
    },
    store: {
      shiftMs: () => 0,
      onRevocation(listener) {
        listeners.add(listener);
        return () => listeners.delete(listener);
      },
    },
    clock: () => store.now,
    wallClock: () => wallMs(store.now),
    fraction: () => 0,
    events: { onAttempt() {}, onPause() {}, onLoss() {}, onGivenUp() {}, onFailure() {} },
  };
  const stop = startDelivery(deps);
  return {
    ...{ store, seen, listeners, stop },
    async pass(ms: number) {
      store.now += ms;
      await vi.advanceTimersByTimeAsync(ms);
      await quiet();
    },
    /** Lets rounds wait until the returned function is called. */
    hold() {
      const { promise, resolve } = Promise.withResolvers<void>();
      reply = promise;
      return resolve;
    },
  };
}

test("there is a round at once, and one each second after the one before it has ended", async () => {
  const { seen, pass, hold } = start();
  await quiet();
  expect(seen.ends).toBe(1);
  await pass(999);
  expect(seen.ends).toBe(1);
  await pass(1);
  expect(seen.ends).toBe(2);
  const release = hold();
  await pass(1_000);
  await pass(5_000);
  expect(seen.ends).toBe(3);
  release();
  await quiet();
  await pass(1_000);
  expect(seen.ends).toBe(4);
});

test("the end of a session is sent without waiting for a round", async () => {
  const { store, seen, listeners } = start();
  await quiet();
  store.append(1);
  const hint = { sid: "session-1" as SessionId };
  for (const listener of listeners) listener([hint] as unknown as Parameters<Listener>[0]);
  await quiet();
  expect([seen.sent, seen.asked, seen.ends]).toEqual([1, [hint], 1]);
});

test("a stop ends rounds and hints, releases the leases, and then closes the connections", async () => {
  const { store, seen, listeners, stop, pass } = start();
  await quiet();
  await stop();
  expect([listeners.size, seen.closed]).toEqual([0, 1]);
  await pass(10_000);
  expect(seen.ends).toBe(1);
  const { log } = store.seenBy({ alive: true });
  store.now = 1;
  expect(await log.lease([0, 1], "other", 1_000)).toHaveLength(2);
});

test("a stop waits for the round under way, and no other follows", async () => {
  const { seen, stop, pass, hold } = start();
  await quiet();
  const release = hold();
  await pass(1_000);
  let stopped = false;
  const stopping = stop().then(() => {
    stopped = true;
  });
  await quiet();
  expect([stopped, seen.closed]).toEqual([false, 0]);
  release();
  await stopping;
  await pass(5_000);
  expect([seen.ends, seen.closed, vi.getTimerCount()]).toEqual([2, 1, 0]);
});

test("connections are closed although the leases cannot be released", async () => {
  const { store, seen, stop } = start();
  await quiet();
  store.available = false;
  await expect(stop()).rejects.toThrow("not available");
  expect(seen.closed).toBe(1);
});
