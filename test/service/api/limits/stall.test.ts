/**
 * The guard against requests that waited in this process for too long, tested with random histories of an event loop that is sometimes
 * blocked: it refuses every request that is too old, and none that cannot be too old.
 */
import type { Socket } from "node:net";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { TURN_MS, Turns } from "../../../../src/platform/clock/turns.ts";
import { type HttpRequest, WAITED_MS } from "../../../../src/platform/listener/handler.ts";
import { LateConnections } from "../../../../src/platform/listener/late-connections.ts";
import { stallTolerances } from "../../../../src/service/api/limits/overload.ts";
import { Loop } from "../../../platform/clock/loop.ts";

const R = 10_000;
const TOLERANCE_MS = stallTolerances(R).rotationMs;
/** The longest duration of a step of the loop that is not blocked, in ms. */
const SHORT_MS = 5;
/**
 * How much longer than tolerated the first request of a connection may have waited, in ms. The listener does not record shorter waits for a
 * connection.
 */
const PROMPT_MS = TOLERANCE_MS / 4;

/** The duration of each step of the loop, in ms: short in most cases, sometimes close to the tolerance, sometimes longer. */
const pauses = fc.array(
  fc.oneof(
    { weight: 200, arbitrary: fc.integer({ min: 1, max: SHORT_MS }) },
    { weight: 1, arbitrary: fc.integer({ min: TOLERANCE_MS - 100, max: TOLERANCE_MS + 100 }) },
    { weight: 1, arbitrary: fc.integer({ min: TOLERANCE_MS, max: 4 * TOLERANCE_MS }) },
  ),
  { minLength: 800, maxLength: 1_500 },
);
/** The requests: when each is sent, in ms, and whether it is the first one of its connection. */
const sendings = fc.array(fc.record({ atMs: fc.nat(5_000), isFirst: fc.boolean() }), { maxLength: 20 });

type Sent = { readonly atMs: number; readonly isFirst: boolean; readonly port: number };
type Handled = Sent & { readonly handledMs: number; readonly isRefused: boolean };

/** Runs a loop whose steps last this long, and returns what happened to each request. */
function play(pausesMs: readonly number[], sent: readonly Omit<Sent, "port">[]) {
  const loop = new Loop();
  const turns = new Turns(loop);
  turns.follow(() => {});
  const waiting: Sent[] = sent.map((one, port) => ({ ...one, port })).sort((a, b) => a.atMs - b.atMs);
  const connections = new LateConnections({
    maxWaitMs: TOLERANCE_MS,
    turns,
    afterPoll: loop.afterPoll,
    connectSelf(onConnected) {
      const port = -1 - own++;
      const after = waiting.findIndex(({ atMs }) => atMs > loop.nowMs);
      waiting.splice(after < 0 ? waiting.length : after, 0, { atMs: loop.nowMs, isFirst: true, port });
      // The client may learn that it is connected before or after the listener accepts the connection.
      const connected = () => onConnected(`::1 ${port}`);
      loop.afterPoll(own % 2 === 0 ? connected : () => loop.afterPoll(() => loop.afterPoll(connected)));
      return () => {};
    },
  });
  let own = 0;
  const accepted: Sent[] = [];
  const handled: Handled[] = [];
  /** The beginning and the end of each time in which the loop was blocked, in ms. */
  const stalls: { readonly from: number; readonly until: number }[] = [];
  const left = [...pausesMs];
  const pass = () => {
    const ms = left.pop() ?? 0;
    if (ms > SHORT_MS) stalls.push({ from: loop.nowMs, until: loop.nowMs + ms });
    loop.nowMs += ms;
  };
  const handle = (one: Sent) => {
    pass();
    const socket = { remoteAddress: "::1", remotePort: one.port } as Socket;
    const request = { socket } as HttpRequest;
    connections.take(request);
    handled.push({
      ...one,
      handledMs: loop.nowMs,
      isRefused: (request[WAITED_MS] ?? 0) > TOLERANCE_MS || turns.behindMs() > TOLERANCE_MS,
    });
  };
  while (left.length > 0) {
    pass();
    loop.iterate((untilMs) => {
      pass();
      // One poll reads the requests that had arrived when it began. It accepts only one new connection, as libuv does.
      const readable = [...accepted.splice(0), ...waiting.filter(({ atMs, isFirst }) => !isFirst && atMs <= untilMs)];
      const next = waiting.find(({ atMs, isFirst }) => isFirst && atMs <= untilMs);
      for (const one of readable) {
        if (waiting.includes(one)) waiting.splice(waiting.indexOf(one), 1);
        handle(one);
      }
      if (next === undefined) return;
      waiting.splice(waiting.indexOf(next), 1);
      const socket = { remoteAddress: "::1", remotePort: next.port, once() {} } as unknown as Socket;
      connections.accept(socket);
      if (next.port >= 0) accepted.push(next);
    });
  }
  return { handled, stalls };
}

describe("a request", () => {
  test("that waited for longer than a quarter of R is refused, on any connection", () => {
    let old = 0;
    fc.assert(
      fc.property(pauses, sendings, (pausesMs, sent) => {
        for (const { atMs, handledMs, isFirst, isRefused } of play(pausesMs, sent).handled) {
          if (handledMs - atMs <= TOLERANCE_MS + (isFirst ? PROMPT_MS : 0)) continue;
          old++;
          expect(isRefused).toBe(true);
        }
      }),
      { numRuns: 1_000 },
    );
    expect(old).toBeGreaterThan(1_000);
  });

  test("that was sent a turn after the process was held up is served, whatever came before", () => {
    let served = 0;
    fc.assert(
      fc.property(pauses, sendings, (pausesMs, sent) => {
        const { handled, stalls } = play(pausesMs, sent);
        // For how long after a blocked time the guard may still refuse requests, in ms. A turn (TURN_MS) begins at most one iteration of
        // the loop late and ends at most one iteration late, and each iteration may have to handle some requests.
        const graceMs = TURN_MS + 3 * (2 + sent.length) * SHORT_MS;
        for (const { atMs, handledMs, isRefused } of handled) {
          if (stalls.some(({ from, until }) => from <= handledMs && until > atMs - graceMs)) continue;
          served++;
          expect(isRefused).toBe(false);
        }
      }),
      { numRuns: 2_000 },
    );
    expect(served).toBeGreaterThan(300);
  });
});

test.each([
  [0, Number.POSITIVE_INFINITY, 10_000],
  [1_000, 500, 10_000],
  [2_000, 500, 10_000],
  [10_000, 2_500, 10_000],
  [60_000, 15_000, 15_000],
])(
  "with R = %d ms a refresh may wait for %d ms, and what rotates nothing for %d ms",
  (reuseIntervalMs, rotationMs, othersMs) => {
    expect(stallTolerances(reuseIntervalMs)).toEqual({ rotationMs, othersMs });
  },
);
