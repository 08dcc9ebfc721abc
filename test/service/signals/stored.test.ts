/** Signals from each of the stores to a receiver that is a third-party library. */
import { expect, test } from "vitest";
import { steadyClock } from "../../../src/platform/clock/turns.ts";
import { systemClock, wallMs } from "../../../src/service/session/time.ts";
import { startDelivery } from "../../../src/service/signals/delivery/start-delivery.ts";
import { createSender } from "../../../src/service/signals/send/sender.ts";
import { embeddedBackend, redisBackend } from "../../support/store/backends.ts";
import { newSession, nonce, subject } from "../../support/store/sessions.ts";
import { until } from "../../support/until.ts";
import { requireReceiver, someContext, startReceiver } from "./world.ts";

type Webhook = { verify(body: string, headers: object): unknown };
const { Webhook } = requireReceiver("standardwebhooks") as { readonly Webhook: new (secret: string) => Webhook };

const SECRET = `whsec_${"A".repeat(32)}`;

test.each([
  { name: "the embedded store", backend: embeddedBackend },
  { name: "Redis", backend: redisBackend },
])("a logout reaches a webhook once, and is counted: $name", async ({ backend }) => {
  const { open, stop } = await backend();
  const store = await open();
  await store.ping();
  const receiver = await startReceiver();
  const target = { kind: "webhook", endpoint: receiver.url, sealedSecret: SECRET, filter: {}, audience: [] } as const;
  await store.signals.subscriptions.create("sub", target, wallMs(0));
  const failures: unknown[] = [];
  const { context } = someContext();
  const stopDelivery = startDelivery({
    ...store.signals,
    store,
    holder: "one",
    sender: createSender({ allowPrivate: true }),
    issuer: context.issuer,
    signClaims: context.signClaims,
    openSecret: (sealed) => sealed,
    clock: steadyClock,
    wallClock: systemClock,
    fraction: () => 0.5,
    events: { onAttempt() {}, onPause() {}, onLoss() {}, onGivenUp() {}, onFailure: (error) => failures.push(error) },
  });
  const sessions = Array.from({ length: 20 }, () => newSession(subject()));
  for (const session of sessions) {
    await store.create(session, nonce(), { cap: 100 });
    await store.end(session.sid, "logout");
  }
  await until(async () => expect(receiver.received).toHaveLength(20));
  const verified = receiver.received.map(({ body, headers }) => new Webhook(SECRET).verify(body, headers));
  expect(verified.map((one) => (one as { data: object }).data)).toEqual(
    expect.arrayContaining(sessions.map(({ sid, subject }) => expect.objectContaining({ session_id: sid, subject }))),
  );
  // When the instance stops, it stores the position up to which the receiver has accepted signals.
  await stopDelivery();
  expect(await store.signals.subscriptions.get("sub")).toMatchObject({ delivered: 20, deadLetters: 0, failures: 0 });
  expect([receiver.received.length, failures]).toEqual([20, []]);
  await receiver.close();
  await store.close();
  await stop();
});
