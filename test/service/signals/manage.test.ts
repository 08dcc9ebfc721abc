/** What an operator does with subscriptions, for every outcome (docs/tasks/signals.md). */
import { describe, expect, test } from "vitest";
import type { SessionId } from "../../../src/service/session/model.ts";
import { StoreUnavailable } from "../../../src/service/session/ports.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import type { PushKind } from "../../../src/service/signals/kinds/request.ts";
import {
  createSubscription,
  deleteSubscription,
  getSubscription,
  type NewSubscription,
  overseeSubscriptions,
  setSubscriptionState,
  testSubscription,
} from "../../../src/service/signals/manage.ts";
import { MAX_SUBSCRIPTIONS, SIGNAL_EVENTS } from "../../../src/service/signals/model.ts";
import { updateStatus } from "../../../src/service/signals/streams/status.ts";
import { newSession, nonce } from "../../support/store/sessions.ts";
import { ENDPOINT, ISSUER, NOW, openSignals, operator, quiet, receiver } from "./managed-world.ts";

type Deps = ReturnType<typeof openSignals>["deps"];

const WEBHOOK_SECRET = `whsec_${"A".repeat(32)}`;

/** Returns a subscription of a kind that breaks no rule. */
function wanted(kind: PushKind, changes: Partial<NewSubscription> = {}): NewSubscription {
  const audience = kind === "webhook" ? [] : ["app"];
  return { kind, endpoint: ENDPOINT, filter: {}, audience, secret: "", signingAlg: "", ...changes };
}

