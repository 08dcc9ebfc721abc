/** What a stream's configuration becomes in its subscription, and back (SSF 1.0 section 8.1.1). */
import { describe, expect, test } from "vitest";
import type { SubscriptionDefinition } from "../../../../src/service/signals/model.ts";
import {
  configurationOf,
  isDisabled,
  isStream,
  metadataPaths,
  newDefinition,
  type StreamPlace,
  type StreamSubscription,
  transmitterMetadata,
  withDelivery,
  withProperties,
} from "../../../../src/service/signals/streams/configuration.ts";
import { ENDPOINT, ISSUER, POLL, PUSH } from "../managed-world.ts";
import { SESSION_ESTABLISHED, SESSION_REVOKED, TOKEN_CLAIMS_CHANGE } from "../stream-receiver.ts";

const OF_OTHERS = "https://schemas.openid.net/secevent/caep/event-type/credential-change";
const place: StreamPlace = {
  ...{ issuer: ISSUER, url: "https://signals.example/api", verificationIntervalMs: 0, forInterop: false },
};
const deps = { ...place, targets: { allowPrivate: false }, seal: (secret: string) => `sealed ${secret}` };
const polled: SubscriptionDefinition = {
  ...{ kind: "ssf_poll", filter: {}, audience: ["receiver"], stream: { owner: "receiver" } },
};
const asStored = (definition: SubscriptionDefinition, more = {}) =>
  ({ id: "id", state: "active", ...definition, ...more }) as StreamSubscription;

describe("the types of events that a stream requests", () => {
  test.each([
    ["none", [], [SESSION_REVOKED], {}],
    ["the end of sessions", [SESSION_REVOKED], [SESSION_REVOKED], {}],
    ["updates", [TOKEN_CLAIMS_CHANGE], [TOKEN_CLAIMS_CHANGE], { events: ["session.updated"] }],
    ["creations", [SESSION_ESTABLISHED], [SESSION_ESTABLISHED], { events: ["session.created"] }],
    [
      "ends and updates, in another order",
      [TOKEN_CLAIMS_CHANGE, SESSION_REVOKED],
      [SESSION_REVOKED, TOKEN_CLAIMS_CHANGE],
      { events: ["session.ended", "session.updated"] },
    ],
    ["a type that is not supported", [OF_OTHERS], [], { reasons: [] }],
    ["another one beside it", [OF_OTHERS, SESSION_REVOKED], [SESSION_REVOKED], {}],
  ])("%s", (_, eventsRequested, eventsDelivered, filter) => {
    const definition = newDefinition(deps, "receiver", undefined, { eventsRequested });
    expect(definition.filter).toStrictEqual(filter);
    const ofClient = newDefinition(deps, "receiver", "orders", { eventsRequested });
    expect(ofClient.filter).toStrictEqual({ ...filter, clientId: "orders" });
    expect(configurationOf(asStored(definition), place)).toMatchObject({ eventsRequested, eventsDelivered });
  });

  test("are replaced, and what else the filter has stays", () => {
    const before = { ...polled, filter: { reasons: [], events: [], exceptSubjects: ["alice"] } };
    const after = withProperties(before, { eventsRequested: [TOKEN_CLAIMS_CHANGE] });
    expect(after.filter).toEqual({ exceptSubjects: ["alice"], events: ["session.updated"] });
    expect(withProperties(after, { eventsRequested: [] })).toStrictEqual({
      ...polled,
      filter: { exceptSubjects: ["alice"] },
    });
  });
});

test("properties are replaced as a whole, and the other settings of the stream stay", () => {
  const stream = { owner: "receiver", description: "before", eventsRequested: [OF_OTHERS], wanted: "paused" } as const;
  expect(withProperties({ ...polled, stream }, { eventsRequested: [] })).toStrictEqual({
    ...{ ...polled, stream: { owner: "receiver", wanted: "paused" } },
  });
  expect(
    withProperties({ ...polled, stream }, { description: "", eventsRequested: [SESSION_REVOKED] }).stream,
  ).toStrictEqual({
    ...{ owner: "receiver", wanted: "paused", description: "", eventsRequested: [SESSION_REVOKED] },
  });
});

