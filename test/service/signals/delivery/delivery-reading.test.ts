/** When an instance reads the log, and what becomes of its signals when it loses a lease, a position or a subscription. */
import { describe, expect, test } from "vitest";
import type { Subscription } from "../../../../src/service/signals/model.ts";
import type { SignalLog } from "../../../../src/service/signals/ports.ts";
import { type Behaviour, createWorld } from "./delivery-world.ts";

type Call = keyof SignalLog;

/** Opens a store with a subscription, and one instance. The test sees each call of the log, can replace its result, or let it wait. */
function openLog(behaviour: Behaviour = "accept", { empty = false } = {}) {
  const world = createWorld({ behaviour });
  const { store } = world;
  if (!empty) store.add("one");
  const calls: (readonly [Call, ...unknown[]])[] = [];
  const replaced: { [Name in Call]?: (result: unknown, ...args: never[]) => unknown } = {};
  const waits = new Map<Call, Promise<void>>();
  const seenBy = store.seenBy.bind(store);
  store.seenBy = (life) => {
    const seen = seenBy(life);
    const log = new Proxy(seen.log, {
      get(target, name: Call) {
        const member: unknown = Reflect.get(target, name);
        if (typeof member !== "function") return member;
        return async (...args: readonly unknown[]) => {
          calls.push([name, ...args]);
          const result: unknown = await member(...args);
          await waits.get(name);
          const replacement = replaced[name];
          return replacement === undefined ? result : replacement(result, ...(args as never[]));
        };
      },
    });
    return { ...seen, log };
  };
  const instance = world.instance();
  const taken = (name: Call) => calls.filter(([one]) => one === name).map(([, ...args]) => args);
  return {
    ...{ world, store, instance, replaced },
    /** Returns the arguments of the calls since the last look at them. */
    calls(name: Call) {
      const args = taken(name);
      for (let at = calls.length - 1; at >= 0; at--) if (calls[at]?.[0] === name) calls.splice(at, 1);
      return args;
    },
    /** Lets the calls of a name wait for the returned function. */
    hold(name: Call) {
      const { promise, resolve } = Promise.withResolvers<void>();
      waits.set(name, promise);
      return async () => {
        waits.delete(name);
        resolve();
        await world.quiet();
      };
    },
    async pass(ms: number) {
      for (const end = store.now + ms; store.now < end; ) {
        store.now += Math.min(1_000, end - store.now);
        await instance.round();
      }
    },
    receiptsOf: (id: string) => world.receipts.filter((receipt) => receipt.id === id).length,
    change: (id: string, changes: Partial<Subscription>) =>
      store.subscriptions.set(id, { ...store.subscriptions.get(id), ...changes } as Subscription),
  };
}

