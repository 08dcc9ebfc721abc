/** Events about a stream itself: when they are pushed, held, dropped or refused (SSF 1.0 sections 8.1.2.1, 8.1.4 and 8.1.5). */
import { describe, expect, onTestFinished, test } from "vitest";
import type { Requester } from "../../../../src/service/session/audit.ts";
import { setSubscriptionState } from "../../../../src/service/signals/manage.ts";
import type { SendResult } from "../../../../src/service/signals/send/sender.ts";
import { createStream, replaceStream, updateStream } from "../../../../src/service/signals/streams/manage.ts";
import { updateStatus } from "../../../../src/service/signals/streams/status.ts";
import { verifyStream } from "../../../../src/service/signals/streams/stream-events.ts";
import { ENDPOINT, NOW, openSignals, operator, PUSH, quiet, receiver } from "../managed-world.ts";

const VERIFICATION = "https://schemas.openid.net/secevent/ssf/event-type/verification";
const STREAM_UPDATED = "https://schemas.openid.net/secevent/ssf/event-type/stream-updated";
/** How many events are held for a stream, and how many are pushed at once: for one stream, for one receiver, and in all. */
const MAX_HELD = 8;
const MAX_PUSHES = { stream: 4, receiver: 8, all: 16 };
const given: SendResult = { ok: true, status: 202 };

/** Opens a world in which verifications are counted. */
function openEvents(...replaced: Parameters<typeof openSignals>) {
  const world = openSignals(...replaced);
  const counted: string[] = [];
  const verificationLimit = {
    take: (id: string, owner: string) => void counted.push(`${id} ${owner}`),
    giveBack: (id: string, owner: string) => void counted.splice(counted.indexOf(`${id} ${owner}`), 1),
  };
  const verify = (id: string, state?: string, requester = receiver) =>
    verifyStream({ ...world.deps, verificationLimit }, id, state, requester);
  /** Lets requests wait until the returned function responds to all of them. */
  const hold = () => {
    const held: ((result: SendResult) => void)[] = [];
    world.respond = () => new Promise((resolve) => held.push(resolve));
    const release = async () => {
      world.respond = async () => given;
      for (const respond of held.splice(0)) respond(given);
      await quiet();
    };
    onTestFinished(release);
    return release;
  };
  const pending = async (id: string) => (await world.deps.subscriptions.get(id))?.stream?.pending;
  const events = () => world.claims().map((claims) => claims.events);
  return { ...world, world, counted, verify, hold, pending, events };
}

