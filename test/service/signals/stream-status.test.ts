/** A change of a stream's status, if the store fails in the middle of it. */
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { StoreUnavailable } from "../../../src/service/session/ports.ts";
import { wallMs } from "../../../src/service/session/time.ts";
import type { SubscriptionStore } from "../../../src/service/signals/ports.ts";
import { createStream, type StreamDeps } from "../../../src/service/signals/streams/manage.ts";
import { updateStatus } from "../../../src/service/signals/streams/status.ts";
import { createEmbeddedStore } from "../../../src/service/store/embedded/store.ts";
import { scratch } from "../../support/service.ts";
import { newSession, nonce } from "../../support/store/sessions.ts";

const requester = { adminName: "receiver" } as Parameters<typeof createStream>[2];

test("a stream is not enabled before it is past what happened while it was disabled", async () => {
  const clock = () => wallMs(1_700_000_000_000);
  const store = createEmbeddedStore({
    path: join(scratch(), "sessions.db"),
    clock,
    reuseIntervalMs: 0,
    markerLifeMs: 1,
  });
  onTestFinished(() => store.close());
  const { log, subscriptions } = store.signals;
  let fails = true;
  const failing: SubscriptionStore = {
    ...subscriptions,
    async restart(id) {
      if (fails) throw new StoreUnavailable("out");
      return subscriptions.restart(id);
    },
  };
  const place = { issuer: "https://auth.example", url: "https://signals.example", forInterop: false, wallClock: clock };
  const deps = {
    ...place,
    subscriptions: failing,
    targets: { allowPrivate: false },
    audit() {},
  } as Partial<StreamDeps>;
  const { streamId } = await createStream(deps as StreamDeps, { eventsRequested: [] }, requester);
  const set = (status: string) => updateStatus(deps as StreamDeps, streamId, { status }, requester);
  await set("disabled");
  const session = newSession("alice");
  await store.create(session, nonce(), 1);
  await store.end(session.sid, "logout");
  await expect(set("enabled")).rejects.toThrow(StoreUnavailable);
  expect(await subscriptions.get(streamId)).toMatchObject({ state: "paused", because: "disabled" });
  fails = false;
  expect(await set("enabled")).toMatchObject({ status: "enabled" });
  expect(await log.positions(streamId)).toEqual(await log.ends());
});
