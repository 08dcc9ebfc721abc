/** Delivery by poll (RFC 8936) from the running service to a receiver. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { STORES } from "../../../support/every-protocol.ts";
import { startRedis } from "../../../support/redis.ts";
import { type Service, withKeys } from "../../../support/service.ts";
import { admin, bearer, logIn, message, openAdmin, openPublic } from "../../../support/sessions.ts";
import { until } from "../../../support/until.ts";
import {
  ISSUER,
  type Json,
  SESSION_ESTABLISHED,
  SESSION_REVOKED,
  type StreamReceiver,
  TOKEN_CLAIMS_CHANGE,
} from "../stream-receiver.ts";
import { startTransmitter, tokenOf } from "../stream-world.ts";

const VERIFICATION = "https://schemas.openid.net/secevent/ssf/event-type/verification";
const operator = "operator-".repeat(5);

async function storeOf(kind: (typeof STORES)[number]) {
  if (kind === "embedded") return { env: {}, stop: async () => {} };
  const redis = await startRedis();
  return { env: { DATA_DIR: withKeys(), REDIS_URL: redis.url }, stop: () => redis.stop() };
}

/** Creates a session, and ends it. Returns its id. */
async function logOut(service: Service): Promise<string> {
  const { sid, accessToken } = await logIn({ ...service, adminToken: operator });
  message(await openPublic(service).call(SessionService.method.logout, {}, bearer(accessToken)));
  return sid;
}

type Polled = { readonly sets: Readonly<Record<string, string>>; readonly moreAvailable: boolean };