describe("a verification event", () => {
  test("is pushed with the receiver's header, without waiting for the receiver", async () => {
    const { deps, verify, hold, counted, sent, claims } = openEvents();
    hold();
    const delivery = { method: PUSH, endpointUrl: ENDPOINT, authorizationHeader: "Bearer x" };
    const { streamId: id } = await createStream(deps, { eventsRequested: [], delivery }, receiver);
    expect(await verify(id, "state")).toBeUndefined();
    await quiet();
    expect(counted).toEqual([`${id} receiver`]);
    expect(sent).toMatchObject([{ url: ENDPOINT, headers: { authorization: "Bearer x" } }]);
    expect(claims()).toMatchObject([
      {
        ...{ aud: "receiver", iat: Math.floor(NOW / 1000), sub_id: { format: "opaque", id } },
        ...{ jti: expect.stringMatching(/^[\w-]{22}$/), events: { [VERIFICATION]: { state: "state" } } },
      },
    ]);
  });

  test("has no state and no header where there is none", async () => {
    const { verify, stream, sent, events } = openEvents();
    await verify(await stream("push"));
    await quiet();
    expect(events()).toEqual([{ [VERIFICATION]: {} }]);
    expect(sent[0]?.headers).not.toHaveProperty("authorization");
  });

  test("is not sent sooner than the interval allows, nor for another receiver", async () => {
    const { deps, stream, verify, sent, pending } = openEvents();
    const id = await stream("poll");
    const verificationLimit = { take: () => 7_000, giveBack() {} };
    expect(await verifyStream({ ...deps, verificationLimit }, id, undefined, receiver)).toBe(7_000);
    await expect(verify(id, undefined, operator)).rejects.toMatchObject({ code: "E404_NOT_FOUND" });
    expect([sent, await pending(id)]).toEqual([[], undefined]);
  });

  test("is kept for polls, eight at most, and one without room is refused and not counted", async () => {
    const { stream, verify, counted, pending, sent } = openEvents();
    const id = await stream("poll");
    const states = Array.from({ length: MAX_HELD }, (_, at) => `${at}`);
    for (const state of states) await verify(id, state);
    await expect(verify(id, "one more")).rejects.toMatchObject({ code: "E429_RATE_LIMITED" });
    expect((await pending(id))?.map(({ event }) => event)).toEqual(
      states.map((state) => ({ type: "verification", state })),
    );
    expect([counted.length, sent]).toEqual([MAX_HELD, []]);
  });

  test("is held while the stream is paused, and dropped while it is disabled", async () => {
    const { deps, stream, verify, pending, events, sent } = openEvents();
    const id = await stream("push");
    await updateStatus(deps, id, { status: "disabled" }, receiver);
    expect(await verify(id, "dropped")).toBeUndefined();
    expect(await pending(id)).toBeUndefined();
    await updateStatus(deps, id, { status: "paused" }, receiver);
    for (const state of ["first", "second"]) await verify(id, state);
    await quiet();
    expect(sent).toEqual([]);
    await updateStatus(deps, id, { status: "enabled" }, receiver);
    await quiet();
    expect(events()).toEqual(["first", "second"].map((state) => ({ [VERIFICATION]: { state } })));
    expect(await pending(id)).toBeUndefined();
  });

  test("that was held for polls stays until it is acknowledged", async () => {
    const { deps, stream, verify, pending, sent, failures } = openEvents();
    const id = await stream("poll");
    await updateStatus(deps, id, { status: "paused" }, receiver);
    await verify(id, "held");
    await updateStatus(deps, id, { status: "enabled" }, receiver);
    await quiet();
    expect([sent, (await pending(id))?.length, failures]).toEqual([[], 1, []]);
  });

  test.each([
    ["update", updateStream],
    ["replacement", replaceStream],
  ])(
    "that was held for polls is pushed after an %s of the stream, if its receiver polls no more",
    async (_, change) => {
      const { deps, stream, verify, pending, events } = openEvents();
      const id = await stream("poll");
      await verify(id, "waits");
      const delivery = { method: PUSH, endpointUrl: ENDPOINT };
      await change(deps, id, { eventsRequested: [], delivery }, receiver);
      await quiet();
      expect([events(), await pending(id)]).toEqual([[{ [VERIFICATION]: { state: "waits" } }], undefined]);
    },
  );

  test("is pushed if its stream is resumed while it is about to be held", async () => {
    let onDefine = async () => {};
    const world = openEvents(({ define }) => ({
      async define(...change) {
        const before = onDefine;
        onDefine = async () => {};
        await before();
        return define(...change);
      },
    }));
    const { deps, stream, verify, pending, events } = world;
    const id = await stream("push");
    await updateStatus(deps, id, { status: "paused" }, receiver);
    onDefine = async () => void (await updateStatus(deps, id, { status: "enabled" }, receiver));
    await verify(id, "late");
    await quiet();
    expect([events(), await pending(id)]).toEqual([[{ [VERIFICATION]: { state: "late" } }], undefined]);
  });

  test("is pushed with no other where none was held", async () => {
    const { deps, stream, sent, failures } = openEvents();
    const id = await stream("push");
    for (const status of ["paused", "enabled"]) await updateStatus(deps, id, { status }, receiver);
    await quiet();
    expect([sent, failures]).toEqual([[], []]);
  });
});

describe("events that are held are pushed one after the other", () => {
  test("whatever becomes of each, and they count as one", async () => {
    const { deps, world, stream, verify, hold, events, failures } = openEvents();
    const id = await stream("push");
    await updateStatus(deps, id, { status: "paused" }, receiver);
    for (const state of ["first", "second", "third"]) await verify(id, state);
    const release = hold();
    await updateStatus(deps, id, { status: "enabled" }, receiver);
    await quiet();
    expect(events()).toEqual([{ [VERIFICATION]: { state: "first" } }]);
    for (let more = 1; more < MAX_PUSHES.stream; more++) await verify(id, `${more}`);
    await expect(verify(id, "no room")).rejects.toMatchObject({ code: "E429_RATE_LIMITED" });
    await release();
    expect(
      events()
        .map((event) => Object.values(event as object)[0].state)
        .sort(),
    ).toEqual(["1", "2", "3", "first", "second", "third"].sort());
    world.respond = async () => Promise.reject(new Error("out"));
    await verify(id, "lost");
    await quiet();
    expect(failures).toEqual([new Error("out")]);
  });

  test("when there is room", async () => {
    const { deps, stream, verify, hold, events, pending } = openEvents();
    const id = await stream("push");
    const release = hold();
    for (let at = 0; at < MAX_PUSHES.stream; at++) await verify(id, `${at}`);
    await updateStatus(deps, id, { status: "paused" }, receiver);
    await verify(id, "held");
    await updateStatus(deps, id, { status: "enabled" }, receiver);
    await release();
    expect(events()).toHaveLength(MAX_PUSHES.stream);
    expect(await pending(id)).toMatchObject([{ event: { state: "held" } }]);
    await updateStatus(deps, id, { status: "enabled" }, receiver);
    await quiet();
    expect(events()[MAX_PUSHES.stream]).toEqual({ [VERIFICATION]: { state: "held" } });
  });
});

