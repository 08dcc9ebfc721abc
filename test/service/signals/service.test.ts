/** The running service with SIGNALS=on: an operator subscribes a receiver, and the ends of sessions reach it. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { SignalsAdminService, SubscriptionKind } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { STORES } from "../../support/every-protocol.ts";
import { startRedis } from "../../support/redis.ts";
import { type Service, startService, withKeys } from "../../support/service.ts";
import { bearer, logIn, message, openAdmin, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { requireReceiver, startReceiver } from "./world.ts";

type Webhook = {
  verify(body: string, headers: object): { readonly type: string; readonly data: Readonly<Record<string, unknown>> };
};
const { Webhook } = requireReceiver("standardwebhooks") as { readonly Webhook: new (secret: string) => Webhook };
const signals = SignalsAdminService.method;
const ON = { SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on" };

async function storeOf(kind: (typeof STORES)[number]) {
  if (kind === "embedded") return { env: {}, stop: async () => {} };
  const redis = await startRedis();
  const env = { DATA_DIR: withKeys(), REDIS_URL: redis.url, ADMIN_TOKENS: "a".repeat(40) };
  return { env, stop: () => redis.stop() };
}

const subscribe = async (service: Service, endpoint: string, events: string[] = []) =>
  message(
    await openAdmin(service).call(
      signals.createSubscription,
      { kind: SubscriptionKind.WEBHOOK, endpoint, filter: { events } },
      bearer(service.adminToken),
    ),
  );

async function logOut(service: Service) {
  const session = await logIn(service);
  message(await openPublic(service).call(SessionService.method.logout, {}, bearer(session.accessToken)));
  return session;
}

const idOf = (created: { readonly subscription?: { readonly subscriptionId: string } | undefined }) => ({
  subscriptionId: created.subscription?.subscriptionId ?? "",
});

describe.each(STORES)("on the %s store", (kind) => {
  test("a logout reaches a subscribed webhook until the subscription is deleted", async () => {
    const store = await storeOf(kind);
    const service = await startService({ ...store.env, ...ON });
    const receiver = await startReceiver();
    const created = await subscribe(service, receiver.url);
    const admin = openAdmin(service);
    const credential = bearer(service.adminToken);
    const webhook = new Webhook(created.generatedSecret);

    const tested = message(await admin.call(signals.testSubscription, idOf(created), credential));
    expect(tested).toMatchObject({ accepted: true, error: "" });
    const { sid, subject } = await logOut(service);
    await until(async () => expect(receiver.received).toHaveLength(2));
    const [, { body, headers } = { body: "", headers: {} }] = receiver.received;
    expect(webhook.verify(body, headers).data).toMatchObject({ session_id: sid, subject, reason: "logout" });

    const listed = message(await admin.call(signals.listSubscriptions, {}, credential));
    expect(listed.subscriptions.map(({ subscriptionId }) => subscriptionId)).toEqual([idOf(created).subscriptionId]);
    const shown = JSON.stringify(
      [listed, message(await admin.call(signals.getSubscription, idOf(created), credential))],
      (_, value: unknown) => (typeof value === "bigint" ? String(value) : value),
    );
    expect(shown).not.toContain(created.generatedSecret);
    expect(service.stderr()).not.toContain(created.generatedSecret);
    message(await admin.call(signals.deleteSubscription, idOf(created), credential));
    expect(await admin.call(signals.getSubscription, idOf(created), credential)).toMatchObject({
      code: "E404_NOT_FOUND",
    });
    await service.stop();
    await receiver.close();
    await store.stop();
  });

  test("a webhook that asks for creations and new devices gets these, and another one endings alone", async () => {
    const store = await storeOf(kind);
    const service = await startService({ ...store.env, ...ON });
    const [asking, other] = [await startReceiver(), await startReceiver()];
    const { generatedSecret, subscription } = await subscribe(service, asking.url, [
      "session.created",
      "session.new_device",
    ]);
    expect(subscription?.filter?.events).toEqual(["session.created", "session.new_device"]);
    await subscribe(service, other.url);
    const tested = await openAdmin(service).call(
      signals.testSubscription,
      { subscriptionId: subscription?.subscriptionId ?? "" },
      bearer(service.adminToken),
    );
    expect(message(tested).accepted).toBe(true);
    const client = { userAgent: "Firefox" };
    const first = await logIn(service, { client });
    const second = await logIn(service, { client, subject: first.subject });
    message(await openPublic(service).call(SessionService.method.logout, {}, bearer(second.accessToken)));
    await until(async () => expect([asking.received.length, other.received.length]).toEqual([4, 1]));
    const webhook = new Webhook(generatedSecret);
    const got = asking.received.slice(1).map(({ body, headers }) => webhook.verify(body, headers));
    const dataOf = ({ sid, subject }: typeof first) => ({ session_id: sid, subject, client_id: expect.any(String) });
    expect(new Set(got.map(({ type, data }) => `${type} ${data.session_id}`))).toEqual(
      new Set([`session.created ${first.sid}`, `session.new_device ${first.sid}`, `session.created ${second.sid}`]),
    );
    for (const { data } of got) expect([dataOf(first), dataOf(second)]).toContainEqual(data);
    expect(JSON.parse(asking.received[0]?.body ?? "")).toMatchObject({ type: "session.created" });
    expect(JSON.parse(other.received[0]?.body ?? "")).toMatchObject({ type: "session.ended" });
    await service.stop();
    await Promise.all([asking.close(), other.close(), store.stop()]);
  });

  test("what ends before a kill -9 is delivered after the restart", async () => {
    const store = await storeOf(kind);
    let accepts = false;
    const receiver = await startReceiver(() => (accepts ? 200 : 503));
    const first = await startService({ ...store.env, ...ON });
    const created = await subscribe(first, receiver.url);
    const waitingSince = async () => {
      const shown = await openAdmin(first).call(signals.getSubscription, idOf(created), bearer(first.adminToken));
      const time = message(shown).subscription?.oldestWaitingTime;
      return time && timestampMs(time);
    };
    expect(await waitingSince()).toBeUndefined();
    const before = Date.now();
    const { sid } = await logOut(first);
    expect(await waitingSince()).toBeGreaterThan(before - 1_000);
    expect(await waitingSince()).toBeLessThan(Date.now() + 1_000);
    await first.kill9();
    accepts = true;
    const refused = receiver.received.length;
    const second = await startService({ ...store.env, ...ON, DATA_DIR: first.dataDir });
    await until(async () => expect(receiver.received.length).toBeGreaterThan(refused));
    const webhook = new Webhook(created.generatedSecret);
    for (const { body, headers } of receiver.received) {
      expect(webhook.verify(body, headers).data).toMatchObject({ session_id: sid, reason: "logout" });
    }
    await second.stop();
    await receiver.close();
    await store.stop();
  });
});

test("what cannot be delivered to is refused, and changes are recorded", async () => {
  const service = await startService({ SIGNALS: "on" });
  const admin = openAdmin(service);
  const credential = bearer(service.adminToken);
  const { WEBHOOK, BACKCHANNEL, SSF_PUSH } = SubscriptionKind;
  const endpoint = "https://receiver.example/";
  const refused = [
    [{ kind: WEBHOOK, endpoint: "https://127.0.0.1/" }, "endpoint"],
    [{ kind: WEBHOOK, endpoint: "http://receiver.example/" }, "endpoint"],
    [{ kind: WEBHOOK, endpoint, secret: "short" }, "secret"],
    [{ kind: WEBHOOK, endpoint, audience: ["app"] }, "audience"],
    [{ kind: BACKCHANNEL, endpoint }, "audience"],
    [{ kind: SSF_PUSH, endpoint, audience: ["app"], secret: "a\nb" }, "secret"],
    [{ kind: WEBHOOK, endpoint, filter: { reasons: ["boredom"], events: [] } }, "filter.reasons"],
    [{ kind: WEBHOOK, endpoint, filter: { reasons: [], events: ["session.renewed"] } }, "filter.events"],
    [
      { kind: BACKCHANNEL, endpoint, audience: ["app"], filter: { reasons: [], events: ["session.created"] } },
      "filter.events",
    ],
  ] as const;
  for (const [{ ...request }, field] of refused) {
    const { audience, filter, ...rest } = { audience: [], filter: { reasons: [], events: [] }, ...request };
    const { reasons, events } = filter;
    const given = { ...rest, audience: [...audience], filter: { reasons: [...reasons], events: [...events] } };
    const response = await admin.call(signals.createSubscription, given, credential);
    expect(response, field).toMatchObject({ code: "E400_INVALID_REQUEST", text: expect.stringContaining(field) });
  }
  const created = await subscribe(service, endpoint);
  message(await admin.call(signals.pauseSubscription, idOf(created), credential));
  message(await admin.call(signals.resumeSubscription, idOf(created), credential));
  message(await admin.call(signals.testSubscription, idOf(created), credential));
  message(await admin.call(signals.deleteSubscription, idOf(created), credential));
  await service.stop();
  const changes = service
    .stderr()
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>)
    .filter(({ subscription }) => subscription === idOf(created).subscriptionId);
  const what = ["created", "paused", "resumed", "subscription_tested", "deleted"];
  expect(changes.map(({ event, change }) => change ?? event)).toEqual(what);
});

test("the service is there only where SIGNALS is on", async () => {
  const service = await startService();
  const response = await openAdmin(service).call(signals.listSubscriptions, {}, bearer(service.adminToken));
  expect(response).toMatchObject({ code: "E404_NOT_FOUND" });
  await service.stop();
});
