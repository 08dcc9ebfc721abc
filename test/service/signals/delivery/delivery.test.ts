import { expect, test } from "vitest";
import { backoffMs, GIVE_UP_MS } from "../../../../src/service/signals/delivery/lane.ts";
import type { Subscription } from "../../../../src/service/signals/model.ts";
import { createSender } from "../../../../src/service/signals/send/sender.ts";
import { startReceiver } from "../world.ts";
import { type Behaviour, createWorld } from "./delivery-world.ts";

const HOUR_MS = 3_600_000;

type World = ReturnType<typeof createWorld>;

/** Advances the clock in steps. After each step an instance makes a round of deliveries. */
async function passTime(world: World, instance: ReturnType<World["instance"]>, ms: number, stepMs: number) {
  for (let passed = 0; passed < ms; passed += stepMs) {
    world.store.now += stepMs;
    await instance.round();
  }
}

function worldWith(behaviour: Behaviour = "accept", fraction?: number) {
  const world = createWorld({ behaviour, ...(fraction === undefined ? {} : { fraction }) });
  world.store.add("one");
  return { world, store: world.store, instance: world.instance() };
}

test("retries wait a random time, up to twice as long after each, an hour at the most", () => {
  expect([1, 2, 3, 12, 13, 1_000].map((failures) => backoffMs(failures, 1))).toEqual([
    ...[1_000, 2_000, 4_000, 2_048_000, HOUR_MS, HOUR_MS],
  ]);
  expect(backoffMs(5, 0)).toBe(0);
});

test.each<Behaviour>(["fail", "unreachable", "timeout", 302, "invalid_response"])(
  "a receiver that fails for an hour gets everything afterwards, once: %s",
  async (fault) => {
    const { world, store, instance } = worldWith();
    let now: Behaviour = fault;
    world.behaviour = () => now;
    await instance.round();
    const signals = Array.from({ length: 40 }, (_, session) => store.append(session));
    await passTime(world, instance, HOUR_MS, 9_000);
    // While the receiver fails, one signal at a time is retried at growing intervals, instead of 40 signals every second.
    expect(world.attempts).toBeLessThan(100);
    now = "accept";
    await passTime(world, instance, 2 * HOUR_MS, 9_000);
    expect(world.receipts.map(({ id }) => id).sort()).toEqual(signals.map(({ id }) => id).sort());
    expect(store.subscriptions.get("one")).toMatchObject({
      state: "active",
      delivered: 40,
      deadLetters: 0,
      failures: 0,
    });
  },
);

test("a receiver that fails for a day is paused, and after it is resumed it gets everything", async () => {
  const { world, store, instance } = worldWith("unreachable");
  await instance.round();
  const signals = [0, 1, 2].map((session) => store.append(session));
  await passTime(world, instance, GIVE_UP_MS - HOUR_MS, 60_000);
  expect(world.paused).toEqual([]);
  await passTime(world, instance, 3 * HOUR_MS, 60_000);
  expect(world.paused).toEqual([["one", "failing"]]);
  const { attempts } = world;
  await passTime(world, instance, HOUR_MS, 60_000);
  expect(world.attempts).toBe(attempts);
  world.behaviour = () => "accept";
  store.subscriptions.set("one", { ...store.subscriptions.get("one"), state: "active" } as never);
  await passTime(world, instance, 60_000, 6_000);
  expect(world.receipts.map(({ id }) => id).sort()).toEqual(signals.map(({ id }) => id).sort());
});

test("a signal that the receiver refuses again and again, while it accepts others, is a dead letter", async () => {
  const { world, store, instance } = worldWith("accept", 0);
  await instance.round();
  const refused = store.append(0);
  world.behaviour = ({ id }) => (id === refused.id ? 400 : "accept");
  for (let session = 2; session < 60; session += 2) {
    store.append(session);
    await passTime(world, instance, 6_000, 6_000);
  }
  await passTime(world, instance, 6_000, 6_000);
  expect(store.subscriptions.get("one")).toMatchObject({ state: "active", delivered: 29, deadLetters: 1 });
  expect(world.givenUp).toEqual([["one", 1]]);
});

