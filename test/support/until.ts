/**
 * Waits of tests. Each has a limit of its own, far below the time limit of a test, so that a failure names what did not happen. The limit
 * counts time as it passes on an idle machine: a machine that is three times as slow has three times as long.
 */
import { slowness } from "./slowness.ts";

// They are taken here because a test may replace the timers with its own.
const { setTimeout, clearTimeout } = globalThis;
const now = performance.now.bind(performance);

/** How long a test waits for one event, in ms on an idle machine. A test of failures sets less, because it waits for the whole of it. */
export const EVENT_MS = Number(process.env.EVENT_MS ?? 20_000);

/** How often a wait that takes long measures the machine's slowness, in ms. */
const MEASURE_MS = 2_000;
/** How long waits share a measurement, in ms. */
const SHARED_MS = 1_000;

/** Returns the first value of `attempt` that does not throw. @throws an error with the message of the last attempt, and it as its cause */
export async function until<T>(attempt: () => T | Promise<T>, limitMs = EVENT_MS): Promise<T> {
  let last: unknown = new Error("the first attempt has not ended");
  const limit = startLimit(limitMs);
  const overdue = new Error();
  try {
    for (;;) {
      try {
        return await Promise.race([attempt(), limit.reached]);
      } catch (error) {
        if (error !== REACHED) last = error;
        // An attempt that fails at once loses no race, so the limit is also looked at here.
        if (limit.isReached()) throw named(overdue, limitMs, last);
      }
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  } finally {
    limit.stop();
  }
}

/** Resolves when the condition holds. @throws an error that quotes the condition */
export const untilTrue = (holds: () => boolean | Promise<boolean>, limitMs = EVENT_MS): Promise<void> =>
  until(async () => {
    if (!(await holds())) throw new Error(`this does not hold: ${holds}`);
  }, limitMs);

/** Returns the value of a promise. @param what names the event, for the error @throws if it is not settled within the limit */
export async function inTime<T>(what: string | (() => string), event: Promise<T>, limitMs = EVENT_MS): Promise<T> {
  const limit = startLimit(limitMs);
  const overdue = new Error();
  try {
    return await Promise.race([event, limit.reached]);
  } catch (error) {
    if (error !== REACHED) throw error;
    throw named(overdue, limitMs, new Error(typeof what === "string" ? what : what()));
  } finally {
    limit.stop();
  }
}

const REACHED = Symbol("the limit is reached");

/** @param error was created by the caller, so that its stack names the test that waited */
function named(error: Error, limitMs: number, last: unknown): Error {
  error.message = `did not happen within ${limitMs / 1000} s: ${last instanceof Error ? last.message : String(last)}`;
  error.cause = last;
  return error;
}

let measured = { factor: 1, atMs: Number.NEGATIVE_INFINITY };

/** Returns the machine's slowness. A measurement takes CPU time, and hundreds of waits that each took one would make the test slow themselves. */
function recentSlowness(): number {
  if (now() - measured.atMs > SHARED_MS) measured = { factor: slowness(), atMs: now() };
  return measured.factor;
}

function startLimit(limitMs: number) {
  let timer: NodeJS.Timeout | undefined;
  let isReached = false;
  const reached = new Promise<never>((_, reject) => {
    let leftMs = limitMs;
    let sinceMs = now();
    const measure = () => {
      // While this process was busy, as with the search of a history, it read nothing: that is not time in which it waited.
      const elapsedMs = Math.min(now() - sinceMs, 2 * MEASURE_MS);
      leftMs -= elapsedMs / recentSlowness();
      sinceMs = now();
      isReached = leftMs <= 0;
      if (isReached) reject(REACHED);
      else schedule();
    };
    const schedule = () => {
      timer = setTimeout(measure, Math.min(MEASURE_MS, leftMs));
    };
    schedule();
  });
  // It is awaited only beside an attempt, and may be reached between two of them.
  reached.catch(() => undefined);
  return { reached, isReached: () => isReached, stop: () => clearTimeout(timer) };
}
