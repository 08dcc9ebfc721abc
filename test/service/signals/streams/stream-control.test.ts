/** Status, subjects and verification of event streams (SSF) that are delivered by push, on the running service. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { SignalsAdminService } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import type { Service } from "../../../support/service.ts";
import { bearer, logIn, message, openAdmin, openPublic } from "../../../support/sessions.ts";
import { until } from "../../../support/until.ts";
import { ISSUER, type Json, PUSH, SESSION_REVOKED, type StreamReceiver } from "../stream-receiver.ts";
import { startTransmitter, tokenOf } from "../stream-world.ts";
import { startReceiver } from "../world.ts";

const VERIFICATION = "https://schemas.openid.net/secevent/ssf/event-type/verification";
const STREAM_UPDATED = "https://schemas.openid.net/secevent/ssf/event-type/stream-updated";
const operator = "operator-".repeat(5);

let service: Service;
let receiver: StreamReceiver;
let other: StreamReceiver;
let limited: StreamReceiver;
beforeAll(async () => {
  // The rate limit for logins is off, because a test logs the same user in and out repeatedly, until the instance has read a change of the
  // stream.
  ({ service, receiver, other, limited } = await startTransmitter({ RATE_LIMIT_CREATE: "off" }));
});
afterAll(() => service.stop());

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

async function pushedStream(changes: Json = {}) {
  const endpoint = await startReceiver(() => 202);
  const delivery = { method: PUSH, endpoint_url: endpoint.url, authorization_header: "Bearer of-the-receiver" };
  const { json } = await receiver.streams("POST", { body: { delivery, ...changes } });
  const stream_id = String(json.stream_id);
  closing.push(async () => {
    await receiver.streams("DELETE", { id: stream_id });
    await endpoint.close();
  });
  const tokens = () => Promise.all(endpoint.received.map(({ body }) => receiver.verify(body, "receiver")));
  return { stream_id, endpoint, tokens };
}

const logOut = async (subject: string) => {
  const session = await logIn({ ...service, adminToken: operator }, { subject });
  message(await openPublic(service).call(SessionService.method.logout, {}, bearer(session.accessToken)));
};

const status = async (id: string) => {
  const reply = await receiver.call("GET", `${await receiver.endpoint("status_endpoint")}?stream_id=${id}`);
  return reply.status === 200 ? reply.json : reply.status;
};

test("a receiver with a client gets signals of the sessions of that client alone, by push and by poll, whatever it changes", async () => {
  const endpoint = await startReceiver(() => 202);
  const delivery = { method: PUSH, endpoint_url: endpoint.url };
  const [{ json: byPush }, { json: byPoll }] = [
    await limited.streams("POST", { body: { delivery } }),
    await limited.streams("POST", { body: {} }),
  ];
  const [pushed, polled] = [byPush, byPoll].map(({ stream_id }) => String(stream_id));
  for (const stream_id of [pushed, polled]) {
    const subject = { format: "opaque", id: "somebody" };
    await limited.post("remove_subject_endpoint", { stream_id, subject });
    await limited.post("add_subject_endpoint", { stream_id, subject });
    const body = { stream_id, description: "changed", ...(stream_id === pushed && { delivery }) };
    expect((await limited.streams("PUT", { body })).status).toBe(200);
  }
  const all = await pushedStream();
  const end = async (clientId: string) => {
    const session = await logIn({ ...service, adminToken: operator }, { clientId });
    message(await openPublic(service).call(SessionService.method.logout, {}, bearer(session.accessToken)));
    return session.sid;
  };
  const [first, last] = [await end("orders"), await end("billing"), await end("orders")].filter((_, at) => at !== 1);
  const sessionsIn = (tokens: readonly Json[]) =>
    tokens.map(({ sub_id }) => (sub_id as { session: { id: string } }).session?.id).sort();
  await until(async () => expect(sessionsIn(await all.tokens())).toHaveLength(3));
  const received = () => Promise.all(endpoint.received.map(({ body }) => limited.verify(body, "limited")));
  await until(async () => expect(sessionsIn((await received()) as Json[])).toEqual([first, last].sort()));
  const { endpoint_url } = byPoll.delivery as { readonly endpoint_url: string };
  const { json } = await limited.call("POST", endpoint_url, { returnImmediately: true });
  const sets = Object.values(json.sets as Record<string, string>);
  const verified = await Promise.all(sets.map((set) => limited.verify(set, "limited")));
  expect(sessionsIn(verified as Json[])).toEqual([first, last].sort());
  await endpoint.close();
});

describe("verification", () => {
  test("the event names the stream, has the state, and comes with the header of the receiver", async () => {
    const { stream_id, endpoint, tokens } = await pushedStream();
    const state = "VGhpcyBpcyBhbiBleGFtcGxlIHN0YXRlIHZhbHVlLgo=";
    const reply = await receiver.post("verification_endpoint", { stream_id, state });
    expect([reply.status, reply.text]).toEqual([204, ""]);
    await until(async () => expect(endpoint.received).toHaveLength(1));
    expect(endpoint.received[0]?.headers).toMatchObject({
      authorization: "Bearer of-the-receiver",
      "content-type": "application/secevent+jwt",
    });
    const [token] = await tokens();
    expect(token).toMatchObject({ sub_id: { format: "opaque", id: stream_id }, events: { [VERIFICATION]: { state } } });
  });

  test.each(["PATCH", "PUT"] as const)(
    "the header stays when a receiver sends what it has read: %s",
    async (method) => {
      const { stream_id, endpoint } = await pushedStream();
      const { json } = await receiver.streams("GET", { id: stream_id });
      expect((await receiver.streams(method, { body: json })).status).toBe(200);
      expect((await receiver.post("verification_endpoint", { stream_id })).status).toBe(204);
      await until(async () => expect(endpoint.received).toHaveLength(1));
      expect(endpoint.received[0]?.headers).toHaveProperty("authorization", "Bearer of-the-receiver");
    },
  );

  test("without a state the event has none, and without a header of the receiver the request has none", async () => {
    const endpoint = await startReceiver(() => 202);
    closing.push(endpoint.close);
    const { stream_id, tokens } = await pushedStream({ delivery: { method: PUSH, endpoint_url: endpoint.url } });
    expect((await receiver.post("verification_endpoint", { stream_id })).status).toBe(204);
    await until(async () => expect(endpoint.received).toHaveLength(1));
    expect(endpoint.received[0]?.headers).not.toHaveProperty("authorization");
    const token = await receiver.verify(endpoint.received[0]?.body ?? "", "receiver");
    expect(token.events).toEqual({ [VERIFICATION]: {} });
    expect(await tokens()).toEqual([]);
  });
});

test("a receiver that is slow leaves room for the events of others", async () => {
  const requests: ServerResponse[] = [];
  const slow = createServer((_, response) => void requests.push(response));
  await new Promise<void>((resolve) => slow.listen(0, "127.0.0.1", resolve));
  closing.push(async () => {
    slow.closeAllConnections();
    await new Promise((resolve) => slow.close(resolve));
  });
  const { port } = slow.address() as AddressInfo;
  const delivery = { method: PUSH, endpoint_url: `http://127.0.0.1:${port}/` };
  const statuses: number[][] = [];
  for (let streams = 0; streams < 3; streams++) {
    const { stream_id } = await pushedStream({ delivery });
    const ofStream: number[] = [];
    for (let at = 0; at < 5; at++) ofStream.push((await receiver.post("verification_endpoint", { stream_id })).status);
    statuses.push(ofStream);
  }
  expect(statuses).toEqual([
    [204, 204, 204, 204, 429],
    [204, 204, 204, 204, 429],
    [429, 429, 429, 429, 429],
  ]);
  const fast = await startReceiver(() => 202);
  closing.push(fast.close);
  const { json } = await other.streams("POST", { body: { delivery: { method: PUSH, endpoint_url: fast.url } } });
  expect((await other.post("verification_endpoint", { stream_id: String(json.stream_id) })).status).toBe(204);
  await until(async () => expect(fast.received).toHaveLength(1));
  for (const response of requests) response.writeHead(202).end();
  await other.streams("DELETE", { id: String(json.stream_id) });
});

describe("status", () => {
  test("each status is returned as it was set, with its reason", async () => {
    const { stream_id } = await pushedStream();
    expect(await status(stream_id)).toEqual({ stream_id, status: "enabled" });
    for (const one of ["paused", "disabled", "enabled", "paused", "enabled"]) {
      const body = { stream_id, status: one, reason: `wants ${one}` };
      const reply = await receiver.post("status_endpoint", body);
      expect([reply.status, reply.json]).toEqual([200, body]);
      expect(await status(stream_id)).toEqual(body);
    }
    await receiver.post("status_endpoint", { stream_id, status: "paused" });
    expect(await status(stream_id)).toEqual({ stream_id, status: "paused" });
  });

  test("what happens while a stream is paused is sent later", async () => {
    const { stream_id, tokens } = await pushedStream();
    const set = (one: string) => receiver.post("status_endpoint", { stream_id, status: one });
    await set("paused");
    await logOut("while-paused");
    await set("enabled");
    await until(async () => expect(JSON.stringify(await tokens())).toContain("while-paused"));
  });

  test("a verification event is held while a stream is paused, and dropped while it is disabled", async () => {
    const { stream_id, tokens } = await pushedStream();
    const set = (one: string) => receiver.post("status_endpoint", { stream_id, status: one });
    const verify = async (state: string) => {
      expect((await receiver.post("verification_endpoint", { stream_id, state })).status).toBe(204);
    };
    await set("paused");
    await verify("gone");
    await set("disabled");
    await verify("dropped");
    await set("paused");
    await verify("held");
    await set("enabled");
    await until(async () => expect(await tokens()).toHaveLength(1));
    await verify("at once");
    await until(async () => expect(await tokens()).toHaveLength(2));
    const states = (await tokens()).map(({ events }) => (events as Record<string, Json>)[VERIFICATION]?.state);
    expect(states).toEqual(["held", "at once"]);
  });

  test("what was held while an operator had paused a stream is sent when the operator resumes it", async () => {
    const { stream_id, tokens } = await pushedStream();
    const { pauseSubscription, resumeSubscription } = SignalsAdminService.method;
    const admin = openAdmin(service);
    message(await admin.call(pauseSubscription, { subscriptionId: stream_id }, bearer(operator)));
    await receiver.post("verification_endpoint", { stream_id, state: "held" });
    await until(async () => expect(await tokens()).toHaveLength(1));
    message(await admin.call(resumeSubscription, { subscriptionId: stream_id }, bearer(operator)));
    await until(async () => expect(await tokens()).toHaveLength(3));
    const types = (await tokens()).flatMap(({ events }) => Object.keys(events as object));
    expect(types.sort()).toEqual([STREAM_UPDATED, STREAM_UPDATED, VERIFICATION].sort());
  });

  test.each(["paused", "disabled"])(
    "after a pause by an operator a stream is %s again, as its receiver wants",
    async (one) => {
      const { stream_id, tokens } = await pushedStream();
      const { pauseSubscription, resumeSubscription } = SignalsAdminService.method;
      const admin = openAdmin(service);
      await receiver.post("status_endpoint", { stream_id, status: one });
      message(await admin.call(pauseSubscription, { subscriptionId: stream_id }, bearer(operator)));
      expect(await status(stream_id)).toMatchObject({ status: "paused", reason: "paused by an operator" });
      message(await admin.call(resumeSubscription, { subscriptionId: stream_id }, bearer(operator)));
      expect(await status(stream_id)).toEqual({ stream_id, status: one });
      await logOut(`while-${one}`);
      await receiver.post("status_endpoint", { stream_id, status: "enabled" });
      await logOut("while-enabled");
      await until(async () => expect(JSON.stringify(await tokens())).toContain("while-enabled"));
      expect(JSON.stringify(await tokens()).includes(`while-${one}`)).toBe(one === "paused");
    },
  );

  test("an operator who pauses a stream tells its receiver, which cannot enable it", async () => {
    const { stream_id, tokens } = await pushedStream();
    const { pauseSubscription, resumeSubscription } = SignalsAdminService.method;
    const admin = openAdmin(service);
    message(await admin.call(pauseSubscription, { subscriptionId: stream_id }, bearer(operator)));
    const reason = "paused by an operator";
    expect(await status(stream_id)).toEqual({ stream_id, status: "paused", reason });
    expect((await receiver.post("status_endpoint", { stream_id, status: "enabled" })).status).toBe(403);
    await until(async () => expect(await tokens()).toHaveLength(1));
    message(await admin.call(resumeSubscription, { subscriptionId: stream_id }, bearer(operator)));
    await until(async () => expect(await tokens()).toHaveLength(2));
    expect(await status(stream_id)).toEqual({ stream_id, status: "enabled" });
    expect((await tokens()).map(({ events }) => events)).toEqual([
      { [STREAM_UPDATED]: { status: "paused", reason } },
      { [STREAM_UPDATED]: { status: "enabled", reason: "resumed by an operator" } },
    ]);
  });

  test.each([{ status: "asleep" }, {}, ";{ broken"])("%s is a bad request", async (body) => {
    const { stream_id } = await pushedStream();
    const sent = typeof body === "string" ? body : { stream_id, ...body };
    expect((await receiver.post("status_endpoint", sent)).status).toBe(400);
  });
});

describe("subjects", () => {
  test("a subject that is removed is reported no more, until it is added again", async () => {
    const { stream_id, tokens } = await pushedStream();
    const subject = { format: "iss_sub", iss: ISSUER, sub: "alice" };
    const removed = await receiver.post("remove_subject_endpoint", { stream_id, subject });
    expect([removed.status, removed.text]).toEqual([204, ""]);
    // Signals wait while the stream is paused, so the instance reads the removal of the subject before it sends them.
    await receiver.post("status_endpoint", { stream_id, status: "paused" });
    await logOut("alice");
    await logOut("bob");
    await receiver.post("status_endpoint", { stream_id, status: "enabled" });
    await until(async () => expect(await tokens()).toHaveLength(1));
    expect(await tokens()).toMatchObject([
      { sub_id: { format: "complex", user: { sub: "bob" } }, events: { [SESSION_REVOKED]: expect.anything() } },
    ]);
    const added = await receiver.post("add_subject_endpoint", { stream_id, subject, verified: true });
    expect(added.status).toBe(200);
    await until(async () => {
      await logOut("alice");
      expect(JSON.stringify(await tokens())).toContain("alice");
    });
  });

  test.each([
    [{ format: "email", email: "example.user@example.com" }, 200, 204],
    [{ format: "opaque", id: "carol" }, 200, 204],
    [{ format: "complex", user: { format: "iss_sub", iss: ISSUER, sub: "carol" } }, 200, 204],
    [{ format: "iss_sub", iss: "https://another.example", sub: "carol" }, 404, 404],
    [{ format: "complex", user: { format: "opaque", id: "carol" }, device: { format: "opaque", id: "1" } }, 404, 404],
    [{ format: "phone_number", phone_number: "+12065550123" }, 404, 404],
    [{ format: "email" }, 400, 400],
    [{ id: "carol" }, 400, 400],
  ])("%j", async (subject, toAdd, toRemove) => {
    const { stream_id } = await pushedStream();
    expect((await receiver.post("add_subject_endpoint", { stream_id, subject })).status).toBe(toAdd);
    expect((await receiver.post("remove_subject_endpoint", { stream_id, subject })).status).toBe(toRemove);
  });

  test("a stream is without 100 subjects at the most", async () => {
    const { stream_id } = await pushedStream();
    const remove = (id: string) =>
      receiver.post("remove_subject_endpoint", { stream_id, subject: { format: "opaque", id } });
    for (let at = 0; at < 100; at++) expect((await remove(`subject-${at}`)).status).toBe(204);
    expect((await remove("one-more")).status).toBe(400);
    expect((await remove("subject-7")).status).toBe(204);
  });
});

test.each([
  ["status_endpoint", { status: "paused" }],
  ["add_subject_endpoint", { subject: { format: "opaque", id: "a" } }],
  ["remove_subject_endpoint", { subject: { format: "opaque", id: "a" } }],
  ["verification_endpoint", {}],
] as const)("%s is for the credential that has created the stream", async (name, body) => {
  const { stream_id } = await pushedStream();
  const call = async (token: string) => (await receiver.post(name, { stream_id, ...body }, token)).status;
  expect([await call("invalid"), await call(tokenOf("reader")), await call(tokenOf("other"))]).toEqual([401, 403, 404]);
  expect((await other.post(name, { stream_id: "0123456789abcdef", ...body })).status).toBe(404);
});