describe.each(STORES)("on the %s store", (kind) => {
  let store: Awaited<ReturnType<typeof storeOf>>;
  let service: Service;
  let receiver: StreamReceiver;
  beforeAll(async () => {
    store = await storeOf(kind);
    ({ service, receiver } = await startTransmitter(store.env));
  });
  afterAll(async () => {
    await service.stop();
    await store.stop();
  });

  async function polledStream() {
    const { json } = await receiver.streams("POST", { body: {} });
    const { endpoint_url } = json.delivery as { readonly endpoint_url: string };
    const stream_id = String(json.stream_id);
    return {
      stream_id,
      endpoint_url,
      async poll(request: Json = {}, by = receiver): Promise<Polled> {
        const reply = await by.call("POST", endpoint_url, { returnImmediately: true, ...request });
        expect([reply.status, reply.type]).toEqual([200, "application/json"]);
        return reply.json as unknown as Polled;
      },
      remove: () => receiver.streams("DELETE", { id: stream_id }),
    };
  }

  async function end(count: number): Promise<string[]> {
    const sids: string[] = [];
    for (let at = 0; at < count; at++) sids.push(await logOut(service));
    return sids.sort();
  }

  const sidsOf = async ({ sets }: Polled) => {
    const payloads = await Promise.all(Object.values(sets).map((token) => receiver.verify(token, "receiver")));
    expect(payloads.map(({ jti }) => jti)).toEqual(Object.keys(sets));
    return payloads.map(({ sub_id }) => (sub_id as { session: { id: string } }).session.id).sort();
  };

  test("what polls at the same time acknowledge is acknowledged, in whatever order", async () => {
    const stream = await polledStream();
    await end(40);
    const ids = Object.keys((await stream.poll()).sets);
    expect(ids).toHaveLength(40);
    // Each signal is acknowledged while the one before it is still unacknowledged.
    await Promise.all(ids.reverse().map((id) => stream.poll({ ack: [id], maxEvents: 1 })));
    expect(await stream.poll()).toEqual({ sets: {}, moreAvailable: false });
    await stream.remove();
  });

  test("an event is returned until it is acknowledged, always with the same id", async () => {
    const stream = await polledStream();
    expect(await stream.poll()).toEqual({ sets: {}, moreAvailable: false });
    const ended = await end(3);
    const first = await stream.poll();
    expect(await sidsOf(first)).toEqual(ended);
    expect(first.moreAvailable).toBe(false);
    const again = await stream.poll();
    expect(Object.keys(again.sets).sort()).toEqual(Object.keys(first.sets).sort());
    const one = await receiver.verify(Object.values(first.sets)[0] ?? "", "receiver");
    expect(one.events).toEqual({
      [SESSION_REVOKED]: {
        event_timestamp: expect.any(Number),
        initiating_entity: "user",
        reason_admin: { en: "logout" },
      },
    });
    expect(one.sub_id).toMatchObject({ format: "complex", user: { format: "iss_sub", iss: ISSUER } });
    // The events are acknowledged one by one, from the last to the first. Each is no longer returned after its acknowledgement.
    const ids = Object.keys(first.sets);
    for (const [at, id] of ids.toReversed().entries()) {
      const left = await stream.poll({ ack: [id, "an-unknown-id"] });
      expect(Object.keys(left.sets).sort()).toEqual(ids.slice(0, ids.length - 1 - at).sort());
    }
    expect(await stream.poll({ ack: ids })).toEqual({ sets: {}, moreAvailable: false });
    await stream.remove();
  });

  test("a poll has as many events as it asks for, and reports that there are more", async () => {
    const stream = await polledStream();
    const ended = await end(5);
    const seen: string[] = [];
    let ack: string[] = [];
    for (;;) {
      const polled = await stream.poll({ maxEvents: 2, ack });
      ack = Object.keys(polled.sets);
      expect(ack.length).toBeLessThanOrEqual(2);
      seen.push(...(await sidsOf(polled)));
      if (ack.length === 0) break;
      expect(polled.moreAvailable).toBe(seen.length < 5);
    }
    expect(seen.sort()).toEqual(ended);
    await stream.remove();
  });

  test("a poll for no events acknowledges alone, and one with errors gives events up", async () => {
    const stream = await polledStream();
    await end(2);
    const [accepted = "", refused = ""] = Object.keys((await stream.poll()).sets);
    const setErrs = { [refused]: { err: "authentication_failed", description: "of an unknown key" } };
    const reply = await stream.poll({ maxEvents: 0, ack: [accepted], setErrs });
    expect(reply.sets).toEqual({});
    expect(await stream.poll()).toEqual({ sets: {}, moreAvailable: false });
    const metrics = await (await fetch(`${service.adminUrl}/metrics`, { headers: bearer(operator) })).text();
    expect(metrics).toMatch(/session_signals_sent_total\{kind="ssf_poll",outcome="accepted"\} [1-9]/);
    expect(metrics).toMatch(/session_signals_sent_total\{kind="ssf_poll",outcome="refused"\} 1\n/);
    await stream.remove();
  });

  test("a poll that may wait has its response when a session ends", async () => {
    const stream = await polledStream();
    const waiting = stream.poll({ returnImmediately: false });
    const ended = await end(1);
    expect(await sidsOf(await waiting)).toEqual(ended);
    await stream.remove();
  });

  test("pollers of one stream that race lose nothing", async () => {
    const stream = await polledStream();
    const seen = new Set<string>();
    let done = false;
    const pollAndAcknowledge = async () => {
      let ack: string[] = [];
      while (!done || ack.length > 0) {
        const polled = await stream.poll({ maxEvents: 3, ack });
        ack = Object.keys(polled.sets);
        for (const sid of await sidsOf(polled)) seen.add(sid);
      }
    };
    const pollers = Array.from({ length: 3 }, pollAndAcknowledge);
    const ended = await end(20);
    await until(async () => expect([...seen].sort()).toEqual(ended));
    done = true;
    await Promise.all(pollers);
    expect(await stream.poll()).toEqual({ sets: {}, moreAvailable: false });
    await stream.remove();
  });

  test("a verification event waits until it is acknowledged", async () => {
    const stream = await polledStream();
    const { stream_id } = stream;
    expect((await receiver.post("verification_endpoint", { stream_id, state: "s1" })).status).toBe(204);
    const { sets } = await stream.poll();
    expect((await stream.poll()).sets).toHaveProperty(Object.keys(sets));
    const token = await receiver.verify(Object.values(sets)[0] ?? "", "receiver");
    expect(token).toMatchObject({
      sub_id: { format: "opaque", id: stream_id },
      events: { [VERIFICATION]: { state: "s1" } },
    });
    expect((await receiver.post("verification_endpoint", { stream_id, state: "s2" })).status).toBe(204);
    const second = await stream.poll({ ack: Object.keys(sets) });
    expect(Object.keys(second.sets)).toHaveLength(1);
    const events = (await receiver.verify(Object.values(second.sets)[0] ?? "", "receiver")).events;
    expect(events).toEqual({ [VERIFICATION]: { state: "s2" } });
    for (let waiting = 2; waiting <= 8; waiting++) {
      expect((await receiver.post("verification_endpoint", { stream_id })).status).toBe(204);
    }
    expect((await receiver.post("verification_endpoint", { stream_id })).status).toBe(429);
    await stream.remove();
  });

  test("a paused stream returns nothing until it is enabled, and a disabled one keeps nothing", async () => {
    const stream = await polledStream();
    const { stream_id } = stream;
    const set = async (status: string) => {
      expect((await receiver.post("status_endpoint", { stream_id, status })).status).toBe(200);
    };
    await set("paused");
    const paused = await end(1);
    expect((await stream.poll()).sets).toEqual({});
    await set("enabled");
    const polled = await stream.poll();
    expect(await sidsOf(polled)).toEqual(paused);
    await stream.poll({ ack: Object.keys(polled.sets) });
    await set("disabled");
    await end(1);
    expect((await stream.poll()).sets).toEqual({});
    await set("enabled");
    expect((await stream.poll()).sets).toEqual({});
    const enabled = await end(1);
    expect(await sidsOf(await stream.poll())).toEqual(enabled);
    await stream.remove();
  });

  test("a verification event is held while a stream is paused, and dropped while it is disabled", async () => {
    const stream = await polledStream();
    const { stream_id } = stream;
    const set = async (status: string) =>
      expect((await receiver.post("status_endpoint", { stream_id, status })).status).toBe(200);
    const verify = (state: string) => receiver.post("verification_endpoint", { stream_id, state });
    expect((await verify("too late")).status).toBe(204);
    await set("disabled");
    expect((await verify("dropped")).status).toBe(204);
    await set("paused");
    expect((await verify("held")).status).toBe(204);
    expect((await stream.poll()).sets).toEqual({});
    await set("enabled");
    const [token = "", ...others] = Object.values((await stream.poll()).sets);
    expect((await receiver.verify(token, "receiver")).events).toEqual({ [VERIFICATION]: { state: "held" } });
    expect(others).toEqual([]);
    await stream.remove();
  });

  test("what is filtered out is not returned, and holds up nothing", async () => {
    const stream = await polledStream();
    const { stream_id } = stream;
    const other = "https://schemas.openid.net/secevent/caep/event-type/credential-change";
    await receiver.streams("PATCH", { body: { stream_id, events_requested: [other] } });
    await end(3);
    expect(await stream.poll()).toEqual({ sets: {}, moreAvailable: false });
    await receiver.streams("PATCH", { body: { stream_id, events_requested: [SESSION_REVOKED] } });
    const ended = await end(1);
    expect(await sidsOf(await stream.poll())).toEqual(ended);
    await stream.remove();
  });

  test("a stream that requests it by name gets changes of claims, and none of their values", async () => {
    const plain = await polledStream();
    const stream = await polledStream();
    const { stream_id } = stream;
    const requested = { stream_id, events_requested: [TOKEN_CLAIMS_CHANGE, SESSION_REVOKED] };
    const { json } = await receiver.streams("PATCH", { body: requested });
    expect(new Set(json.events_delivered as string[])).toEqual(new Set(requested.events_requested));
    const { sid, accessToken } = await logIn({ ...service, adminToken: operator });
    for (const role of ["a value", "another"]) {
      const change = { sessionId: sid, claims: { role } };
      message(await openAdmin(service).call(admin.updateSession, change, bearer(operator)));
    }
    message(await openPublic(service).call(SessionService.method.logout, {}, bearer(accessToken)));
    const tokens = Object.values((await stream.poll()).sets);
    const payloads = await Promise.all(tokens.map((token) => receiver.verify(token, "receiver")));
    const change = (sv: number) => ({
      [TOKEN_CLAIMS_CHANGE]: { event_timestamp: expect.any(Number), initiating_entity: "admin", claims: { sv } },
    });
    expect(payloads.map(({ events }) => events)).toEqual([
      ...[change(1), change(2)],
      { [SESSION_REVOKED]: expect.objectContaining({ initiating_entity: "user" }) },
    ]);
    for (const { sub_id } of payloads) expect(sub_id).toMatchObject({ format: "complex", session: { id: sid } });
    expect(JSON.stringify(payloads)).not.toContain("a value");
    expect(Object.values((await plain.poll()).sets)).toHaveLength(1);
    await receiver.streams("PATCH", { body: { stream_id, events_requested: [TOKEN_CLAIMS_CHANGE] } });
    await end(1);
    expect(await stream.poll({ ack: Object.keys((await stream.poll()).sets) })).toMatchObject({ sets: {} });
    await Promise.all([plain.remove(), stream.remove()]);
  });

  test("a stream that requests it by name gets logins", async () => {
    const [plain, stream] = [await polledStream(), await polledStream()];
    const { stream_id } = stream;
    await receiver.streams("PATCH", { body: { stream_id, events_requested: [SESSION_ESTABLISHED] } });
    const { sid, subject } = await logIn({ ...service, adminToken: operator });
    const established = await until(async () => {
      const [token, ...others] = Object.values((await stream.poll()).sets);
      expect([token, others]).toEqual([expect.any(String), []]);
      return receiver.verify(String(token), "receiver");
    });
    expect(established.events).toEqual({ [SESSION_ESTABLISHED]: { event_timestamp: expect.any(Number) } });
    expect(established.sub_id).toMatchObject({ session: { id: sid }, user: { sub: subject } });
    expect(await plain.poll({ returnImmediately: true })).toMatchObject({ sets: {} });
    await Promise.all([plain.remove(), stream.remove()]);
  });

  test("a poll is checked", async () => {
    const stream = await polledStream();
    const poll = async (body: unknown, token?: string) =>
      (await receiver.call("POST", stream.endpoint_url, body, token)).status;
    const at = { returnImmediately: true };
    expect([await poll(at, "invalid"), await poll(at, tokenOf("reader")), await poll(at, tokenOf("other"))]).toEqual([
      401, 403, 404,
    ]);
    const ack = Array.from({ length: 1001 }, (_, one) => `id-${one}`);
    const setErrs = Object.fromEntries(ack.map((id) => [id, { err: "invalid_key" }]));
    for (const body of [
      ";{ broken",
      { ...at, maxEvents: -1 },
      { ...at, maxEvents: "many" },
      { ...at, ack },
      { setErrs },
    ]) {
      expect(await poll(body)).toBe(400);
    }
    await stream.remove();
    expect(await poll(at)).toBe(404);
  });
});

