import { expect, test } from "vitest";
import { FeedWakes } from "../../../../src/service/session/feed/wakes.ts";
import { inTime } from "../../../support/until.ts";

/** Creates a list of watchers that counts how often they are notified. @param costMs how much the clock advances at each notification */
function wakesWith(watchers: number, costMs: number) {
  let nowMs = 0;
  const wakes = new FeedWakes(() => nowMs);
  const woken: number[] = [];
  let onWoken = () => {};
  for (let i = 0; i < watchers; i++)
    wakes.add(() => {
      nowMs += costMs;
      woken.push(i);
      onWoken();
    });
  /** Resolves when `count` notifications of watchers have been sent in all. */
  const until = (count: number) =>
    new Promise<void>((resolve) => {
      onWoken = () => woken.length >= count && resolve();
      onWoken();
    });
  return { wakes, woken, until };
}

const turn = () => new Promise<void>((resolve) => setImmediate(resolve));

test("when nothing has happened before, watchers are woken at once", () => {
  const { wakes, woken } = wakesWith(3, 1);
  wakes.wake();
  expect(woken).toEqual([0, 1, 2]);
});

test("what happens during a round and the pause after it wakes each watcher once", async () => {
  const { wakes, woken, until } = wakesWith(2, 100);
  wakes.wake();
  for (let i = 0; i < 5; i++) wakes.wake();
  await turn();
  for (let i = 0; i < 5; i++) wakes.wake();
  expect(woken).toHaveLength(2);
  await until(4);
  await turn();
  await turn();
  expect(woken).toEqual([0, 1, 0, 1]);
  expect(wakes.count).toBe(11);
});

test("a heartbeat does not hold up the news that follow it, and news hold up a heartbeat", async () => {
  const { wakes, woken } = wakesWith(2, 100);
  wakes.beat();
  await turn();
  wakes.wake();
  expect(woken).toEqual([0, 1, 0, 1]);
  await turn();
  wakes.beat();
  await turn();
  expect(woken).toHaveLength(4);
  expect(wakes.count).toBe(3);
});

test("a round that costs nothing has no pause after it", async () => {
  const { wakes, woken } = wakesWith(1, 0);
  for (let i = 1; i <= 3; i++) {
    wakes.wake();
    expect(woken).toHaveLength(i);
    await turn();
  }
});

test("many watchers are woken over several turns, so that others are served between", async () => {
  const { wakes, woken, until } = wakesWith(120, 0);
  wakes.wake();
  expect(woken.length).toBeLessThan(120);
  await until(120);
  expect(woken).toEqual(Array.from({ length: 120 }, (_, i) => i));
});

test("a watcher that leaves during a round is not woken by it", async () => {
  const { wakes, woken, until } = wakesWith(60, 0);
  const last = () => woken.push(-1);
  wakes.add(last);
  wakes.wake();
  wakes.delete(last);
  await until(60);
  await turn();
  expect(woken).not.toContain(-1);
});

test("at the end everybody is woken at once, whatever the pause", () => {
  const { wakes, woken } = wakesWith(120, 100);
  wakes.wake();
  const before = woken.length;
  wakes.wakeNow();
  expect(woken).toHaveLength(before + 120);
});

test("a heartbeat that comes during a pause follows it, and leaves no pause of its own", async () => {
  const { wakes, woken, until } = wakesWith(1, 4);
  wakes.wake();
  wakes.beat();
  await until(2);
  await turn();
  wakes.wake();
  expect(woken).toHaveLength(3);
});

test("a heartbeat does not take the place of news that wait, which are followed by a pause", async () => {
  const { wakes, woken, until } = wakesWith(1, 4);
  wakes.wake();
  wakes.wake();
  wakes.beat();
  await until(2);
  await turn();
  wakes.wake();
  expect(woken).toHaveLength(2);
});

test("who waits with a signal that is aborted already waits no longer", async () => {
  const { wakes } = wakesWith(0, 0);
  await inTime("the end of the wait", wakes.next(AbortSignal.abort()));
});

test("waking everybody at once counts, so that a watcher that was busy notices it", () => {
  const { wakes } = wakesWith(1, 0);
  wakes.wakeNow();
  expect(wakes.count).toBe(1);
});