describe("leases", () => {
  test("are not taken without a subscription, and nothing is read", async () => {
    const { calls, pass, world } = openLog("accept", { empty: true });
    await pass(10_000);
    expect([calls("lease"), calls("ends"), calls("cursors"), calls("read"), world.failures]).toEqual([
      [],
      [],
      [],
      [],
      [],
    ]);
  });

  test("of all partitions are extended every three seconds", async () => {
    const { calls, instance, store } = openLog();
    await instance.round();
    expect(calls("lease")).toEqual([[[0, 1], "instance0", 10_000]]);
    store.now = 2_999;
    await instance.round();
    expect(calls("lease")).toEqual([]);
    store.now = 3_000;
    await instance.round();
    expect(calls("lease")).toHaveLength(1);
  });

  test("that another instance has got end the work on their partitions alone, and that of signals that wait", async () => {
    const { replaced, store, world, pass, receiptsOf, instance } = openLog("hold");
    await instance.round();
    const mine = Array.from({ length: 12 }, () => store.append(1).id);
    // Eight requests run at a time, of different sessions.
    const lost = Array.from({ length: 12 }, (_, at) => store.append(2 * at).id);
    await instance.round();
    expect(world.receipts).toHaveLength(8);
    replaced.lease = (leases) => (leases as { partition: number }[]).filter(({ partition }) => partition === 1);
    await pass(3_000);
    world.behaviour = () => "accept";
    world.release();
    await pass(1_000);
    const late = store.append(40).id;
    instance.delivery.hint(0);
    await pass(3_000);
    expect(lost.filter((id) => receiptsOf(id) > 0).length).toBeLessThan(9);
    expect([receiptsOf(late), mine.map(receiptsOf)]).toEqual([0, Array(12).fill(1)]);
    expect(world.failures).toEqual([]);
    // It gets the lease back, and goes on where the cursor is.
    delete replaced.lease;
    await pass(4_000);
    expect([receiptsOf(late), lost.map((id) => receiptsOf(id) > 0)]).toEqual([1, Array(12).fill(true)]);
  });

  test("that another instance has had in between begin anew at the cursor", async () => {
    const { replaced, store, pass, receiptsOf, calls } = openLog();
    await pass(1_000);
    const { id } = store.append(0);
    await pass(1_000);
    calls("cursors");
    // The other instance has delivered the signal as well, and more.
    const others = [store.append(0).id, store.append(0).id];
    store.cursors[0]?.set("one", 3);
    replaced.lease = (leases) => (leases as { fence: number }[]).map((lease) => ({ ...lease, fence: lease.fence + 1 }));
    replaced.advance = () => ({ ok: true });
    await pass(3_000);
    expect(calls("cursors")).toEqual([[0], [1]]);
    expect([receiptsOf(id), others.map(receiptsOf)]).toEqual([1, [expect.any(Number), expect.any(Number)]]);
  });

  test("that end while cursors are read open nothing", async () => {
    const { hold, store, world, instance, receiptsOf, calls, pass } = openLog();
    const release = hold("cursors");
    const { id } = store.append(0);
    await instance.round();
    expect(calls("cursors")).toHaveLength(2);
    store.now = 10_000;
    store.available = false;
    await instance.round();
    world.failures.splice(0);
    await release();
    store.available = true;
    expect([calls("read"), receiptsOf(id), world.failures]).toEqual([[], 0, []]);
    // Another instance delivers the signal before this one has the lease again.
    store.cursors[0]?.set("one", 1);
    await pass(3_000);
    expect([calls("cursors").length, receiptsOf(id)]).toEqual([2, 0]);
  });

  test("are released by an instance that stops, which reads no more", async () => {
    const { store, world, instance, calls, pass } = openLog();
    await pass(1_000);
    await instance.delivery.stop();
    calls("read");
    store.append(0);
    instance.delivery.hint(0);
    await world.quiet();
    expect([calls("read"), calls("release")]).toEqual([[], [[[expect.anything(), expect.anything()]]]]);
  });

  test("that end while the cursors of many subscriptions are stored are no failure", async () => {
    const { hold, store, world, instance, pass, calls } = openLog();
    for (let at = 0; at < 20; at++) store.add(`more-${at}`);
    await pass(1_000);
    for (const session of [0, 1]) store.append(session);
    await pass(1_000);
    const release = hold("advance");
    const flushed = instance.delivery.flush();
    await world.quiet();
    store.now = 12_000;
    store.available = false;
    await instance.round();
    store.available = true;
    world.failures.splice(0);
    await release();
    await expect(flushed).resolves.toBeUndefined();
    // Those that were under way, and no others.
    expect(calls("advance")).toHaveLength(16);
  });
});

