/** What a receiver does with its streams and their status, for every outcome (SSF 1.0 sections 8.1.1 and 8.1.2). */
import { describe, expect, test } from "vitest";
import type { Requester } from "../../../../src/service/session/audit.ts";
import { createSubscription, setSubscriptionState } from "../../../../src/service/signals/manage.ts";
import { MAX_SUBSCRIPTIONS } from "../../../../src/service/signals/model.ts";
import type { SubscriptionStore } from "../../../../src/service/signals/ports.ts";
import {
  createStream,
  deleteStream,
  listStreams,
  MAX_OWN_STREAMS,
  readStream,
  replaceStream,
  type StreamChange,
  updateStream,
} from "../../../../src/service/signals/streams/manage.ts";
import { getStatus, updateStatus } from "../../../../src/service/signals/streams/status.ts";
import { verifyStream } from "../../../../src/service/signals/streams/stream-events.ts";
import { ENDPOINT, ISSUER, NOW, openSignals, operator, POLL, PUSH, quiet, receiver } from "../managed-world.ts";
import { SESSION_ESTABLISHED, SESSION_REVOKED, TOKEN_CLAIMS_CHANGE } from "../stream-receiver.ts";

const other = { adminName: "other" } as Requester;
const delivery = { method: PUSH, endpointUrl: ENDPOINT };
const audit = (subscription: string, change: string) => [
  { event: "subscription_changed", subscription, change },
  receiver,
];

describe("a stream", () => {
  test("is created for the credential of the request, and is audited", async () => {
    const { deps, audited } = openSignals();
    const subscription = { kind: "webhook", endpoint: ENDPOINT, filter: {}, audience: [] } as const;
    await createSubscription(deps, { ...subscription, secret: "", signingAlg: "" }, operator);
    audited.splice(0);
    const created = await createStream(deps, { description: "a test", eventsRequested: [], delivery }, receiver);
    expect(created.streamId).toMatch(/^[0-9a-f]{32}$/);
    expect(created).toMatchObject({ aud: ["receiver"], description: "a test", delivery });
    expect(audited).toEqual([audit(created.streamId, "created")]);
    expect(await readStream(deps, created.streamId, receiver)).toEqual(created);
  });

  test("is not created without a credential", async () => {
    const { deps } = openSignals();
    const created = createStream(deps, { eventsRequested: [] }, {} as Requester);
    await expect(created).rejects.toMatchObject({ code: "E001_AUTH_FAILURE" });
  });

  test("is one of 32 of its receiver at most, and deleted ones do not count", async () => {
    const { deps } = openSignals();
    const create = () => createStream(deps, { eventsRequested: [] }, receiver);
    const [first] = await Promise.all(Array.from({ length: MAX_OWN_STREAMS }, create));
    await expect(create()).rejects.toMatchObject({
      message: `a receiver may have ${MAX_OWN_STREAMS} streams, and there are as many`,
    });
    await createStream(deps, { eventsRequested: [] }, other);
    await deleteStream(deps, first?.streamId ?? "", receiver);
    expect(await create()).toMatchObject({ aud: ["receiver"] });
  });

  test("counts towards the subscriptions of all", async () => {
    const { deps, audited } = openSignals(() => ({ create: async () => false }));
    await expect(createStream(deps, { eventsRequested: [] }, receiver)).rejects.toMatchObject({
      message: `there are ${MAX_SUBSCRIPTIONS} subscriptions, and there may be no more`,
    });
    expect(audited).toEqual([]);
  });

  test("is listed for its receiver alone, and subscriptions of operators are not", async () => {
    const { deps, stream } = openSignals();
    const ids = [await stream("push"), await stream("poll")];
    const subscription = { kind: "ssf_push", endpoint: ENDPOINT, filter: {}, audience: ["receiver"] } as const;
    const { id } = (await createSubscription(deps, { ...subscription, secret: "", signingAlg: "" }, operator))
      .subscription;
    expect((await listStreams(deps, receiver)).map(({ streamId }) => streamId).sort()).toEqual(ids.sort());
    expect(await listStreams(deps, other)).toEqual([]);
    const notFound = { code: "E404_NOT_FOUND" };
    await expect(readStream(deps, id, operator)).rejects.toMatchObject(notFound);
    for (const one of ids) await expect(readStream(deps, one, other)).rejects.toMatchObject(notFound);
  });

  test("is deleted once, by its receiver", async () => {
    const { deps, stream, audited } = openSignals();
    const id = await stream("poll");
    const notFound = { code: "E404_NOT_FOUND" };
    await expect(deleteStream(deps, id, other)).rejects.toMatchObject(notFound);
    expect(await listStreams(deps, receiver)).toHaveLength(1);
    await deleteStream(deps, id, receiver);
    await expect(deleteStream(deps, id, receiver)).rejects.toMatchObject(notFound);
    expect(audited).toEqual([audit(id, "deleted")]);
  });

  test("is not deleted twice where two requests delete it at the same time", async () => {
    const { deps, stream, audited } = openSignals(() => ({ delete: async () => false }));
    await expect(deleteStream(deps, await stream("poll"), receiver)).rejects.toMatchObject({ code: "E404_NOT_FOUND" });
    expect(audited).toEqual([]);
  });
});