test("a signal that the receiver refuses holds up its own session only, and a crash repeats what has overtaken it", async () => {
  const { world, store, instance } = worldWith("accept", 0.5);
  await instance.round();
  const refused = store.append(0);
  const behind = store.append(0);
  world.behaviour = ({ id }) => (id === refused.id ? 400 : "accept");
  // These signals are in the same partition as the signal that the receiver refuses.
  const others = Array.from({ length: 100 }, (_, at) => store.append(2 * at + 2));
  await passTime(world, instance, 2_000, 500);
  const ids = () => world.receipts.map(({ id }) => id);
  expect(ids().sort()).toEqual(others.map(({ id }) => id).sort());
  instance.kill();
  const next = world.instance();
  await passTime(world, next, 60_000, 1_000);
  expect(new Set(ids())).toEqual(new Set(others.map(({ id }) => id)));
  expect(ids()).toHaveLength(200);
  for (let session = 202; !ids().includes(behind.id); session += 2) {
    store.append(session);
    await passTime(world, next, 60_000, 9_000);
  }
  expect(store.subscriptions.get("one")).toMatchObject({ state: "active", deadLetters: 1 });
});

test("many refused signals hold up no other session, and are given up in the end", async () => {
  const { world, store, instance } = worldWith("accept", 0.5);
  await instance.round();
  const append = (count: number, from: number) =>
    Array.from({ length: count }, (_, at) => store.append(2 * (at + from)).id);
  // There are more signals than an instance holds in memory, so the last ones are delivered only after the first have been given up.
  const refused = new Set(append(300, 0));
  append(20, 1_000);
  for (const id of append(300, 2_000)) refused.add(id);
  append(20, 3_000);
  world.behaviour = ({ id }) => (refused.has(id) ? 400 : "accept");
  for (let hour = 0; world.receipts.length < 40; hour++) {
    expect(hour).toBeLessThan(12);
    await passTime(world, instance, HOUR_MS, 9_000);
  }
  expect(store.subscriptions.get("one")?.state).toBe("active");
  expect(store.subscriptions.get("one")?.deadLetters).toBeGreaterThan(80);
});

test("sixteen refused signals hold up nothing", async () => {
  const { world, store, instance } = worldWith("accept", 0.5);
  await instance.round();
  const refused = new Set(Array.from({ length: 40 }, (_, at) => store.append(2 * at).id));
  world.behaviour = ({ id }) => (refused.has(id) ? 400 : "accept");
  const others = Array.from({ length: 40 }, (_, at) => store.append(2 * at + 100).id);
  await passTime(world, instance, 60_000, 1_000);
  expect(world.receipts.map(({ id }) => id).sort()).toEqual(others.sort());
});

test("a receiver that refuses everything loses nothing", async () => {
  const { world, store, instance } = worldWith(401, 0);
  await instance.round();
  for (let session = 0; session < 20; session++) store.append(session);
  await passTime(world, instance, HOUR_MS, 9_000);
  expect(world.attempts).toBeGreaterThan(20);
  world.behaviour = () => "accept";
  await passTime(world, instance, HOUR_MS, 9_000);
  expect(store.subscriptions.get("one")).toMatchObject({ delivered: 20, deadLetters: 0 });
});

test("410 of a webhook pauses it: the receiver wants no more", async () => {
  const { world, store, instance } = worldWith(410);
  await instance.round();
  store.append(0);
  await passTime(world, instance, 60_000, 1_000);
  expect([world.attempts, world.paused]).toEqual([1, [["one", "receiver"]]]);
});

test.each(["operator", "receiver"] as const)(
  "what was accepted before a pause by the %s is not sent again after it",
  async (because) => {
    const { world, store, instance } = worldWith();
    await passTime(world, instance, 6_000, 1_000);
    const accepted = store.append(0);
    await instance.round();
    const one = store.subscriptions.get("one") as Subscription;
    if (because === "operator") store.subscriptions.set("one", { ...one, state: "paused", because });
    else {
      world.behaviour = () => 410;
      store.append(2);
    }
    await passTime(world, instance, 10_000, 1_000);
    expect(store.subscriptions.get("one")).toMatchObject({ state: "paused", because });
    world.behaviour = () => "accept";
    store.subscriptions.set("one", { ...(store.subscriptions.get("one") as Subscription), state: "active" });
    await passTime(world, instance, 20_000, 1_000);
    expect(world.receipts.filter(({ id }) => id === accepted.id)).toHaveLength(1);
  },
);

test("what an operator pauses while a request is under way keeps the operator's reason", async () => {
  const { world, store, instance } = worldWith();
  await instance.round();
  const one = store.subscriptions.get("one");
  if (one === undefined) throw new Error("no subscription");
  world.behaviour = () => {
    store.subscriptions.set("one", { ...one, state: "paused", because: "operator" });
    return 410;
  };
  store.append(0);
  await passTime(world, instance, 60_000, 1_000);
  expect([store.subscriptions.get("one"), world.paused]).toMatchObject([{ because: "operator" }, []]);
});