test("a receiver that is slow leaves room for others, and all together have a limit, too", async () => {
  const { deps, verify, hold } = openEvents();
  const release = hold();
  const delivery = { method: PUSH, endpointUrl: ENDPOINT };
  /** Returns how many events of a new stream find room. */
  const verifyOften = async (requester: Requester) => {
    const { streamId } = await createStream(deps, { eventsRequested: [], delivery }, requester);
    const results = [];
    for (let at = 0; at < 6; at++) results.push(verify(streamId, undefined, requester));
    return (await Promise.allSettled(results)).filter(({ status }) => status === "fulfilled").length;
  };
  const others = ["other", "third", "fourth"].map((adminName) => ({ adminName }) as Requester);
  const counts = [];
  for (const one of [receiver, receiver, receiver, ...others]) counts.push(await verifyOften(one));
  expect(counts).toEqual([4, 4, 0, 4, 4, 0]);
  expect([MAX_PUSHES.receiver, MAX_PUSHES.all]).toEqual([8, 16]);
  await release();
  expect(await verifyOften(receiver)).toBe(MAX_PUSHES.stream);
});

test("a pause by an operator is pushed although the stream is paused, and so is the resume", async () => {
  const { deps, stream, events } = openEvents();
  const id = await stream("push");
  for (const change of ["paused", "paused", "resumed"] as const) {
    await setSubscriptionState(deps, id, change, operator);
    await quiet();
  }
  const event = (status: string, reason: string) => ({ [STREAM_UPDATED]: { status, reason } });
  expect(events()).toEqual([
    event("paused", "paused by an operator"),
    event("paused", "paused by an operator"),
    event("enabled", "resumed by an operator"),
  ]);
});

test("a resume by an operator pushes what was held, and a pause does not", async () => {
  const { deps, stream, verify, events } = openEvents();
  const id = await stream("push");
  await setSubscriptionState(deps, id, "paused", operator);
  await verify(id, "held");
  await setSubscriptionState(deps, id, "paused", operator);
  await quiet();
  expect(events()).toHaveLength(2);
  await setSubscriptionState(deps, id, "resumed", operator);
  await quiet();
  expect(events().slice(2)).toContainEqual({ [VERIFICATION]: { state: "held" } });
});

describe("the result of a push", () => {
  test.each([
    [{ ok: true, status: 202 }, undefined],
    [{ ok: true, status: 204 }, "invalid_response"],
    [{ ok: true, status: 500 }, "server_error"],
    [{ ok: false, error: "timeout" }, "timeout"],
  ] as const)("%j is recorded as %s", async (result, error) => {
    const { deps, world, stream, verify } = openEvents();
    const id = await stream("push");
    world.respond = async () => result;
    await verify(id);
    await quiet();
    expect(await deps.subscriptions.get(id)).toMatchObject(
      error === undefined ? { failures: 0 } : { failures: 1, lastError: error, lastErrorAt: NOW },
    );
  });

  test("is nothing to record where the event cannot be signed", async () => {
    const { deps, stream, verify, failures, sent } = openEvents();
    const id = await stream("push");
    const broken = {
      ...deps,
      verificationLimit: { take: () => undefined, giveBack() {} },
      signClaims: () => {
        throw new Error("no key");
      },
    };
    expect(await verifyStream(broken, id, undefined, receiver)).toBeUndefined();
    await quiet();
    expect([failures, sent]).toEqual([[new Error("no key")], []]);
    // It has given its room back.
    for (let at = 0; at < MAX_PUSHES.stream; at++) await verify(id);
    await quiet();
    expect(sent).toHaveLength(MAX_PUSHES.stream);
    expect(await deps.subscriptions.get(id)).toMatchObject({ failures: 0 });
  });
});