describe("an update", () => {
  async function described() {
    const world = openSignals();
    const wanted = { description: "before", eventsRequested: [TOKEN_CLAIMS_CHANGE], delivery };
    const { streamId } = await createStream(world.deps, wanted, receiver);
    const update = (change: StreamChange) => updateStream(world.deps, streamId, change, receiver);
    world.audited.splice(0);
    return { ...world, id: streamId, update };
  }

  test("changes what is given alone, and is audited", async () => {
    const { deps, id, update, audited } = await described();
    const before = await readStream(deps, id, receiver);
    expect(await update({ description: "after" })).toEqual({ ...before, description: "after" });
    const eventsRequested = [SESSION_ESTABLISHED];
    const after = { ...before, description: "after", eventsRequested, eventsDelivered: eventsRequested };
    expect(await update({ eventsRequested })).toEqual(after);
    const polled = { method: POLL, endpointUrl: `https://signals.example/v1/ssf/poll/${id}` };
    expect(await update({ delivery: { method: POLL, endpointUrl: "" } })).toEqual({ ...after, delivery: polled });
    expect(audited).toEqual([audit(id, "updated"), audit(id, "updated"), audit(id, "updated")]);
  });

  test("of nothing leaves a stream without a description without one", async () => {
    const { deps, stream } = openSignals();
    expect(await updateStream(deps, await stream("poll"), {}, receiver)).not.toHaveProperty("description");
  });

  test("is for the receiver of the stream", async () => {
    const { deps, id, audited } = await described();
    const updated = updateStream(deps, id, { description: "mine" }, other);
    await expect(updated).rejects.toMatchObject({ code: "E404_NOT_FOUND" });
    expect(audited).toEqual([]);
  });

  test("that replaces all removes what is not given", async () => {
    const { deps, id, audited } = await described();
    expect(await replaceStream(deps, id, { eventsRequested: [] }, receiver)).toMatchObject({
      ...{ eventsRequested: [], eventsDelivered: [SESSION_REVOKED], delivery: { method: POLL } },
    });
    expect(await readStream(deps, id, receiver)).not.toHaveProperty("description");
    expect(audited).toEqual([audit(id, "updated")]);
  });

  test("may send what the transmitter sets as it was read, in any order", async () => {
    const { deps, stream } = openSignals();
    const place = { ...deps, verificationIntervalMs: 10_000 };
    const id = await stream("poll");
    const read = await readStream(place, id, receiver);
    const turned = { ...read, eventsSupported: [...read.eventsSupported].reverse() };
    expect(await updateStream(place, id, turned, receiver)).toEqual(read);
    expect(await replaceStream(place, id, turned, receiver)).toEqual(read);
  });

  test.each([
    ["iss", { iss: "https://evil.example" }],
    ["aud", { aud: ["another"] }],
    ["aud", { aud: [] }],
    ["events_supported", { eventsSupported: [SESSION_REVOKED] }],
    ["events_delivered", { eventsDelivered: [SESSION_REVOKED, TOKEN_CLAIMS_CHANGE] }],
    ["min_verification_interval", { minVerificationInterval: 1 }],
  ] as const)("cannot change what the transmitter sets: %s to %j", async (field, change) => {
    const { deps, id, update } = await described();
    const refused = { code: "E400_INVALID_REQUEST", message: `${field}: is set by the transmitter` };
    await expect(update(change)).rejects.toMatchObject(refused);
    const replaced = replaceStream(deps, id, { eventsRequested: [], ...change }, receiver);
    await expect(replaced).rejects.toMatchObject(refused);
  });

  test.each(["update", "replacement"])(
    "keeps the header for an endpoint that stays, unless it sends one: %s",
    async (how) => {
      const { deps } = openSignals();
      const header = { ...delivery, authorizationHeader: "Bearer x" };
      const { streamId } = await createStream(deps, { eventsRequested: [], delivery: header }, receiver);
      const secretAfter = async (endpointUrl: string, authorizationHeader?: string) => {
        const sent = { method: PUSH, endpointUrl, ...(authorizationHeader !== undefined && { authorizationHeader }) };
        if (how === "update") await updateStream(deps, streamId, { delivery: sent }, receiver);
        else await replaceStream(deps, streamId, { eventsRequested: [], delivery: sent }, receiver);
        return (await deps.subscriptions.get(streamId))?.sealedSecret;
      };
      expect(await secretAfter(ENDPOINT)).toBe("x reraeB");
      expect(await secretAfter(ENDPOINT, "Bearer y")).toBe("y reraeB");
      // The header is for the endpoint that it was given for.
      expect(await secretAfter("https://receiver.example/other")).toBeUndefined();
      expect(await secretAfter(ENDPOINT)).toBeUndefined();
      expect(await deps.subscriptions.get(streamId)).not.toHaveProperty("sealedSecret");
    },
  );
});