test("what the log no longer has is counted and reported, and the rest is delivered", async () => {
  const { world, store, instance } = worldWith();
  for (let i = 0; i < 10; i++) store.append(0);
  store.starts[0] = 7;
  await passTime(world, instance, 60_000, 6_000);
  expect(world.losses).toEqual([["one", 7]]);
  expect(world.receipts).toHaveLength(3);
  const counts = { delivered: 3, deadLetters: 7, lastError: "behind_retention" };
  expect(store.subscriptions.get("one")).toMatchObject(counts);
});

test("signals that wait in memory while the log loses those after them are delivered, and each other one is counted", async () => {
  const { world, store, instance } = worldWith(400, 0.5);
  await instance.round();
  const all = Array.from({ length: 2_000 }, (_, at) => store.append(2 * at).id);
  await passTime(world, instance, HOUR_MS, 2_000);
  store.starts[0] = 1_500;
  world.behaviour = () => "accept";
  await passTime(world, instance, 3 * HOUR_MS, 2_000);
  const received = new Set(world.receipts.map(({ id }) => id));
  const lost = world.losses.reduce((sum, [, count]) => sum + count, 0);
  expect(received.size).toBeGreaterThan(500);
  expect([received.size + lost, world.givenUp]).toEqual([all.length, []]);
  const { delivered = 0, deadLetters } = store.subscriptions.get("one") ?? {};
  expect([delivered, deadLetters]).toEqual([received.size, lost]);
});

test("a filter leaves signals out, and the cursor passes them", async () => {
  const { world, store, instance } = worldWith();
  store.add("two", { filter: { reasons: ["reuse"] } });
  for (let i = 0; i < 100; i++) store.append(i);
  await passTime(world, instance, 60_000, 6_000);
  expect(world.receipts.filter(({ to }) => to === "one")).toHaveLength(100);
  expect(world.receipts.filter(({ to }) => to === "two")).toHaveLength(0);
  expect(store.cursors.map((cursors) => cursors.get("two"))).toEqual([50, 50]);
});

test("what a filter leaves out is read at once, however much it is", async () => {
  const { world, store, instance } = worldWith();
  store.subscriptions.delete("one");
  store.add("two", { filter: { reasons: ["reuse"] } });
  await instance.round();
  for (let i = 0; i < 10_000; i++) store.append(i);
  await instance.round();
  const last = store.append(0, "reuse");
  await instance.round();
  await world.quiet();
  expect(world.receipts).toEqual([{ to: "two", id: last.id }]);
});

test("a slow receiver has a bounded number of requests, and others do not wait for it", async () => {
  const { world, store, instance } = worldWith();
  store.add("two");
  world.behaviour = ({ to }) => (to === "one" ? "hold" : "accept");
  for (let i = 0; i < 100; i++) store.append(i);
  await passTime(world, instance, 30_000, 6_000);
  const received = (id: string) => world.receipts.filter(({ to }) => to === id).length;
  expect([received("one"), received("two")]).toEqual([8, 100]);
});

test("who stops gives the leases back, and another instance goes on at once", async () => {
  const { world, store, instance } = worldWith();
  const other = world.instance();
  await instance.round();
  store.append(0);
  await passTime(world, instance, 1_000, 1_000);
  await instance.delivery.stop();
  store.append(2);
  await passTime(world, other, 1_000, 1_000);
  expect(world.receipts).toHaveLength(2);
});

test("who stops stores how far a receiver has come whose last response was under way", async () => {
  const { world, store, instance } = worldWith("hold");
  await instance.round();
  store.append(0);
  await passTime(world, instance, 1_000, 1_000);
  const stopped = instance.delivery.stop();
  await world.quiet();
  world.release();
  await stopped;
  expect(store.subscriptions.get("one")).toMatchObject({ delivered: 1 });
});

test("who stops while it gets no replies from the store gives the leases back nevertheless", async () => {
  const { world, store, instance } = worldWith();
  const other = world.instance();
  await instance.round();
  store.append(0);
  await passTime(world, instance, 1_000, 1_000);
  store.losesReplies = true;
  await instance.delivery.stop().catch(() => {});
  store.losesReplies = false;
  store.append(2);
  await passTime(world, other, 1_000, 1_000);
  expect(world.receipts.length).toBeGreaterThan(1);
});

