import { expect, test, vi } from "vitest";
import { Admission, PROBES } from "../../../../src/service/api/limits/admission.ts";
import { limitStore } from "../../../../src/service/api/limits/overload.ts";
import type { SessionId } from "../../../../src/service/session/model.ts";
import { type SessionStore, StoreBusy, StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";

const sid = "A".repeat(23) as SessionId;

/** Returns a store whose calls stay pending until the test resolves or rejects them. */
function aStore(maxWaiting: number) {
  const pending: { verb: string; resolve: (value: unknown) => void; reject: (error: Error) => void }[] = [];
  const store = new Proxy({} as SessionStore, {
    get: (_, verb) => () => {
      const { promise, resolve, reject } = Promise.withResolvers();
      pending.push({ verb: String(verb), resolve, reject });
      return promise;
    },
  });
  const admission = new Admission({ maxWaiting, maxLoopDelayMs: 0, maxStoreDelayMs: 250, onRefused() {} });
  let refusals = 0;
  const replies: string[] = [];
  const durations: number[] = [];
  const state = { behindMs: 0 };
  const limited = limitStore(
    store,
    admission,
    { tolerances: { rotationMs: 10, othersMs: 20 }, turns: { behindMs: () => state.behindMs } },
    {
      onRefused: () => {
        refusals++;
      },
      onReply: (verb, outcome, seconds) => {
        replies.push(`${verb} ${outcome}`);
        durations.push(seconds);
      },
    },
  );
  return { limited, admission, state, pending, replies, durations, refusals: () => refusals };
}

test("an ordinary command over the limit is refused without reaching the store, and endings go on", async () => {
  const { limited, pending, refusals } = aStore(2);
  const asked = [limited.find(sid), limited.find(sid)];
  await expect(limited.find(sid)).rejects.toThrow(StoreBusy);
  await expect(limited.list("alice", 1, undefined)).rejects.toThrow(StoreBusy);
  expect([pending.length, refusals()]).toEqual([2, 2]);
  const ended = limited.end(sid, "logout");
  expect(pending.map(({ verb }) => verb)).toEqual(["find", "find", "end"]);
  for (const { resolve } of pending) resolve("ended");
  expect(await ended).toBe("ended");
  await Promise.all(asked);
});

test("an ending is refused when four times the number waits", async () => {
  const { limited, pending } = aStore(100);
  const ends = Array.from({ length: 400 }, () => limited.end(sid, "logout"));
  await expect(limited.end(sid, "logout")).rejects.toThrow(StoreBusy);
  for (const { resolve } of pending) resolve("ended");
  await Promise.all(ends);
  expect(pending).toHaveLength(400);
});

test("after a stall no command of a call reaches the store, be it an ending, and none is counted; the rest goes on", async () => {
  const { limited, admission, state, pending, refusals, replies } = aStore(2);
  state.behindMs = 21;
  for (const asked of [limited.find(sid), limited.end(sid, "logout")]) {
    await expect(asked).rejects.toThrow(/was stalled/);
    await expect(asked).rejects.not.toThrow(StoreBusy);
  }
  const ping = limited.ping();
  expect(pending.map(({ verb }) => verb)).toEqual(["ping"]);
  pending[0]?.resolve(undefined);
  await ping;
  expect([admission.waiting, refusals(), replies]).toEqual([0, 0, []]);
  state.behindMs = 20;
  const asked = limited.find(sid);
  pending[1]?.resolve({ ok: false, reason: "unknown" });
  await asked;
});

test("a command counts until it has ended, however it ends", async () => {
  const { limited, admission, pending } = aStore(100);
  const outcomes = [limited.find(sid), limited.find(sid), limited.end(sid, "logout")].map((one) => one.catch(() => {}));
  expect(admission.waiting).toBe(3);
  pending[0]?.resolve({ ok: false, reason: "unknown" });
  pending[1]?.reject(new StoreUnavailable("no reply"));
  pending[2]?.reject(new Error("a bug"));
  await Promise.all(outcomes);
  expect(admission.waiting).toBe(0);
});

test("the feed, readiness and closing are never refused", async () => {
  const { limited, pending } = aStore(1);
  const asked = [limited.find(sid), limited.ping(), limited.revocations(undefined), limited.ping(), limited.close()];
  expect(pending).toHaveLength(5);
  for (const { resolve } of pending) resolve(undefined);
  await Promise.all(asked);
});

test("after an outage the first reply ends it, also one to a command that no call made", async () => {
  const { limited, pending } = aStore(1_000);
  const lost = limited.find(sid);
  pending[0]?.reject(new StoreUnavailable("no reply"));
  await expect(lost).rejects.toThrow(StoreUnavailable);
  const read = limited.revocations(undefined);
  const failed = limited.ping();
  pending[2]?.reject(new StoreUnavailable("no reply"));
  await expect(failed).rejects.toThrow(StoreUnavailable);
  const few = Array.from({ length: PROBES }, () => limited.find(sid));
  await expect(limited.find(sid)).rejects.toThrow(StoreBusy);
  pending[1]?.resolve({ revocations: [] });
  await read;
  const burst = Array.from({ length: 100 }, () => limited.find(sid));
  for (const { resolve } of pending) resolve({ ok: false, reason: "unknown" });
  await Promise.all([...few, ...burst]);
});

test("each command that reached the store is reported once it has ended, with whether the store responded", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  vi.advanceTimersByTime(700); // The clock does not start with the first command.
  const { limited, pending, replies, durations } = aStore(2);
  const asked = [limited.find(sid), limited.list("alice", 10, undefined), limited.find(sid).catch(() => {})];
  vi.advanceTimersByTime(1_500);
  pending[0]?.reject(new StoreUnavailable("no reply"));
  pending[1]?.resolve({ sessions: [] });
  await Promise.allSettled(asked);
  vi.useRealTimers();
  expect(replies).toEqual(["find lost", "list replied"]);
  expect(durations).toEqual([1.5, 1.5]);
});