describe("readings", () => {
  test("of a log without news are none", async () => {
    const { store, calls, pass } = openLog();
    await pass(2_000);
    calls("read");
    calls("cursors");
    await pass(20_000);
    expect([calls("read"), calls("cursors")]).toEqual([[], []]);
    store.append(0);
    await pass(5_000);
    expect(calls("read")).toHaveLength(1);
  });

  test("of a partition that another instance has follow no hint", async () => {
    const { store, calls, instance } = openLog("accept", { empty: true });
    await instance.round();
    store.append(0);
    instance.delivery.hint(0);
    expect(calls("read")).toEqual([]);
  });

  test("of one partition follow each other, and a hint during one causes one more", async () => {
    const { store, world, calls, pass, hold, instance, receiptsOf } = openLog();
    await pass(1_000);
    const release = hold("read");
    store.append(0);
    calls("read");
    instance.delivery.hint(0);
    await world.quiet();
    const { id } = store.append(0);
    for (let times = 0; times < 3; times++) instance.delivery.hint(0);
    await world.quiet();
    expect(calls("read")).toHaveLength(1);
    await release();
    expect([calls("read").length, receiptsOf(id)]).toEqual([1, 1]);
  });

  test("that fail after a hint are made again in the next round", async () => {
    const { store, world, pass, hold, replaced, instance, receiptsOf } = openLog();
    await pass(1_000);
    const release = hold("read");
    instance.delivery.hint(0);
    await world.quiet();
    const { id } = store.append(0);
    await instance.round();
    let reads = 0;
    replaced.read = (result) => {
      if (++reads === 2) throw new Error("out");
      return result;
    };
    await release();
    delete replaced.read;
    expect([receiptsOf(id), world.failures]).toEqual([0, [new Error("out")]]);
    await pass(1_000);
    expect(receiptsOf(id)).toBe(1);
  });

  test("are of sixteen signals, and of more where a filter leaves some out", async () => {
    const { store, calls, pass } = openLog();
    await pass(1_000);
    const limits = async () => {
      store.append(0);
      await pass(1_000);
      return new Set(calls("read").map(([, , limit]) => limit));
    };
    await limits();
    expect(await limits()).toEqual(new Set([16]));
    store.add("two", { filter: { reasons: ["reuse"] } });
    await pass(6_000);
    await limits();
    expect(await limits()).toEqual(new Set([256]));
  });

  test("are none for a subscription that has as many signals as it may hold, until a receiver accepts one", async () => {
    const { store, world, calls, pass } = openLog("hold");
    await pass(1_000);
    for (let at = 0; at < 40; at++) store.append(2 * at);
    await pass(2_000);
    calls("read");
    await pass(4_000);
    expect(calls("read")).toEqual([]);
    world.behaviour = () => "accept";
    world.release();
    await pass(2_000);
    expect(new Set(world.receipts.map(({ id }) => id)).size).toBe(40);
  });

  test("do not repeat for the others while one subscription has as many signals as it may hold", async () => {
    const { store, world, calls, pass, instance } = openLog("hold");
    store.add("two", { filter: { reasons: ["reuse"] } });
    await pass(1_000);
    for (let at = 0; at < 40; at++) store.append(2 * at);
    calls("read");
    instance.delivery.hint(0);
    await world.quiet();
    expect(calls("read")).toEqual([[0, "0", 256]]);
  });

  test("reach a subscription that the instance learns of after the log has become quiet", async () => {
    const { store, pass, world } = openLog();
    await pass(6_000);
    store.add("late");
    store.append(0);
    await pass(2_000);
    expect(world.receipts.map(({ to }) => to)).toEqual(["one"]);
    await pass(4_000);
    expect(world.receipts.map(({ to }) => to)).toEqual(["one", "late"]);
  });

  test("leave out a subscription without a cursor, and fail for nobody", async () => {
    const { store, pass, world, calls } = openLog();
    store.add("two");
    for (const cursors of store.cursors) cursors.delete("two");
    store.append(0);
    await pass(7_000);
    expect(world.receipts.map(({ to }) => to)).toEqual(["one"]);
    expect(calls("read").every(([, after]) => after !== undefined)).toBe(true);
    expect(world.failures).toEqual([]);
  });

  test("whose lease has ended in the meantime are dropped", async () => {
    const { store, pass, hold, instance, world, receiptsOf } = openLog();
    await pass(1_000);
    const release = hold("read");
    const { id } = store.append(0);
    instance.delivery.hint(0);
    await world.quiet();
    store.now = 12_000;
    store.available = false;
    await instance.round();
    store.available = true;
    world.failures.splice(0);
    await release();
    expect([receiptsOf(id), world.failures]).toEqual([0, []]);
  });
});

