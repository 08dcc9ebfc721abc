/** Tests turns, the unit in which a process measures the time it has run, on the real event loop. The tests block the loop at times. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { afterEach, expect, test } from "vitest";
import { afterReading, patientTimeout } from "../../../src/platform/clock/after-reading.ts";
import { steadyClock, TURN_MS, Turns } from "../../../src/platform/clock/turns.ts";
import { Loop } from "./loop.ts";

const cleanUp: (() => void)[] = [];
afterEach(() => {
  for (const step of cleanUp.splice(0)) step();
});

/** Opens a connection within this process. What one side writes reaches the system at once, but is not read yet. */
async function connection() {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
  const [[accepted]] = (await Promise.all([once(server, "connection"), once(client, "connect")])) as [
    [Socket],
    unknown,
  ];
  cleanUp.push(() => {
    client.destroy();
    accepted.destroy();
    server.close();
  });
  let received = "";
  accepted.setEncoding("utf8").on("data", (text: string) => {
    received += text;
  });
  return { client, accepted, received: () => received };
}

/** Resolves just before the next iteration of the event loop runs its timers. */
const beforeTimers = () => new Promise<void>((resolve) => setImmediate(resolve));

function holdUp(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

function followed() {
  const turns = new Turns();
  const next = () =>
    new Promise<void>((resolve) => {
      const stop = turns.follow(() => {
        stop();
        resolve();
      });
    });
  cleanUp.push(turns.follow(() => {}));
  return { turns, next };
}

test("a turn ends when everything has been read that had arrived before it", async () => {
  const { client, received } = await connection();
  const { next } = followed();
  let [written, cameSoon] = ["", false];
  // The data must be written before the next turn begins. If the system suspended this process in between, that turn may have begun
  // already, so the test writes again.
  while (!cameSoon) {
    await next();
    const turnedAt = steadyClock();
    await beforeTimers();
    client.write("came in time");
    written += "came in time";
    cameSoon = steadyClock() - turnedAt < TURN_MS / 2;
  }
  expect(received()).not.toBe(written);
  holdUp(3 * TURN_MS);
  await next();
  expect(received()).toBe(written);
});

test("however long the process is held up, that is one turn", async () => {
  const { turns, next } = followed();
  await next();
  const before = turns.ranMs();
  holdUp(10 * TURN_MS);
  await next();
  expect(turns.ranMs() - before).toBe(TURN_MS);
});

test("what is read after the process was held up may be as old; what is read a turn later is not", async () => {
  const { client, accepted } = await connection();
  const { turns, next } = followed();
  await next();
  await beforeTimers();
  const writtenAt = steadyClock();
  client.write("old");
  holdUp(5 * TURN_MS);
  await once(accepted, "data");
  expect(turns.readUntilMs).toBeLessThanOrEqual(writtenAt);
  expect(turns.behindMs()).toBeGreaterThanOrEqual(5 * TURN_MS);
  const resumedAt = steadyClock();
  await next();
  await next();
  expect(turns.readUntilMs).toBeGreaterThanOrEqual(resumedAt);
});

test("turns are counted while there are followers", async () => {
  const turns = new Turns();
  let calls = 0;
  const count = () => void calls++;
  const stops = [turns.follow(count), turns.follow(count)];
  const { next } = followed();
  await next();
  await next();
  const [first, second] = stops;
  const once = calls;
  expect(once).toBeGreaterThanOrEqual(2);
  first?.();
  await next();
  await next();
  expect(calls).toBeGreaterThan(once);
  second?.();
  const [ended, ran] = [calls, turns.ranMs()];
  await next();
  await next();
  expect([calls, turns.ranMs()]).toEqual([ended, ran]);
});

/** Creates turns on a model of the event loop, which iterates only when the test calls it. */
function modelled() {
  const loop = new Loop();
  const turns = new Turns(loop);
  const goRound = (ms: number, times = 1) => {
    for (let time = 0; time < times; time++) {
      loop.nowMs += ms;
      loop.iterate(() => {});
    }
  };
  return { loop, turns, goRound };
}

test.each([
  [0, 1],
  [1, 2],
  [TURN_MS, 2],
  [TURN_MS + 1, 3],
  [20 * TURN_MS, 21],
])("%d ms are over once %d turns have ended, the one in which they began among them", (ms, count) => {
  const { turns, goRound } = modelled();
  let calls = 0;
  turns.after(ms, () => calls++);
  goRound(TURN_MS, count - 1);
  expect(calls).toBe(0);
  goRound(100 * TURN_MS);
  expect(calls).toBe(1);
  goRound(TURN_MS, 5);
  expect(calls).toBe(1);
  expect(turns.ranMs()).toBe(count * TURN_MS);
});

test("what is cancelled in time is not called", () => {
  const { turns, goRound } = modelled();
  let calls = 0;
  const cancel = turns.after(TURN_MS, () => calls++);
  goRound(TURN_MS);
  cancel();
  goRound(TURN_MS, 5);
  expect(calls).toBe(0);
});

test("time in which nobody followed is no time that anything has waited", () => {
  const { loop, turns, goRound } = modelled();
  turns.follow(() => {})();
  loop.nowMs += 60_000;
  expect(turns.behindMs()).toBe(60_000);
  const stop = turns.follow(() => {});
  expect([turns.behindMs(), turns.readUntilMs]).toEqual([0, 60_000]);
  loop.nowMs += 10;
  turns.follow(() => {});
  expect(turns.behindMs()).toBe(10);
  stop();
  goRound(TURN_MS);
  // A turn reads the data that arrived before it began. Data that arrives during the turn is read by the next one.
  loop.nowMs += 7;
  expect([turns.behindMs(), turns.behindMs(60_000)]).toEqual([7, TURN_MS + 17]);
});

test("a patient timeout gives up nothing that is there to read", async () => {
  const { client, accepted } = await connection();
  let hasGivenUp = false;
  const cancel = patientTimeout(() => {
    hasGivenUp = true;
  }, TURN_MS);
  accepted.once("data", cancel);
  await beforeTimers();
  client.write("came in time");
  holdUp(2 * TURN_MS);
  await once(accepted, "data");
  await new Promise<void>(afterReading);
  await new Promise<void>(afterReading);
  expect(hasGivenUp).toBe(false);
});

test("a patient timeout gives up silence, and nothing once it is cancelled", async () => {
  const given: string[] = [];
  const cancel = patientTimeout(() => given.push("cancelled"), 1);
  cancel();
  // The delay is longer than `setTimeout` of Node supports, which would call the function at once.
  patientTimeout(() => given.push("too early"), 2 ** 31);
  await new Promise<void>((resolve) => {
    patientTimeout(() => {
      given.push("silent");
      resolve();
    }, 5);
    const running = setInterval(() => {}, 1_000);
    cleanUp.push(() => clearInterval(running));
  });
  expect(given).toEqual(["silent"]);
});
