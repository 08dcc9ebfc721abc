/** Events about streams (such as verification) by push, if there are more than may be sent at once, on the running service. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { decodeJwt } from "jose";
import { describe, expect, onTestFinished, test } from "vitest";
import { SignalsAdminService, SubscriptionKind } from "../../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { updateStatus } from "../../../../src/service/signals/streams/status.ts";
import { createLossAnnouncer } from "../../../../src/service/signals/streams/stream-events.ts";
import { movedClock } from "../../../support/moved-clock.ts";
import type { Service } from "../../../support/service.ts";
import { bearer, logIn, message, openAdmin, openPublic } from "../../../support/sessions.ts";
import { until } from "../../../support/until.ts";
import { ENDPOINT, NOW, openSignals, quiet, receiver as receiving } from "../managed-world.ts";
import { type Json, PUSH, SESSION_REVOKED } from "../stream-receiver.ts";
import { startTransmitter } from "../stream-world.ts";

const UPDATED = "https://schemas.openid.net/secevent/ssf/event-type/stream-updated";
const VERIFICATION = "https://schemas.openid.net/secevent/ssf/event-type/verification";
/** The greatest number of events that are pushed at once for one stream. `MAX_HELD` is the greatest number that wait. */
const MAX_PUSHES = 4;
const MAX_HELD = 8;
const operator = "operator-".repeat(5);
const { pauseSubscription, resumeSubscription } = SignalsAdminService.method;

/** Returns a stream whose endpoint keeps requests open until they are released. */
async function heldStream(env: Readonly<Record<string, string>> = {}) {
  const { service, receiver } = await startTransmitter(env);
  onTestFinished(async () => {
    await service.stop();
  });
  const open: ServerResponse[] = [];
  const bodies: string[] = [];
  let accepts = false;
  const endpoint = createServer(async (request, response) => {
    bodies.push(await text(request));
    if (accepts) response.writeHead(202).end();
    else open.push(response);
  });
  await new Promise<void>((resolve) => endpoint.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    endpoint.closeAllConnections();
    endpoint.close();
  });
  const endpoint_url = `http://127.0.0.1:${(endpoint.address() as AddressInfo).port}/`;
  const { json } = await receiver.streams("POST", { body: { delivery: { method: PUSH, endpoint_url } } });
  const stream_id = String(json.stream_id);
  const release = () => {
    accepts = true;
    for (const response of open) response.writeHead(202).end();
  };
  const verify = async (state: string) => (await receiver.post("verification_endpoint", { stream_id, state })).status;
  const events = () =>
    Promise.all(bodies.map(async (body) => (await receiver.verify(body, "receiver")).events as Record<string, Json>));
  return { service, receiver, stream_id, endpoint_url, bodies, release, verify, events };
}

test("all that was held while a stream was paused is pushed, however little room there is", async () => {
  const { receiver, stream_id, release, verify, events } = await heldStream();
  await receiver.post("status_endpoint", { stream_id, status: "paused" });
  const states = Array.from({ length: MAX_HELD }, (_, at) => `held ${at}`);
  for (const state of states) expect(await verify(state)).toBe(204);
  await receiver.post("status_endpoint", { stream_id, status: "enabled" });
  release();
  await until(async () => {
    const pushed = (await events()).map((event) => event[VERIFICATION]?.state);
    expect(pushed.sort()).toEqual(states);
  });
});

test("a signal does not wait for an operator's change that could not be announced", async () => {
  const { service, stream_id, verify, events } = await heldStream();
  for (let at = 0; at < MAX_PUSHES; at++) expect(await verify(`slow ${at}`)).toBe(204);
  expect(await verify("one more")).toBe(429);
  const admin = openAdmin(service);
  message(await admin.call(pauseSubscription, { subscriptionId: stream_id }, bearer(operator)));
  message(await admin.call(resumeSubscription, { subscriptionId: stream_id }, bearer(operator)));
  const session = await logIn({ ...service, adminToken: operator }, { subject: "alice" });
  message(await openPublic(service).call(SessionService.method.logout, {}, bearer(session.accessToken)));
  await until(async () => expect((await events()).some((event) => SESSION_REVOKED in event)).toBe(true));
});

