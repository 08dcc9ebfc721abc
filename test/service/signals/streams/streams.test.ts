/** The endpoints of a transmitter of SSF 1.0 on the running service, as a receiver calls them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Service } from "../../../support/service.ts";
import {
  ISSUER,
  type Json,
  POLL,
  PUSH,
  SESSION_ESTABLISHED,
  SESSION_REVOKED,
  SIGNALS_URL,
  type StreamReceiver,
  TOKEN_CLAIMS_CHANGE,
} from "../stream-receiver.ts";
import { startTransmitter, tokenOf } from "../stream-world.ts";

let service: Service;
let receiver: StreamReceiver;
let other: StreamReceiver;
beforeAll(async () => {
  ({ service, receiver, other } = await startTransmitter());
});
afterAll(() => service.stop());

const endpoint_url = "https://receiver.example/events";
const OF_OTHERS = "https://schemas.openid.net/secevent/caep/event-type/credential-change";

/** The errors of RFC 6750 section 3.1. */
const REFUSALS = [
  ["", 401, "Bearer"],
  ["invalid", 401, 'Bearer error="invalid_token"'],
  [tokenOf("reader"), 403, 'Bearer error="insufficient_scope", scope="signals:receive"'],
] as const;

async function created(body: unknown = {}): Promise<Json & { readonly stream_id: string }> {
  const reply = await receiver.streams("POST", { body });
  expect([reply.status, reply.type]).toEqual([201, "application/json"]);
  return reply.json as Json & { readonly stream_id: string };
}

test("the configuration of the transmitter is found by its issuer, and has https endpoints alone", async () => {
  const metadata = await receiver.discover();
  expect(metadata).toMatchObject({
    spec_version: "1_0",
    issuer: ISSUER,
    jwks_uri: `${ISSUER}/.well-known/jwks.json`,
    delivery_methods_supported: [PUSH, POLL],
    authorization_schemes: [{ spec_urn: "urn:ietf:rfc:6750" }],
    default_subjects: "ALL",
  });
  for (const [name, value] of Object.entries(metadata)) {
    if (name.endsWith("_endpoint") || name === "jwks_uri") expect(value).toMatch(/^https:/);
    if (Array.isArray(value)) expect(value).not.toEqual([]);
  }
  const same = await receiver.call("GET", `${new URL(ISSUER).origin}/.well-known/ssf-configuration`, undefined, "");
  expect(same.json).toEqual(metadata);
});

