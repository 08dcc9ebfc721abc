/** How often a credential can make the service send requests to somebody else's server, or keep events for it. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SignalsAdminService, SubscriptionKind } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { STORES } from "../../support/every-protocol.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, withKeys } from "../../support/service.ts";
import { bearer, message, openAdmin } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { type Json, POLL, PUSH, type StreamReceiver } from "./stream-receiver.ts";
import { startTransmitter, tokenOf } from "./stream-world.ts";
import { startReceiver } from "./world.ts";

describe.each(STORES)("on the %s store", (store) => {
  let service: Service;
  let receiver: StreamReceiver;
  let other: StreamReceiver;
  let redis: RedisServer | undefined;
  beforeAll(async () => {
    redis = store === "redis" ? await startRedis() : undefined;
    const onRedis = redis && { REDIS_URL: redis.url, DATA_DIR: withKeys() };
    ({ service, receiver, other } = await startTransmitter({ ...onRedis, SIGNALS_VERIFICATION_INTERVAL: "1h" }));
  });
  afterAll(async () => {
    await service.stop();
    await redis?.stop();
  });

  test.each([
    ["push", PUSH],
    ["poll", POLL],
  ])("a %s stream is verified once in its min_verification_interval", async (_, method) => {
    const endpoint = await startReceiver(() => 202);
    const delivery = { method, ...(method === PUSH && { endpoint_url: endpoint.url }) };
    const create = async () => (await receiver.streams("POST", { body: { delivery } })).json;
    const [first, second] = [await create(), await create()];
    expect(first.min_verification_interval).toBe(3600);
    const verify = async ({ stream_id }: typeof first) =>
      (await receiver.post("verification_endpoint", { stream_id })).status;
    expect([await verify(first), await verify(first), await verify(first), await verify(second)]).toEqual([
      204, 429, 429, 204,
    ]);

    const url = await receiver.endpoint("verification_endpoint");
    expect(url).toContain("/v1/ssf/verification");
    const response = await fetch(`${service.adminUrl}/v1/ssf/verification`, {
      method: "POST",
      headers: { "content-type": "application/json", ...bearer(tokenOf("receiver")) },
      body: JSON.stringify({ stream_id: first.stream_id }),
    });
    expect([response.status, Number(response.headers.get("retry-after"))]).toEqual([429, expect.closeTo(3600, -3)]);
    // A receiver may send the interval back as it has read it, and may not change it (SSF 1.0 section 8.1.1.3).
    const put = async (body: object) => (await receiver.streams("PUT", { body })).status;
    expect([await put(first), await put({ ...first, min_verification_interval: 1 })]).toEqual([200, 400]);
    for (const { stream_id } of [first, second]) await receiver.streams("DELETE", { id: String(stream_id) });
    await endpoint.close();
  });

  test("a receiver that deletes and creates its streams anew is verified no more often than with all it may have", async () => {
    const endpoint = await startReceiver(() => 202);
    const body = { delivery: { method: PUSH, endpoint_url: endpoint.url } };
    let status = 204;
    let verified = 0;
    for (; status === 204; verified++) {
      const id = String((await receiver.streams("POST", { body })).json.stream_id);
      status = (await receiver.post("verification_endpoint", { stream_id: id })).status;
      await receiver.streams("DELETE", { id });
      if (verified > 40) break;
    }
    expect(status).toBe(429);
    expect(endpoint.received.length).toBeLessThanOrEqual(32);
    await endpoint.close();
  });

  test("polls, and changes of streams, are limited for each receiver", async () => {
    const body = { delivery: { method: POLL } };
    const created = (await receiver.streams("POST", { body })).json;
    const others = (await other.streams("POST", { body })).json;
    const pollOf = async (of: StreamReceiver, { delivery }: typeof created) =>
      (await of.call("POST", String((delivery as Json).endpoint_url), { returnImmediately: true })).status;
    const statusOf = async () =>
      (await receiver.post("status_endpoint", { stream_id: created.stream_id, status: "enabled" })).status;
    for (const call of [() => pollOf(receiver, created), statusOf]) {
      await until(async () => expect(await Promise.all(Array.from({ length: 100 }, call))).toContain(429));
    }
    expect(await pollOf(other, others)).toBe(200);
    expect((await other.streams("POST", { body })).status).toBe(201);
  });

  test("a receiver is tested ten times in ten seconds, however many subscriptions it has", async () => {
    const endpoint = await startReceiver();
    const admin = openAdmin(service);
    const credential = bearer("operator-".repeat(5));
    const { createSubscription, testSubscription } = SignalsAdminService.method;
    const ids = await Promise.all(
      [1, 2].map(async (at) => {
        const wanted = { kind: SubscriptionKind.WEBHOOK, endpoint: `${endpoint.url}?tenant=${at}` };
        return message(await admin.call(createSubscription, wanted, credential)).subscription?.subscriptionId;
      }),
    );
    const codes = new Map<string, number>();
    for (let at = 0; at < 40; at++) {
      const subscriptionId = ids[at % 2] ?? "";
      const tested = await admin.call(testSubscription, { subscriptionId }, credential);
      const code = tested.ok ? "ok" : String(tested.code);
      codes.set(code, (codes.get(code) ?? 0) + 1);
    }
    expect(endpoint.received.length).toBeLessThan(40);
    expect(endpoint.received.length).toBe(codes.get("ok"));
    await endpoint.close();
  });
});
