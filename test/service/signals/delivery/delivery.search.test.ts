import fc from "fast-check";
import { expect, test } from "vitest";
import { type Behaviour, createWorld } from "./delivery-world.ts";

const SUBSCRIPTIONS = ["one", "two"];

const which = fc.nat({ max: 1 });
const behaviours = fc.constantFrom<Behaviour>("accept", "accept", "fail", "lost", "hold", "unreachable", 400);
const others = fc.constantFrom("release", "outage", "lost replies", "repair", "repair");

const step = fc.oneof(
  { weight: 4, arbitrary: fc.record({ does: fc.constant("append" as const), session: fc.nat({ max: 2 }) }) },
  { weight: 6, arbitrary: fc.record({ does: fc.constant("round" as const), which }) },
  { weight: 2, arbitrary: fc.record({ does: fc.constant("kill" as const), which }) },
  {
    weight: 3,
    arbitrary: fc.record({ does: fc.constant("pass" as const), ms: fc.constantFrom(1_000, 6_000, 6_000, 31_000) }),
  },
  {
    // This step makes receivers behave in up to three ways, one after the other, so that one signal may fail several times and be sent
    // again each time.
    weight: 3,
    arbitrary: fc.record({
      does: fc.constant("receivers" as const),
      behaviours: fc.array(behaviours, { minLength: 1, maxLength: 3 }),
    }),
  },
  { weight: 2, arbitrary: fc.record({ does: others }) },
);

/**
 * Runs two instances with random rounds of deliveries, deaths, outages, lost leases and faults of receivers. @returns how often a signal
 * was repeated
 */
async function run(steps: readonly (typeof step extends fc.Arbitrary<infer T> ? T : never)[]): Promise<number> {
  const world = createWorld();
  const { store, receipts } = world;
  for (const id of SUBSCRIPTIONS) store.add(id);
  const instances = [world.instance(), world.instance()];
  let planned: readonly Behaviour[] = ["accept"];
  world.behaviour = () => planned[world.attempts % planned.length] as Behaviour;
  for (const one of steps) {
    if (one.does === "append") store.append(one.session);
    else if (one.does === "round") await instances[one.which]?.round();
    else if (one.does === "kill") {
      instances[one.which]?.kill();
      instances[one.which] = world.instance();
    } else if (one.does === "pass") store.now += one.ms;
    else if (one.does === "receivers") planned = one.behaviours;
    else if (one.does === "release") world.release();
    else if (one.does === "outage") store.available = false;
    else if (one.does === "lost replies") store.losesReplies = true;
    else Object.assign(store, { available: true, losesReplies: false });
    await world.quiet();
  }
  planned = ["accept"];
  Object.assign(store, { available: true, losesReplies: false });
  world.release();
  const all = store.logs.flat();
  const missing = () =>
    SUBSCRIPTIONS.filter((id) => all.some((signal) => !receipts.some((one) => one.to === id && one.id === signal.id)));
  // From here on no lease is lost, so an instance must also deliver the signals that it holds in memory.
  for (let turn = 0; turn < 400 && missing().length > 0; turn++) {
    store.now += 9_000;
    for (const instance of instances) await instance.round();
  }
  expect(missing()).toEqual([]);
  expect([...store.subscriptions.values()].map(({ state, deadLetters }) => [state, deadLetters])).toEqual(
    SUBSCRIPTIONS.map(() => ["active", 0]),
  );
  for (const id of SUBSCRIPTIONS) {
    const received = [...new Set(receipts.filter(({ to }) => to === id).map((one) => one.id))];
    for (const [, ofSession] of Map.groupBy(all, ({ sessionId }) => sessionId)) {
      const ids = ofSession.map((signal) => signal.id);
      expect(received.filter((one) => ids.includes(one))).toEqual(ids);
    }
  }
  return receipts.length - all.length * SUBSCRIPTIONS.length;
}

test("two instances lose nothing and keep the order of a session, whatever fails", async () => {
  let repeated = 0;
  const runs = process.env.SIGNALS === "long" ? 5_000 : 300;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40, size: "max" }), async (steps) => {
      repeated += await run(steps);
    }),
    { numRuns: runs },
  );
  // If no signal was repeated, the search has never lost a response, and has tested nothing.
  expect(repeated).toBeGreaterThan(0);
});