test("real receivers over real sockets: 500, a redirect and silence are retried until they accept", async () => {
  const { world, store } = worldWith();
  const statuses = [500, 302, 404, 204];
  const receiver = await startReceiver((_, count) => statuses[count - 1] ?? 200);
  const sender = createSender({ allowPrivate: true });
  store.add("one", { endpoint: receiver.url });
  const instance = world.instance(sender);
  const signal = store.append(0);
  for (let turn = 0; turn < 500 && store.subscriptions.get("one")?.delivered !== 1; turn++) {
    await passTime(world, instance, 10_000, 9_000);
  }
  expect(receiver.received.map(({ headers }) => headers["webhook-id"])).toEqual(Array(4).fill(signal.id));
  sender.close();
  await receiver.close();
});

test("subscriptions are read again after four seconds", async () => {
  const { world, store, instance } = worldWith();
  await instance.round();
  store.add("late");
  const round = async (ms: number) => {
    store.now += ms;
    store.append(store.now);
    await instance.round();
    return world.receipts.filter(({ to }) => to === "late").length;
  };
  expect(await round(3_999)).toBe(0);
  expect(await round(1)).toBeGreaterThan(0);
});

test("a pause holds within five seconds, although a round takes time", async () => {
  const { world, store, instance } = worldWith();
  await instance.round();
  const one = store.subscriptions.get("one") as Subscription;
  store.subscriptions.set("one", { ...one, state: "paused", because: "operator" });
  await passTime(world, instance, 4_200, 1_050);
  store.append(1);
  await instance.round();
  await world.quiet();
  expect(world.receipts).toEqual([]);
});

test("the progress of a partition is stored once at a time", async () => {
  const { store, world } = worldWith();
  const { promise, resolve } = Promise.withResolvers<void>();
  const seenBy = store.seenBy.bind(store);
  let begun = 0;
  store.seenBy = (life) => {
    const seen = seenBy(life);
    const advance: typeof seen.log.advance = async (...args) => {
      begun++;
      await promise;
      return seen.log.advance(...args);
    };
    return { ...seen, log: { ...seen.log, advance } };
  };
  const instance = world.instance();
  await instance.round();
  for (let session = 0; session < 4; session += 2) store.append(session);
  await instance.round();
  void instance.delivery.flush();
  void instance.delivery.flush();
  await world.quiet();
  expect(begun).toBe(1);
  resolve();
  await instance.delivery.flush();
  expect(store.subscriptions.get("one")).toMatchObject({ delivered: 2 });
});

test("a lease that was not extended is held to its last millisecond, and nothing is read under it afterwards", async () => {
  const { world, store } = worldWith();
  const seenBy = store.seenBy.bind(store);
  // The reply to the request for a lease takes half a second, which the lease does not last longer for.
  store.seenBy = (life) => {
    const seen = seenBy(life);
    const lease: typeof seen.log.lease = async (...args) => {
      const leases = await seen.log.lease(...args);
      store.now += 500;
      return leases;
    };
    return { ...seen, log: { ...seen.log, lease } };
  };
  const instance = world.instance();
  // The lease is taken at 1 s, for 10 s.
  await passTime(world, instance, 2_000, 1_000);
  const receiptsAt = async (ms: number) => {
    store.now = ms;
    store.available = false;
    await instance.round();
    store.available = true;
    store.append(0);
    instance.delivery.hint(0);
    await world.quiet();
    return world.receipts.length;
  };
  expect(await receiptsAt(10_999)).toBe(1);
  expect(await receiptsAt(11_000)).toBe(1);
});

test("the cursor of a signal that was accepted is stored within five seconds", async () => {
  const { world, store, instance } = worldWith();
  await instance.round();
  store.append(0);
  await instance.round();
  expect(store.subscriptions.get("one")).toMatchObject({ delivered: 0 });
  await passTime(world, instance, 5_000, 1_000);
  expect(store.subscriptions.get("one")).toMatchObject({ delivered: 1 });
  instance.kill();
  const other = world.instance();
  await passTime(world, other, 20_000, 1_000);
  // The next instance begins behind it.
  expect(world.receipts).toHaveLength(1);
});

test("leases are extended every three seconds, so that no other instance takes a partition", async () => {
  const { world, store, instance } = worldWith();
  const other = world.instance();
  await passTime(world, instance, 1_000, 1_000);
  for (let second = 0; second < 30; second++) {
    store.append(second);
    await passTime(world, instance, 1_000, 1_000);
    await other.round();
  }
  expect(world.receipts).toHaveLength(30);
});