test("a poll that waits returns nothing once its credential is withdrawn, and nothing is lost", async () => {
  const { service, receiver, withdraw } = await startTransmitter();
  const { json } = await receiver.streams("POST", { body: {} });
  const { endpoint_url } = json.delivery as { readonly endpoint_url: string };
  const waiting = receiver.call("POST", endpoint_url, { returnImmediately: false });
  // When a later call has its response, the first one has probably been read. Otherwise it is refused as well.
  await receiver.call("POST", endpoint_url, { returnImmediately: true });
  await withdraw("receiver");
  await logOut(service);
  expect(await waiting).toMatchObject({ status: 401, json: { error: { code: "E001_AUTH_FAILURE" } } });
  await withdraw();
  const { json: polled } = await receiver.call("POST", endpoint_url, { returnImmediately: true });
  expect(Object.keys(polled.sets as object)).toHaveLength(1);
  await service.stop();
});

test("an instance returns what another has returned and nobody has acknowledged", async () => {
  const store = await storeOf("redis");
  const one = await startTransmitter(store.env);
  const two = await startTransmitter(store.env);
  const { json } = await one.receiver.streams("POST", { body: {} });
  const { endpoint_url } = json.delivery as { readonly endpoint_url: string };
  const poll = async (receiver: StreamReceiver, request: Json = {}) => {
    const reply = await receiver.call("POST", endpoint_url, { returnImmediately: true, ...request });
    return Object.keys((reply.json as unknown as Polled).sets).sort();
  };
  const { accessToken } = await logIn({ ...one.service, adminToken: operator });
  const waiting = two.receiver.call("POST", endpoint_url, {});
  message(await openPublic(one.service).call(SessionService.method.logout, {}, bearer(accessToken)));
  const found = await poll(one.receiver);
  expect(found).toHaveLength(1);
  expect(Object.keys(((await waiting).json as unknown as Polled).sets)).toEqual(found);
  await one.service.kill9();
  expect(await poll(two.receiver)).toEqual(found);
  expect(await poll(two.receiver, { ack: found })).toEqual([]);
  await two.service.stop();
  await store.stop();
});