test("commands that take a refresh token tolerate another delay than the rest, and those of no request any", async () => {
  const { limited, state, pending } = aStore(100);
  const token = { generation: 1, nonce: "n", issuedAt: storeMs(0) };
  const key = { algorithm: "ES256", bytes: new Uint8Array(64), thumbprint: new Uint8Array(32) } as const;
  state.behindMs = 11;
  const late = Promise.allSettled([limited.rotate(sid, token, "n"), limited.registerKey(sid, token, key)]);
  expect(pending).toEqual([]);
  const stalled = { reason: { message: expect.stringContaining("was stalled") } };
  expect(await late).toMatchObject([stalled, stalled]);
  const asked: Promise<unknown>[] = [limited.find(sid), limited.unbind(sid), limited.end(sid, "logout")];
  state.behindMs = 21;
  asked.push(limited.ping(), limited.expire());
  expect(pending.map(({ verb }) => verb)).toEqual(["find", "unbind", "end", "ping", "expire"]);
  for (const { resolve } of pending) resolve(undefined);
  await Promise.all(asked);
});

test("a reply is counted as the kind of its command, and a failure of the store's own as a reply", async () => {
  const { limited, admission, pending } = aStore(100);
  const outcomes: string[] = [];
  admission.finish = (_, outcome) => void outcomes.push(outcome);
  const asked = [limited.find(sid), limited.end(sid, "logout"), limited.find(sid), limited.end(sid, "logout")];
  pending[0]?.resolve(undefined);
  pending[1]?.resolve(undefined);
  pending[2]?.reject(new StoreUnavailable("no reply"));
  pending[3]?.reject(new Error("a bug"));
  await Promise.allSettled(asked);
  // An ending may take long, so its reply says nothing about the delay of the store.
  expect(outcomes).toEqual(["replied", "slow", "lost", "slow"]);
});
