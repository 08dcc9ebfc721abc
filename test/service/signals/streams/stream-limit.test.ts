/** The limit on the streams of a receiver also holds if the receiver creates many at the same time. */
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { wallMs } from "../../../../src/service/session/time.ts";
import { createStream, listStreams, type StreamDeps } from "../../../../src/service/signals/streams/manage.ts";
import { createEmbeddedStore } from "../../../../src/service/store/embedded/store.ts";
import { scratch } from "../../../support/service.ts";

test("streams that are created at the same time count, too", async () => {
  const clock = () => wallMs(1_700_000_000_000);
  const store = createEmbeddedStore({
    path: join(scratch(), "sessions.db"),
    clock,
    reuseIntervalMs: 0,
    markerLifeMs: 1,
  });
  onTestFinished(() => store.close());
  const deps: Partial<StreamDeps> = {
    ...{ issuer: "https://auth.example", url: "https://signals.example", forInterop: false, wallClock: clock },
    ...{ subscriptions: store.signals.subscriptions, targets: { allowPrivate: false }, audit() {} },
  };
  const createOften = (adminName: string) =>
    Array.from({ length: 40 }, () => createStream(deps as StreamDeps, { eventsRequested: [] }, requesterOf(adminName)));
  const results = await Promise.allSettled([...createOften("one"), ...createOften("two")]);
  expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(64);
  for (const name of ["one", "two"]) {
    expect(await listStreams(deps as StreamDeps, requesterOf(name))).toHaveLength(32);
  }
});

const requesterOf = (adminName: string) => ({ adminName }) as Parameters<typeof createStream>[2];