describe("a delivery", () => {
  const push = { method: PUSH, endpointUrl: ENDPOINT };
  const pushed = { ...polled, kind: "ssf_push", endpoint: ENDPOINT } as const;

  test("is by poll if none is asked for, or if it is, and then has neither endpoint nor header", () => {
    const before = { ...pushed, sealedSecret: "sealed" };
    expect(withDelivery(deps, before, undefined)).toEqual(polled);
    const delivery = { method: POLL, endpointUrl: ENDPOINT, authorizationHeader: "Bearer x" };
    expect(withDelivery(deps, before, delivery)).toEqual(polled);
  });

  test("by push is replaced as a whole, its header included, which is stored sealed", () => {
    expect(withDelivery(deps, polled, { ...push, authorizationHeader: "Bearer ~" })).toEqual({
      ...{ ...pushed, sealedSecret: "sealed Bearer ~" },
    });
    expect(withDelivery(deps, { ...pushed, sealedSecret: "sealed" }, push)).toEqual(pushed);
  });

  test.each([
    [{ ...push, method: "urn:example:pigeon" }, `delivery.method: is neither ${PUSH} nor ${POLL}`],
    [{ ...push, endpointUrl: "http://receiver.example/" }, "delivery.endpoint_url: is not an allowed URL"],
    [{ ...push, authorizationHeader: "\nBearer" }, "delivery.authorization_header: is not a header's value"],
    [{ ...push, authorizationHeader: "Bearer\n" }, "delivery.authorization_header: is not a header's value"],
  ])("%j is refused", (delivery, message) => {
    expect(() => withDelivery(deps, polled, delivery)).toThrow(message);
  });
});

describe("what a receiver reads", () => {
  test("is the endpoint of its own delivery by push, and never its header", () => {
    const delivery = { method: PUSH, endpointUrl: ENDPOINT };
    const wanted = { description: "a test", eventsRequested: [], delivery: { ...delivery, authorizationHeader: "x" } };
    expect(configurationOf(asStored(newDefinition(deps, "receiver", undefined, wanted)), place)).toEqual({
      ...{ streamId: "id", iss: ISSUER, aud: ["receiver"], description: "a test", delivery },
      eventsSupported: [SESSION_REVOKED, TOKEN_CLAIMS_CHANGE, SESSION_ESTABLISHED],
      ...{ eventsRequested: [], eventsDelivered: [SESSION_REVOKED] },
    });
  });

  test("is the endpoint of the service for polls", () => {
    const { delivery, ...rest } = configurationOf(asStored(polled), place);
    expect(delivery).toEqual({ method: POLL, endpointUrl: "https://signals.example/api/v1/ssf/poll/id" });
    expect(rest).not.toHaveProperty("description");
  });

  test.each([
    [0, undefined],
    [1, 1],
    [1_000, 1],
    [10_001, 11],
  ])("is the interval of %d ms between verification events in whole seconds, no shorter", (ms, seconds) => {
    const configuration = configurationOf(asStored(polled), { ...place, verificationIntervalMs: ms });
    expect(configuration.minVerificationInterval).toBe(seconds);
    expect("minVerificationInterval" in configuration).toBe(seconds !== undefined);
  });
});

test("a subscription of an operator is no stream, and a stream is disabled by its receiver alone", () => {
  const { stream: _, ...definition } = polled;
  expect([isStream(asStored(polled)), isStream(asStored(definition))]).toEqual([true, false]);
  const states = [
    { state: "active" },
    { state: "paused", because: "receiver" },
    { state: "paused", because: "disabled" },
  ];
  expect(states.map((state) => isDisabled(asStored(polled, state)))).toEqual([false, false, true]);
});

describe("the metadata of the transmitter", () => {
  test("has the endpoints below the service's URL", () => {
    expect(transmitterMetadata(place)).toEqual({
      ...{ spec_version: "1_0", issuer: ISSUER, jwks_uri: `${ISSUER}/.well-known/jwks.json` },
      delivery_methods_supported: [PUSH, POLL],
      configuration_endpoint: "https://signals.example/api/v1/ssf/streams",
      status_endpoint: "https://signals.example/api/v1/ssf/status",
      add_subject_endpoint: "https://signals.example/api/v1/ssf/subjects:add",
      remove_subject_endpoint: "https://signals.example/api/v1/ssf/subjects:remove",
      verification_endpoint: "https://signals.example/api/v1/ssf/verification",
      authorization_schemes: [{ spec_urn: "urn:ietf:rfc:6750" }],
      default_subjects: "ALL",
    });
  });

  test("has OAuth 2.0 as well for the CAEP interoperability profile", () => {
    expect(transmitterMetadata({ ...place, forInterop: true }).authorization_schemes).toEqual([
      { spec_urn: "urn:ietf:rfc:6749" },
      { spec_urn: "urn:ietf:rfc:6750" },
    ]);
  });

  test.each([
    ["https://auth.example", "https://auth.example/.well-known/jwks.json", ["/.well-known/ssf-configuration"]],
    ["https://auth.example/", "https://auth.example/.well-known/jwks.json", ["/.well-known/ssf-configuration"]],
    [
      "https://auth.example/a/b/",
      "https://auth.example/a/b/.well-known/jwks.json",
      ["/.well-known/ssf-configuration", "/.well-known/ssf-configuration/a/b"],
    ],
  ])("of %s is found at the well-known path before its own (SSF 1.0 section 7.2)", (issuer, jwks, paths) => {
    expect(transmitterMetadata({ ...place, issuer }).jwks_uri).toBe(jwks);
    expect(metadataPaths(issuer)).toEqual(paths);
  });
});
