/** What is left of a receiver's request that was not carried out to its end. */
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import type { SubscriptionStore } from "../../../../src/service/signals/ports.ts";
import { createStream, type StreamDeps } from "../../../../src/service/signals/streams/manage.ts";
import type { Verdicts } from "../../../../src/service/signals/streams/poll-pass.ts";
import { Poller, type PollerDeps } from "../../../../src/service/signals/streams/poller.ts";
import { updateStatus } from "../../../../src/service/signals/streams/status.ts";
import { verifyStream } from "../../../../src/service/signals/streams/stream-events.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { scratch } from "../../../support/service.ts";
import { newSession, nonce } from "../../../support/store/sessions.ts";

const requester = { adminName: "receiver" } as Parameters<typeof createStream>[2];
/** The greatest number of events that wait for a poll. */
const MAX_HELD = 8;

/** Creates a stream that is polled. Some steps of its store are replaced. */
async function polledStream(replaced: Partial<SubscriptionStore> = {}) {
  const clock = () => wallMs(1_700_000_000_000);
  const path = join(scratch(), "sessions.db");
  const store = createEmbeddedStore({ path, clock, reuseIntervalMs: 0, markerLifeMs: 1 });
  onTestFinished(() => store.close());
  const place = { issuer: "https://auth.example", url: "https://signals.example", forInterop: false };
  const subscriptions = { ...store.signals.subscriptions, ...replaced };
  const given: Partial<StreamDeps> = { ...place, subscriptions, wallClock: clock, audit() {} };
  const deps = given as StreamDeps;
  const { streamId } = await createStream(deps, { eventsRequested: [] }, requester);
  return { store, deps, streamId };
}

test("a stream is not enabled before it is past what happened while it was disabled", async () => {
  const restart = async () => Promise.reject(new StoreUnavailable("out"));
  const { store, deps, streamId } = await polledStream({ restart });
  const { log, subscriptions } = store.signals;
  await updateStatus(deps, streamId, { status: "disabled" }, requester);
  const session = newSession("alice");
  await store.create(session, nonce(), { cap: 1 });
  await store.end(session.sid, "logout");
  const enable = (by: StreamDeps) => updateStatus(by, streamId, { status: "enabled" }, requester);
  await expect(enable(deps)).rejects.toThrow(StoreUnavailable);
  expect(await subscriptions.get(streamId)).toMatchObject({ state: "paused", because: "disabled" });
  expect(await enable({ ...deps, subscriptions })).toMatchObject({ status: "enabled" });
  expect(await log.positions(streamId)).toEqual(await log.ends());
});

test("a verification event that finds no room does not count as the one of its interval", async () => {
  const { deps, streamId } = await polledStream();
  let counted = 0;
  const verificationLimit = { take: () => void counted++, giveBack: () => void counted-- };
  const verify = () => verifyStream({ ...deps, verificationLimit }, streamId, undefined, requester);
  for (let count = 0; count < MAX_HELD; count++) await verify();
  await expect(verify()).rejects.toMatchObject({ code: "E429_RATE_LIMITED" });
  expect(counted).toBe(MAX_HELD);
});

test("a poll does not return what another one acknowledges while it reads", async () => {
  const { store, deps, streamId } = await polledStream();
  const session = newSession("alice");
  await store.create(session, nonce(), { cap: 1 });
  await store.end(session.sid, "logout");
  const { log } = store.signals;
  const poll = (verdicts: Verdicts) =>
    poller.poll(streamId, { maxEvents: 1, returnImmediately: true, verdicts }, requester, new AbortController().signal);
  const others: Promise<unknown>[] = [];
  const read: typeof log.read = async (...from) => {
    const outcome = await log.read(...from);
    if (outcome.ok && others.length === 0) {
      others.push(poll(new Map(outcome.signals.map(({ signal }) => [signal.id, "accepted"]))));
      await nextTurn();
    }
    return outcome;
  };
  const reports = { onAttempt() {}, onLoss() {}, onGivenUp() {} };
  const signClaims = () => "token";
  const poller = new Poller({ ...deps, store, log: { ...log, read }, signClaims, reports } as PollerDeps);
  expect(await poll(new Map())).toEqual({ sets: {}, moreAvailable: false });
  await Promise.all(others);
  expect(others).toHaveLength(1);
  expect(await log.positions(streamId)).toEqual(await log.ends());
});