describe("subscriptions", () => {
  test("that are learnt of do not repeat the signals of others that are under way", async () => {
    const { store, world, pass, receiptsOf } = openLog("hold");
    await pass(1_000);
    const { id } = store.append(0);
    await pass(1_000);
    store.add("late");
    await pass(6_000);
    world.behaviour = () => "accept";
    world.release();
    await pass(6_000);
    expect(receiptsOf(id)).toBe(1);
    expect(store.subscriptions.get("one")).toMatchObject({ delivered: 1 });
  });

  test("that an operator pauses are sent nothing of what waits", async () => {
    const { store, world, pass, change } = openLog("hold");
    await pass(1_000);
    for (let at = 0; at < 14; at++) store.append(2 * at);
    await pass(1_000);
    change("one", { state: "paused", because: "operator" } as Partial<Subscription>);
    await pass(5_000);
    world.behaviour = () => "accept";
    world.release();
    await pass(20_000);
    expect(world.receipts).toHaveLength(8);
  });

  test("have the requests under way counted over all receivers", async () => {
    const { store, pass, instance, world } = openLog("hold");
    store.add("two");
    await pass(1_000);
    for (let at = 0; at < 3; at++) store.append(at);
    await pass(1_000);
    expect(instance.delivery.inFlight).toBe(6);
    world.release();
    await world.quiet();
    expect(instance.delivery.inFlight).toBe(0);
  });

  test("have the failures of their receivers stored", async () => {
    const { store, pass } = openLog("fail");
    await pass(1_000);
    store.append(0);
    await pass(1_000);
    expect(store.subscriptions.get("one")).toMatchObject({ failures: 1, lastError: "server_error" });
  });
});

test("a store that is away is reported, and the round after it goes on", async () => {
  const { store, world, pass, receiptsOf } = openLog();
  await pass(1_000);
  const { id } = store.append(0);
  store.available = false;
  await pass(1_000);
  expect([world.failures.length, receiptsOf(id)]).toEqual([1, 0]);
  store.available = true;
  await pass(1_000);
  expect(receiptsOf(id)).toBe(1);
});

describe("a cursor", () => {
  test("that the store has lost is read again, and nothing is lost", async () => {
    const { store, world, pass, receiptsOf } = openLog();
    await pass(1_000);
    for (let at = 0; at < 5; at++) store.append(0);
    await pass(6_000);
    // The store fails over to older data.
    store.logs[0]?.splice(2);
    store.cursors[0]?.set("one", 2);
    const { id } = store.append(0);
    await pass(6_000);
    expect([receiptsOf(id), world.losses, world.failures]).toEqual([1, [], []]);
  });

  test.each([
    ["lost", 1],
    ["rewound", 2],
  ] as const)("that could not be moved, %s, repeats what was accepted after it", async (reason, times) => {
    const { store, pass, replaced, receiptsOf } = openLog();
    store.add("two");
    await pass(1_000);
    const { id } = store.append(0);
    await pass(1_000);
    // The reply concerns one subscription, or the whole partition.
    let replies = 0;
    replaced.advance = (result, _: unknown, subscription: string) => {
      if (++replies > 1) return result;
      for (const one of reason === "lost" ? [subscription] : ["one", "two"]) store.cursors[0]?.set(one, 0);
      return { ok: false, reason };
    };
    await pass(10_000);
    expect(receiptsOf(id)).toBe(2 + times);
  });

  test("that could not be moved repeats nothing of another subscription that is under way", async () => {
    const { store, world, pass, replaced } = openLog();
    store.add("two");
    await pass(1_000);
    world.behaviour = ({ to }) => (to === "two" ? "hold" : "accept");
    store.append(0);
    await pass(1_000);
    let replies = 0;
    replaced.advance = (result) => (++replies > 1 ? result : { ok: false, reason: "lost" });
    await pass(6_000);
    world.release();
    await pass(6_000);
    expect([replies > 0, world.receipts.filter(({ to }) => to === "two").length]).toEqual([true, 1]);
  });

  test("of a loss that another instance has counted is read again, and the loss is not reported", async () => {
    const { store, world, pass, replaced, receiptsOf } = openLog();
    for (let at = 0; at < 4; at++) store.append(0);
    store.starts[0] = 3;
    replaced.advance = () => ({ ok: false, reason: "lost" });
    await pass(2_000);
    expect([world.losses, store.subscriptions.get("one")?.lastError]).toEqual([[], undefined]);
    delete replaced.advance;
    const { id } = store.append(0);
    store.cursors[0]?.set("one", 3);
    await pass(2_000);
    expect(receiptsOf(id)).toBe(1);
  });
});