describe("stream configuration", () => {
  test("a stream is by poll if nothing else is asked for, and has all that the specification requires", async () => {
    const stream = await created();
    expect(stream).toEqual({
      stream_id: expect.stringMatching(/^[0-9a-f]{32}$/),
      iss: ISSUER,
      aud: ["receiver"],
      events_supported: [SESSION_REVOKED, TOKEN_CLAIMS_CHANGE, SESSION_ESTABLISHED],
      events_requested: [],
      events_delivered: [SESSION_REVOKED],
      delivery: { method: POLL, endpoint_url: `${SIGNALS_URL}/v1/ssf/poll/${stream.stream_id}` },
    });
    const read = await receiver.streams("GET", { id: stream.stream_id });
    expect([read.status, read.json]).toEqual([200, stream]);
  });

  test("a stream by push never shows the header that its receiver wants", async () => {
    const delivery = { method: PUSH, endpoint_url, authorization_header: "Bearer secret-of-the-receiver" };
    const stream = await created({ delivery, description: "a test", events_requested: [SESSION_REVOKED, OF_OTHERS] });
    expect(stream).toMatchObject({
      description: "a test",
      events_requested: [SESSION_REVOKED, OF_OTHERS],
      events_delivered: [SESSION_REVOKED],
      delivery: { method: PUSH, endpoint_url },
    });
    for (const id of [stream.stream_id, undefined]) {
      const read = await receiver.streams("GET", id === undefined ? {} : { id });
      expect(read.text).toContain(stream.stream_id);
      expect(read.text).not.toContain("secret-of-the-receiver");
      expect(read.text).not.toContain("authorization_header");
    }
  });

  test("an update changes what is sent alone, and a replacement removes what is not sent", async () => {
    const stream = await created({ description: "before", events_requested: [OF_OTHERS] });
    expect(stream.events_delivered).toEqual([]);
    const { stream_id } = stream;
    const updated = await receiver.streams("PATCH", { body: { stream_id, events_requested: [SESSION_REVOKED] } });
    const changed = { events_requested: [SESSION_REVOKED], events_delivered: [SESSION_REVOKED] };
    expect([updated.status, updated.json]).toEqual([200, { ...stream, ...changed }]);
    const delivery = { method: PUSH, endpoint_url };
    const pushed = await receiver.streams("PATCH", { body: { stream_id, delivery } });
    expect(pushed.json).toEqual({ ...stream, ...changed, delivery });
    // A receiver may send the representation that it has read back to the endpoint.
    const replaced = await receiver.streams("PUT", { body: { ...pushed.json, description: "after" } });
    expect([replaced.status, replaced.json]).toEqual([200, { ...pushed.json, description: "after" }]);
    const emptied = await receiver.streams("PUT", { body: { stream_id } });
    const { description: _, ...bare } = stream;
    expect(emptied.json).toEqual({ ...bare, events_requested: [], events_delivered: [SESSION_REVOKED] });
    expect((await receiver.streams("GET", { id: stream_id })).json).toEqual(emptied.json);
  });

  test("what the transmitter sets cannot be changed", async () => {
    const { stream_id } = await created();
    for (const method of ["PATCH", "PUT"]) {
      for (const change of [{ iss: "https://evil.example" }, { aud: ["another"] }, { events_delivered: [OF_OTHERS] }]) {
        const reply = await receiver.streams(method, { body: { stream_id, ...change } });
        const [name] = Object.keys(change);
        expect([reply.status, reply.text], method).toEqual([
          400,
          expect.stringContaining(`${name}: is set by the transmitter`),
        ]);
      }
    }
  });

  test("a stream is deleted once, and is then unknown to every call", async () => {
    const { stream_id } = await created();
    const deleted = await receiver.streams("DELETE", { id: stream_id });
    expect([deleted.status, deleted.text]).toEqual([204, ""]);
    expect((await receiver.streams("DELETE", { id: stream_id })).status).toBe(404);
    expect((await receiver.streams("GET", { id: stream_id })).status).toBe(404);
    for (const method of ["PATCH", "PUT"]) {
      expect((await receiver.streams(method, { body: { stream_id } })).status).toBe(404);
    }
  });

  test("a receiver has a bounded number of streams", async () => {
    const replies: number[] = [];
    const ids: string[] = [];
    for (let at = 0; at < 33; at++) {
      const { status, json } = await other.streams("POST", { body: {} });
      replies.push(status);
      if (status === 201) ids.push(String(json.stream_id));
    }
    expect(new Set(replies.slice(0, 32))).toEqual(new Set([201]));
    expect(replies[32]).toBe(400);
    for (const id of ids) await other.streams("DELETE", { id });
    const again = await other.streams("POST", { body: {} });
    expect(again.status).toBe(201);
    await other.streams("DELETE", { id: String(again.json.stream_id) });
  });

  test("a receiver has its own streams, and nobody else's", async () => {
    const { stream_id } = await created();
    expect((await other.streams("GET")).text).toBe("[]");
    expect((await other.streams("GET", { id: stream_id })).status).toBe(404);
    expect((await other.streams("DELETE", { id: stream_id })).status).toBe(404);
    expect((await other.streams("PATCH", { body: { stream_id, description: "mine" } })).status).toBe(404);
    expect((await receiver.streams("GET")).text).toContain(stream_id);
  });

  test.each(["POST", "GET", "PATCH", "PUT", "DELETE"])("%s needs a credential with the scope", async (method) => {
    const id = "0123456789abcdef";
    const body = method === "GET" || method === "DELETE" ? undefined : { stream_id: id };
    const refusals = REFUSALS.map(async ([token]) => {
      const { status, challenge } = await receiver.streams(method, { id, body, token });
      return [token, status, challenge];
    });
    expect(await Promise.all(refusals)).toEqual(REFUSALS);
  });

  test.each([
    ["GET", "status_endpoint"],
    ["POST", "status_endpoint"],
    ["POST", "verification_endpoint"],
    ["POST", "add_subject_endpoint"],
    ["POST", "remove_subject_endpoint"],
    ["POST", "poll endpoint"],
  ])("%s to the %s needs the credential, too, and knows no other streams", async (method, name) => {
    const id = "0123456789abcdef";
    const url = name === "poll endpoint" ? `${SIGNALS_URL}/v1/ssf/poll/${id}` : await receiver.endpoint(name);
    const subject = { format: "opaque", id: "user" };
    const request = { stream_id: id, ...(name === "status_endpoint" && { status: "paused" }) };
    const body = name.includes("subject") ? { ...request, subject } : name === "poll endpoint" ? {} : request;
    const call = (token?: string) =>
      method === "GET"
        ? receiver.call(method, `${url}?stream_id=${id}`, undefined, token)
        : receiver.call(method, url, body, token);
    const refusals = REFUSALS.map(async ([token]) => {
      const { status, challenge } = await call(token);
      return [token, status, challenge];
    });
    expect(await Promise.all(refusals)).toEqual(REFUSALS);
    expect((await call()).status).toBe(404);
    if (method === "POST") expect((await receiver.call(method, url, '{"stream_id": ')).status).toBe(400);
  });

  test("a token in the URL is none", async () => {
    const url = `${await receiver.endpoint("configuration_endpoint")}?access_token=${tokenOf("receiver")}`;
    expect((await receiver.call("GET", url, undefined, "")).status).toBe(401);
  });

  test.each([
    ["no JSON", ";{ broken"],
    ["no object", "[]"],
    ["an unknown method", { delivery: { method: "urn:example:pigeon" } }],
    ["http to a public address", { delivery: { method: PUSH, endpoint_url: "http://8.8.8.8/" } }],
    ["no endpoint", { delivery: { method: PUSH } }],
    ["a link-local endpoint", { delivery: { method: PUSH, endpoint_url: "https://169.254.169.254/" } }],
    ["a header with a line break", { delivery: { method: PUSH, endpoint_url, authorization_header: "a\r\nb: c" } }],
    ["a long description", { description: "x".repeat(1025) }],
    ["too many types", { events_requested: Array.from({ length: 65 }, (_, at) => `urn:${at}`) }],
  ])("%s is a bad request", async (_, body) => {
    const { stream_id } = await created();
    expect((await receiver.streams("POST", { body })).status).toBe(400);
    const sent = typeof body === "string" ? body : { stream_id, ...body };
    for (const method of ["PATCH", "PUT"]) expect((await receiver.streams(method, { body: sent })).status).toBe(400);
  });
});