describe("a change at the same time", () => {
  /** Returns a stream, and an update of it that finds another definition `times` times. */
  async function contended(times: number) {
    let tries = 0;
    const define = (store: SubscriptionStore) => ({
      define: async (...args: Parameters<SubscriptionStore["define"]>) => ++tries > times && store.define(...args),
    });
    const { deps, stream, audited } = openSignals(define);
    const id = await stream("poll");
    const update = (description: string) => updateStream(deps, id, { description }, receiver);
    return { update, tries: () => tries, audited };
  }

  test("is begun again, eight times at most", async () => {
    const { update, tries } = await contended(7);
    expect([(await update("after")).description, tries()]).toEqual(["after", 8]);
    const busy = await contended(8);
    await expect(busy.update("after")).rejects.toMatchObject({ code: "E503_UNAVAILABLE" });
    expect([busy.tries(), busy.audited]).toEqual([8, []]);
  });

  test("is not stored where it changes nothing", async () => {
    const { update, tries } = await contended(0);
    await update("same");
    expect([(await update("same")).description, tries()]).toEqual(["same", 1]);
  });
});

describe("the status", () => {
  test("is what the receiver has set, with its reason, and each change is audited", async () => {
    const { deps, stream, audited } = openSignals();
    const id = await stream("poll");
    const set = (status: string, reason?: string) =>
      updateStatus(deps, id, { status, ...(reason !== undefined && { reason }) }, receiver);
    expect(await getStatus(deps, id, receiver)).toStrictEqual({ streamId: id, status: "enabled" });
    for (const status of ["paused", "disabled", "enabled"]) {
      const response = { streamId: id, status, reason: `wants ${status}` };
      expect(await set(status, `wants ${status}`)).toStrictEqual(response);
      expect(await getStatus(deps, id, receiver)).toEqual(response);
    }
    expect(await set("paused")).toStrictEqual({ streamId: id, status: "paused" });
    expect(await deps.subscriptions.get(id)).toMatchObject({ state: "paused", because: "receiver" });
    expect((await deps.subscriptions.get(id))?.stream).toEqual({ owner: "receiver", wanted: "paused" });
    await set("enabled");
    expect((await deps.subscriptions.get(id))?.stream).toEqual({ owner: "receiver" });
    expect(audited).toEqual(["paused", "disabled", "resumed", "paused", "resumed"].map((change) => audit(id, change)));
  });

  test("is one of three", async () => {
    const { deps, stream } = openSignals();
    const id = await stream("poll");
    for (const status of ["asleep", "", "toString"]) {
      await expect(updateStatus(deps, id, { status }, receiver)).rejects.toMatchObject({
        message: "status: is none of enabled, paused and disabled",
      });
    }
    await expect(updateStatus(deps, id, { status: "paused" }, other)).rejects.toMatchObject({ code: "E404_NOT_FOUND" });
    await expect(getStatus(deps, id, other)).rejects.toMatchObject({ code: "E404_NOT_FOUND" });
  });

  test("stays what an operator has made it", async () => {
    const { deps, stream, audited } = openSignals();
    const id = await stream("poll");
    await setSubscriptionState(deps, id, "paused", operator);
    audited.splice(0);
    for (const status of ["enabled", "disabled"]) {
      await expect(updateStatus(deps, id, { status }, receiver)).rejects.toMatchObject({
        ...{ code: "E403_FORBIDDEN", message: "an operator has paused the stream" },
      });
    }
    const paused = { streamId: id, status: "paused", reason: "paused by an operator" };
    expect(await updateStatus(deps, id, { status: "paused", reason: "mine" }, receiver)).toEqual(paused);
    expect([await getStatus(deps, id, receiver), audited]).toEqual([paused, []]);
    expect((await deps.subscriptions.get(id))?.stream).not.toHaveProperty("wanted");
  });

  test("says that the receiver has failed, and the receiver can enable its stream again", async () => {
    const { deps, stream } = openSignals();
    const id = await stream("push");
    await deps.subscriptions.setState(id, { state: "paused", because: "failing" });
    const reason = "the receiver has failed for a day";
    expect(await getStatus(deps, id, receiver)).toEqual({ streamId: id, status: "paused", reason });
    expect(await updateStatus(deps, id, { status: "enabled" }, receiver)).toEqual({ streamId: id, status: "enabled" });
  });

  test("skips what happened while the stream was disabled, and nothing else", async () => {
    const restarts: string[] = [];
    const { deps, stream } = openSignals((store) => ({
      restart: (id) => {
        restarts.push(id);
        return store.restart(id);
      },
    }));
    const id = await stream("poll");
    const set = async (status: string) => {
      await updateStatus(deps, id, { status }, receiver);
      return restarts.splice(0).length;
    };
    const counts = [];
    for (const status of ["paused", "enabled", "disabled", "disabled", "paused", "disabled", "enabled"]) {
      counts.push(await set(status));
    }
    expect(counts).toEqual([0, 0, 0, 0, 1, 0, 1]);
  });

  test("keeps events for polls while the stream is paused, and drops them when it is disabled", async () => {
    const { deps, stream } = openSignals();
    const id = await stream("poll");
    const verificationLimit = { take: () => undefined, giveBack() {} };
    await verifyStream({ ...deps, verificationLimit }, id, "state", receiver);
    const pending = async (status: string) => {
      await updateStatus(deps, id, { status }, receiver);
      return (await deps.subscriptions.get(id))?.stream?.pending;
    };
    const event = { type: "verification", state: "state" };
    expect(await pending("paused")).toEqual([{ id: expect.any(String), createdAt: NOW, event }]);
    expect(await pending("enabled")).toHaveLength(1);
    expect(await pending("disabled")).toBeUndefined();
  });

  test.each(["enabled", "paused", "disabled"] as const)(
    "%s, which an operator's pause overtakes, is stored, acknowledged, and in force once the operator resumes",
    async (status) => {
      let pausing: string | undefined;
      const { deps, stream, audited } = openSignals((store) => ({
        setState: async (id, state, before) => {
          if (pausing === id) await store.setState(id, { state: "paused", because: "operator" });
          pausing = undefined;
          return store.setState(id, state, before);
        },
      }));
      const id = await stream("poll");
      pausing = id;
      const paused = { streamId: id, status: "paused", reason: "paused by an operator" };
      expect(await updateStatus(deps, id, { status, reason: "mine" }, receiver)).toEqual(paused);
      expect(await deps.subscriptions.get(id)).toMatchObject({ because: "operator" });
      const change = { enabled: "resumed", paused: "paused", disabled: "disabled" }[status];
      expect(audited).toMatchObject([[{ event: "subscription_changed", subscription: id, change }, {}]]);
      await setSubscriptionState(deps, id, "resumed", operator);
      expect(await getStatus(deps, id, receiver)).toEqual({ streamId: id, status, reason: "mine" });
    },
  );

  test("is set in a second try with the reason of the first", async () => {
    let resuming = true;
    const { deps, stream } = openSignals((store) => ({
      setState: async (id, state, before) => {
        // Another request of the receiver comes first.
        if (resuming) await store.setState(id, { state: "paused", because: "receiver" });
        resuming = false;
        return store.setState(id, state, before);
      },
    }));
    const id = await stream("poll");
    const response = { streamId: id, status: "disabled", reason: "mine" };
    expect(await updateStatus(deps, id, { status: "disabled", reason: "mine" }, receiver)).toEqual(response);
  });

  test("that is enabled pushes what was held", async () => {
    const { deps, stream, claims } = openSignals();
    const id = await stream("push");
    const verificationLimit = { take: () => undefined, giveBack() {} };
    await updateStatus(deps, id, { status: "paused" }, receiver);
    await verifyStream({ ...deps, verificationLimit }, id, "held", receiver);
    await updateStatus(deps, id, { status: "paused" }, receiver);
    await quiet();
    expect(claims()).toEqual([]);
    await updateStatus(deps, id, { status: "enabled" }, receiver);
    await quiet();
    expect(claims()).toMatchObject([{ iss: ISSUER, sub_id: { format: "opaque", id } }]);
  });
});
