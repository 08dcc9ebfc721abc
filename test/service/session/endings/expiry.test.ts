/**
 * The periodic search for expired sessions writes an audit event for each session that the store has ended. An outage of the store ends
 * only the current search, and the next one runs as usual.
 */
import { expect, onTestFinished, test, vi } from "vitest";
import type { AuditEvent } from "../../../../src/service/session/audit.ts";
import { createExpiry } from "../../../../src/service/session/endings/expiry.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { type ExpireOutcome, StoreUnavailable } from "../../../../src/service/session/ports.ts";

const A = { sid: "a" as SessionId, subject: "alice" };
const B = { sid: "b" as SessionId };

/** @param replies what the store returns or throws at successive calls. After them it returns that no session has expired */
function open(...replies: (ExpireOutcome | Error)[]) {
  const events: AuditEvent[] = [];
  const errors: unknown[] = [];
  const expiry = createExpiry({
    store: {
      async expire() {
        const reply = replies.shift() ?? { ended: [], isDone: true };
        if (reply instanceof Error) throw reply;
        return reply;
      },
    },
    audit: (event) => events.push(event),
    onError: (error) => errors.push(error),
  });
  onTestFinished(() => expiry.close());
  return { expiry, events, errors, replies };
}

test("everything that has ended is recorded, until the store has nothing left", async () => {
  const { expiry, events } = open(
    { ended: [A], isDone: false },
    { ended: [B], isDone: true },
    { ended: [A], isDone: true },
  );
  await expiry.look();
  expect(events).toEqual([
    { event: "session_ended", ...A, reason: "expired" },
    { event: "session_ended", ...B, subject: undefined, reason: "expired" },
  ]);
});

test("an outage is reported once, and the next pass goes on", async () => {
  const outage = new StoreUnavailable("away");
  const { expiry, events, errors } = open(outage, outage, { ended: [A], isDone: true }, outage);
  for (let pass = 0; pass < 3; pass++) await expiry.look();
  expect(errors).toEqual([outage]);
  expect(events).toHaveLength(1);
  await expiry.look();
  expect(errors).toEqual([outage, outage]);
});

test("sessions are looked for every ten seconds, with a pause between two calls of the store", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const last = { ended: [], isDone: true };
  const { expiry, replies } = open({ ended: [], isDone: false }, last, last);
  const left: number[] = [];
  for (const passedMs of [9_999, 1, 49, 1, 9_949, 1]) {
    await vi.advanceTimersByTimeAsync(passedMs);
    left.push(replies.length);
  }
  expect(left).toEqual([3, 2, 2, 1, 1, 0]);
  await expiry.close();
  replies.push(last);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(replies).toEqual([last]);
  expect(vi.getTimerCount()).toBe(0);
});

test("closing stops after the step that is under way", async () => {
  const { expiry, events, replies } = open({ ended: [A], isDone: false }, { ended: [B], isDone: false });
  const looking = expiry.look();
  await expiry.close();
  await looking;
  expect(events).toHaveLength(1);
  expect(replies).toHaveLength(1);
});