describe("a new subscription", () => {
  const create = (kind: PushKind, changes?: Partial<NewSubscription>) => {
    const world = openSignals();
    return createSubscription(world.deps, wanted(kind, changes), operator);
  };

  test("is stored as it is wanted, begins active, and is audited", async () => {
    const { deps, audited } = openSignals();
    const filter = { subject: "alice" };
    const { subscription, generatedSecret } = await createSubscription(
      deps,
      wanted("ssf_push", { filter, secret: "Bearer x", signingAlg: "RS256" }),
      operator,
    );
    const { id } = subscription;
    expect(id).toMatch(/^[0-9a-f]{16}$/);
    expect(generatedSecret).toBe("");
    expect(subscription).toEqual({
      ...{ id, kind: "ssf_push", endpoint: ENDPOINT, filter, audience: ["app"] },
      ...{ sealedSecret: "x reraeB", signingAlg: "RS256" },
      ...{ state: "active", createdAt: NOW, failures: 0, delivered: 0, deadLetters: 0 },
    });
    expect(audited).toEqual([[{ event: "subscription_changed", subscription: id, change: "created" }, operator]]);
    expect(await getSubscription(deps, id)).toEqual(subscription);
  });

  test("of a webhook without a secret gets one of 32 bytes, which is stored sealed", async () => {
    const { subscription, generatedSecret } = await create("webhook");
    expect(generatedSecret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(subscription.sealedSecret).toBe([...generatedSecret].reverse().join(""));
    expect(subscription).not.toHaveProperty("signingAlg");
  });

  test("of a webhook with a secret keeps it, and shows none", async () => {
    const { subscription, generatedSecret } = await create("webhook", { secret: WEBHOOK_SECRET });
    expect([generatedSecret, subscription.sealedSecret]).toEqual(["", [...WEBHOOK_SECRET].reverse().join("")]);
  });

  test.each(["backchannel", "ssf_push"] as const)("of the kind %s gets no secret of its own", async (kind) => {
    const { subscription, generatedSecret } = await create(kind);
    expect(generatedSecret).toBe("");
    expect(subscription).not.toHaveProperty("sealedSecret");
  });

  test.each([
    ["webhook", { endpoint: "http://receiver.example/" }, "endpoint: is not an allowed URL"],
    ["webhook", { audience: ["app"] }, "audience: is not for webhooks"],
    ["backchannel", { audience: [] }, "audience: is required"],
    ["ssf_push", { audience: [] }, "audience: is required"],
    ["ssf_push", { audience: ["app", ""] }, "audience: has an entry that is empty or longer than 255 characters"],
    [
      "backchannel",
      { audience: ["app", "a".repeat(256)] },
      "audience: has an entry that is empty or longer than 255 characters",
    ],
    ["webhook", { signingAlg: "RS256" }, "signing_alg: is not for webhooks"],
    ["ssf_push", { signingAlg: "EdDSA" }, "signing_alg: is none of ES256, RS256, by which keys sign"],
    ["backchannel", { secret: "secret" }, "secret: is not for back-channel logout"],
    ["ssf_push", { secret: "\rBearer" }, "secret: is not a header's value"],
    ["ssf_push", { secret: "Bearer\n" }, "secret: is not a header's value"],
    ["ssf_push", { secret: "Bearer ä" }, "secret: is not a header's value"],
    ["webhook", { secret: "ä" }, "secret: is not a list of secrets of Standard Webhooks"],
    ["webhook", { secret: "guess-me" }, "secret: is not a list of secrets of Standard Webhooks"],
    ["webhook", { secret: `${WEBHOOK_SECRET} whsec_short` }, "secret: is not a list of secrets of Standard Webhooks"],
  ] as const)("%s is refused with %j", async (kind, changes, message) => {
    const { deps, audited } = openSignals();
    const created = createSubscription(deps, wanted(kind, changes), operator);
    await expect(created).rejects.toMatchObject({ code: "E400_INVALID_REQUEST", message });
    expect([await deps.subscriptions.list(), audited]).toEqual([[], []]);
  });

  test.each([
    ["webhook", { secret: `${WEBHOOK_SECRET} ${WEBHOOK_SECRET}` }],
    ["backchannel", { audience: ["app", "a".repeat(255)] }],
    ["backchannel", { signingAlg: "ES256" }],
    ["ssf_push", { secret: " ~" }],
  ] as const)("%s is accepted with %j", async (kind, changes) => {
    expect((await create(kind, changes)).subscription).toMatchObject({ kind, state: "active" });
  });

  test.each([
    ["webhook", ["ended", "created", "new_device", "updated"], []],
    ["ssf_push", ["ended", "created", "updated"], ["new_device"]],
    ["backchannel", ["ended"], ["created", "new_device", "updated"]],
  ] as const)("%s is sent %j, and not %j", async (kind, sent, refused) => {
    const events = sent.map((one) => SIGNAL_EVENTS[one]);
    expect((await create(kind, { filter: { events } })).subscription.filter.events).toEqual(events);
    for (const one of refused) {
      await expect(create(kind, { filter: { events: [...events, SIGNAL_EVENTS[one]] } })).rejects.toMatchObject({
        message: `filter.events: ${SIGNAL_EVENTS[one]} is not sent to this kind`,
      });
    }
  });

  test("is refused beyond the greatest number", async () => {
    const { deps } = openSignals();
    const create = () => createSubscription(deps, wanted("webhook"), operator);
    for (let count = 0; count < MAX_SUBSCRIPTIONS; count++) await create();
    await expect(create()).rejects.toMatchObject({
      message: `there are ${MAX_SUBSCRIPTIONS} subscriptions, and there may be no more`,
    });
  });
});

test("a subscription that does not exist is not found", async () => {
  const { deps, store } = openSignals();
  const notFound = { code: "E404_NOT_FOUND" };
  const testLimit = { take: () => undefined, giveBack() {} };
  await expect(getSubscription(deps, "none")).rejects.toMatchObject(notFound);
  await expect(setSubscriptionState(deps, "none", "paused", operator)).rejects.toMatchObject(notFound);
  await expect(testSubscription({ ...deps, testLimit }, "none", operator)).rejects.toMatchObject(notFound);
  await expect(overseeSubscriptions({ ...deps, log: store.signals.log, store }, "none")).rejects.toMatchObject(
    notFound,
  );
});

test("a deletion is audited, and is nothing where there is no subscription", async () => {
  const { deps, audited } = openSignals();
  const { subscription } = await createSubscription(deps, wanted("webhook"), operator);
  const event = { event: "subscription_changed", subscription: subscription.id, change: "deleted" };
  for (let times = 0; times < 2; times++) {
    await deleteSubscription(deps, subscription.id, operator);
    expect(audited.slice(1)).toEqual([[event, operator]]);
  }
  expect(await deps.subscriptions.list()).toEqual([]);
});

describe("an overview", () => {
  /** Oversees two subscriptions, of which `one` has three endings before it. */
  async function overseen() {
    const { deps, store } = openSignals();
    const ids = { one: "", other: "" };
    for (const name of ["one", "other"] as const) {
      ids[name] = (await createSubscription(deps, wanted("webhook"), operator)).subscription.id;
    }
    let readings = 0;
    const waiting = { sessionId: "session" as SessionId, happenedAt: storeMs(1_000), count: 3 };
    const log = {
      oldestWaiting: async () => {
        readings++;
        return new Map([[ids.one, waiting]]);
      },
    };
    const shifted: unknown[] = [];
    const shiftMs = (hint: unknown) => {
      shifted.push(hint);
      return 250;
    };
    const oversee = (id?: string) => overseeSubscriptions({ ...deps, log, store: { ...store, shiftMs } }, id);
    return { deps, ids, oversee, readings: () => readings, shifted };
  }

  test("has the oldest signal that waits, by the wall clock, and how many do", async () => {
    const { ids, oversee, shifted } = await overseen();
    const all = await oversee();
    expect(all.map(({ subscription: { id } }) => id).sort()).toEqual([ids.one, ids.other].sort());
    expect(all.find(({ subscription: { id } }) => id === ids.one)).toMatchObject({
      ...{ condition: "active", oldestWaitingAt: 1_250, waiting: 3 },
    });
    expect(all.find(({ subscription: { id } }) => id === ids.other)).toMatchObject({
      ...{ condition: "active", oldestWaitingAt: undefined, waiting: 0 },
    });
    expect(shifted).toEqual([{ sid: "session" }]);
  });

  test("of one subscription has no other", async () => {
    const { ids, oversee } = await overseen();
    expect((await oversee(ids.other)).map(({ subscription: { id } }) => id)).toEqual([ids.other]);
  });

  test("of no subscriptions does not read the log", async () => {
    const { deps, ids, oversee, readings } = await overseen();
    for (const id of Object.values(ids)) await deleteSubscription(deps, id, operator);
    expect([await oversee(), readings()]).toEqual([[], 0]);
  });

  test("says that a receiver fails from its second failure in a row on, and that a subscription is paused", async () => {
    const { deps, ids, oversee } = await overseen();
    const condition = async () => (await oversee(ids.one))[0]?.condition;
    const fail = () => deps.subscriptions.recordAttempt(ids.one, { error: "timeout", at: NOW });
    await fail();
    expect(await condition()).toBe("active");
    await fail();
    expect(await condition()).toBe("failing");
    await setSubscriptionState(deps, ids.one, "paused", operator);
    expect(await condition()).toBe("paused");
  });
});

describe("the state of a subscription", () => {
  test("is paused by the operator and resumed, and each change is audited", async () => {
    const states: unknown[] = [];
    const { deps, audited, sent } = openSignals((store) => ({
      setState(id, state) {
        states.push(state);
        return store.setState(id, state);
      },
    }));
    const { id } = (await createSubscription(deps, wanted("webhook"), operator)).subscription;
    audited.splice(0);
    expect(await setSubscriptionState(deps, id, "paused", operator)).toMatchObject({
      ...{ state: "paused", because: "operator" },
    });
    const resumed = await setSubscriptionState(deps, id, "resumed", operator);
    expect(resumed.state).toBe("active");
    expect(resumed).not.toHaveProperty("because");
    const event = { event: "subscription_changed", subscription: id };
    expect(audited).toEqual([
      [{ ...event, change: "paused" }, operator],
      [{ ...event, change: "resumed" }, operator],
    ]);
    expect(states).toEqual([{ state: "paused", because: "operator" }, { state: "active" }]);
    // Only receivers of streams are notified.
    await quiet();
    expect(sent).toEqual([]);
  });

  test("is not changed where the subscription is deleted at the same time", async () => {
    const { deps, audited } = openSignals(() => ({ setState: async () => false }));
    const { id } = (await createSubscription(deps, wanted("webhook"), operator)).subscription;
    audited.splice(0);
    await expect(setSubscriptionState(deps, id, "paused", operator)).rejects.toMatchObject({ code: "E404_NOT_FOUND" });
    expect(audited).toEqual([]);
  });

  test.each([
    ["paused", "an operator", (deps: Deps, id: string) => setSubscriptionState(deps, id, "paused", operator)],
    ["resumed", "an operator", (deps: Deps, id: string) => setSubscriptionState(deps, id, "resumed", operator)],
    ["paused", "its receiver", (deps: Deps, id: string) => updateStatus(deps, id, { status: "paused" }, receiver)],
    ["resumed", "its receiver", (deps: Deps, id: string) => updateStatus(deps, id, { status: "enabled" }, receiver)],
  ] as const)("is audited as %s by %s, also if the store fails just after the change", async (change, _, set) => {
    let isDown = false;
    const { deps, stream, audited } = openSignals((store) => ({
      async setState(...change) {
        isDown = true;
        return store.setState(...change);
      },
      async get(id) {
        if (isDown) throw new StoreUnavailable("down");
        return store.get(id);
      },
    }));
    const id = await stream("poll");
    await expect(set(deps, id)).rejects.toThrow(StoreUnavailable);
    expect(audited).toMatchObject([[{ event: "subscription_changed", subscription: id, change }, {}]]);
  });

  test.each([
    ["paused", "receiver"],
    ["disabled", "disabled"],
  ] as const)(
    "of a stream that its receiver has %s is that again after a resume, without an event",
    async (status, because) => {
      const { deps, stream, sent } = openSignals();
      const id = await stream("push");
      await updateStatus(deps, id, { status }, receiver);
      await setSubscriptionState(deps, id, "paused", operator);
      await quiet();
      sent.splice(0);
      expect(await setSubscriptionState(deps, id, "resumed", operator)).toMatchObject({ state: "paused", because });
      await quiet();
      expect(sent).toEqual([]);
    },
  );

  test("of a stream is announced to its receiver, and a pause hides what its receiver wants", async () => {
    const { deps, stream, claims, sent } = openSignals();
    const id = await stream("push");
    await updateStatus(deps, id, { status: "paused" }, receiver);
    expect(await setSubscriptionState(deps, id, "paused", operator)).toMatchObject({
      ...{ state: "paused", because: "operator" },
    });
    await quiet();
    expect(sent).toMatchObject([{ url: ENDPOINT, headers: { "content-type": "application/secevent+jwt" } }]);
    expect(claims()).toMatchObject([
      {
        ...{ typ: "secevent+jwt", iss: ISSUER, aud: "receiver", sub_id: { format: "opaque", id } },
        events: {
          "https://schemas.openid.net/secevent/ssf/event-type/stream-updated": {
            ...{ status: "paused", reason: "paused by an operator" },
          },
        },
      },
    ]);
  });

  test("of a stream is changed although its receiver cannot be notified", async () => {
    const { deps, stream, failures } = openSignals((store) => ({
      define: async (id, definition, before) => {
        if (definition.stream?.pending !== undefined) throw new Error("out");
        return store.define(id, definition, before);
      },
    }));
    const id = await stream("poll");
    expect(await setSubscriptionState(deps, id, "paused", operator)).toMatchObject({ state: "paused" });
    expect(failures).toEqual([new Error("out")]);
  });
});

describe("a test of a subscription", () => {
  async function tested(kind: PushKind, changes: Partial<NewSubscription> = {}, status = 202) {
    const world = openSignals();
    const { id } = (await createSubscription(world.deps, wanted(kind, changes), operator)).subscription;
    world.audited.splice(0);
    world.respond = async () => ({ ok: true, status });
    const origins: string[] = [];
    const deps = { ...world.deps, testLimit: { take: (origin: string) => void origins.push(origin), giveBack() {} } };
    const error = await testSubscription(deps, id, operator);
    return { ...world, id, error, origins };
  }

  test("sends the end of a session that never existed, and counts for the receiving server", async () => {
    const { id, error, origins, audited, claims } = await tested("ssf_push");
    expect([error, origins]).toEqual([undefined, ["https://receiver.example"]]);
    expect(audited).toStrictEqual([[{ event: "subscription_tested", subscription: id }, operator]]);
    expect(claims()).toEqual([
      {
        ...{ typ: "secevent+jwt", iss: ISSUER, aud: "app", iat: Math.floor(NOW / 1000) },
        jti: expect.stringMatching(/^[\w-]{22}$/),
        txn: expect.stringMatching(/^[\w-]{22}$/),
        sub_id: { format: "opaque", id: expect.stringMatching(/^[\w-]{23}$/) },
        events: {
          "https://schemas.openid.net/secevent/caep/event-type/session-revoked": {
            ...{ event_timestamp: Math.floor(NOW / 1000), initiating_entity: "user", reason_admin: { en: "logout" } },
          },
        },
      },
    ]);
  });

  test("reports and audits why the receiver has not accepted it", async () => {
    const { id, error, audited } = await tested("ssf_push", {}, 500);
    expect(error).toBe("server_error");
    expect(audited).toEqual([[{ event: "subscription_tested", subscription: id, error }, operator]]);
  });

  test("uses the secret and the algorithm of the subscription", async () => {
    const { sent, claims } = await tested("ssf_push", { secret: "Bearer x", signingAlg: "RS256" });
    expect(sent[0]?.headers.authorization).toBe("Bearer x");
    expect(claims()[0]?.alg).toBe("RS256");
  });

  test.each([
    [["created"], { type: "session.created" }],
    [["created", "ended"], { type: "session.ended", data: { reason: "logout" } }],
    [["new_device"], { type: "session.new_device" }],
    [["updated"], { type: "session.updated", data: { version: 1 } }],
    [[], { type: "session.ended", data: { reason: "logout" } }],
  ] as const)("sends what is subscribed to: %j", async (names, body) => {
    const { sent } = await tested("webhook", { filter: { events: names.map((name) => SIGNAL_EVENTS[name]) } });
    expect(JSON.parse(sent[0]?.body ?? "")).toMatchObject(body);
    if (!(names as readonly string[]).includes("updated")) expect(sent[0]?.body).not.toContain("version");
  });

  test("is refused where the receiving server was tested too often", async () => {
    const { deps, sent, audited } = openSignals();
    const { id } = (await createSubscription(deps, wanted("webhook"), operator)).subscription;
    audited.splice(0);
    const refused = testSubscription({ ...deps, testLimit: { take: () => 1_000, giveBack() {} } }, id, operator);
    await expect(refused).rejects.toMatchObject({ code: "E429_RATE_LIMITED" });
    expect([sent, audited]).toEqual([[], []]);
  });

  test("is refused for a stream that is polled", async () => {
    const { deps, stream } = openSignals();
    const refused = testSubscription(
      { ...deps, testLimit: { take() {}, giveBack() {} } },
      await stream("poll"),
      operator,
    );
    await expect(refused).rejects.toMatchObject({ message: "subscription_id: is polled by its receiver" });
  });
});

test("what an operator subscribes to is in the log of sessions that end", async () => {
  const { deps, store } = openSignals();
  const { id } = (await createSubscription(deps, wanted("webhook"), operator)).subscription;
  const session = newSession("alice");
  await store.create(session, nonce(), { cap: 1 });
  await store.end(session.sid, "logout");
  const [one] = await overseeSubscriptions({ ...deps, log: store.signals.log, store });
  expect(one).toMatchObject({ subscription: { id }, oldestWaitingAt: NOW, waiting: 1 });
});