describe("signals that the log no longer has", () => {
  const REASON = "events were lost: they had waited for longer than they are kept";

  /** Signs somebody in and out, of which subscriptions are to have a signal. */
  const logOut = async (service: Service) => {
    const session = await logIn({ ...service, adminToken: operator });
    message(await openPublic(service).call(SessionService.method.logout, {}, bearer(session.accessToken)));
  };

  test("are reported to the receiver of a stream, on the running service", async () => {
    const clock = movedClock();
    const { service, receiver } = await startTransmitter({ SIGNALS_RETENTION: "1m", ...clock.env });
    onTestFinished(async () => {
      await service.stop();
    });
    const { json } = await receiver.streams("POST", { body: {} });
    const { endpoint_url } = json.delivery as { readonly endpoint_url: string };
    await logOut(service);
    clock.pass(120_000);
    // A jump of the clock looks like an overload at first.
    await until(() => logOut(service));
    await until(async () => {
      const polled = await receiver.call("POST", endpoint_url, { returnImmediately: true });
      expect(polled).toMatchObject({ status: 200 });
      const sets = Object.values(polled.json.sets as Record<string, string>);
      // Their times are those of the moved clock, so that they are read without a verification.
      const events = sets.map((set) => decodeJwt(set).events);
      expect(events).toContainEqual({ [UPDATED]: { status: "enabled", reason: REASON } });
    });
    expect(service.stderr()).toContain('"event":"signals_lost"');
  });

  test("are reported to the receiver of a stream by push, and those of a webhook to the operator", async () => {
    const clock = movedClock();
    const { service, stream_id, endpoint_url, bodies, release } = await heldStream({
      SIGNALS_RETENTION: "1m",
      ...clock.env,
    });
    release();
    const admin = openAdmin(service);
    const { createSubscription } = SignalsAdminService.method;
    const webhook = { kind: SubscriptionKind.WEBHOOK, endpoint: endpoint_url };
    const { subscription } = message(await admin.call(createSubscription, webhook, bearer(operator)));
    const both = [stream_id, subscription?.subscriptionId ?? ""];
    for (const subscriptionId of both)
      message(await admin.call(pauseSubscription, { subscriptionId }, bearer(operator)));
    await logOut(service);
    clock.pass(120_000);
    // A jump of the clock looks like an overload at first.
    await until(() => logOut(service));
    for (const subscriptionId of both)
      message(await admin.call(resumeSubscription, { subscriptionId }, bearer(operator)));
    await until(() => {
      for (const subscription of both) {
        expect(service.stderr()).toMatch(`"event":"signals_lost","subscription":"${subscription}","count":1`);
      }
      // A webhook is no token.
      const tokens = bodies.filter((body) => !body.startsWith("{"));
      expect(tokens.map((token) => decodeJwt(token).events)).toContainEqual({
        [UPDATED]: { status: "enabled", reason: REASON },
      });
    });
    admin.close();
  });

  /** Announces losses with a clock that the test moves. */
  function announcer(world: ReturnType<typeof openSignals>) {
    let now = 0;
    const announce = createLossAnnouncer(world.deps, () => now);
    return {
      pass: (ms: number) => (now += ms),
      async lose(id: string, loss: Parameters<typeof announce>[1] = "lost") {
        announce(id, loss);
        await quiet();
        return world.claims().map(({ events }) => (events as Record<string, unknown>)[UPDATED]);
      },
    };
  }

  test("are announced once a minute, as each partition of the log has its own", async () => {
    const world = openSignals();
    const id = await world.stream("push");
    const { pass, lose } = announcer(world);
    const update = { status: "enabled", reason: REASON };
    expect(await lose(id)).toEqual([update]);
    pass(59_999);
    expect(await lose(id)).toEqual([update]);
    pass(1);
    expect(await lose(id)).toEqual([update, update]);
  });

  test("are announced with another reason if the receiver did not accept them", async () => {
    const world = openSignals();
    const { lose } = announcer(world);
    const reason = "events were lost: they were not accepted";
    expect(await lose(await world.stream("push"), "given_up")).toEqual([{ status: "enabled", reason }]);
  });

  test("are not announced to a stream that is paused, and to no other subscription", async () => {
    const world = openSignals();
    const id = await world.stream("push");
    await updateStatus(world.deps, id, { status: "paused" }, receiving);
    await world.deps.subscriptions.create(
      "webhook",
      { kind: "webhook", endpoint: ENDPOINT, filter: {}, audience: [] },
      NOW,
    );
    const { lose } = announcer(world);
    for (const one of [id, "webhook", "unknown"]) expect(await lose(one)).toEqual([]);
    expect(world.failures).toEqual([]);
  });

  test("are announced by the next loss if the store does not respond", async () => {
    let isAway = false;
    const world = openSignals(({ get }) => ({
      get: (id) => (isAway ? Promise.reject(new StoreUnavailable("out")) : get(id)),
    }));
    const id = await world.stream("push");
    const { lose } = announcer(world);
    isAway = true;
    expect(await lose(id)).toEqual([]);
    expect(world.failures).toHaveLength(1);
    isAway = false;
    expect(await lose(id)).toHaveLength(1);
  });
});
