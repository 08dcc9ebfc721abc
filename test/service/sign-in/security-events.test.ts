/** Security events that transmitters push: which end which sessions. One of the transmitters is another deployment of this service. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SignalsAdminService, SubscriptionKind } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { aService } from "../../support/every-protocol.ts";
import { freePort } from "../../support/free-port.ts";
import { startIssuer } from "../../support/logout-token.ts";
import { startRedis } from "../../support/redis.ts";
import { type Service, scratch, startService, withKeys } from "../../support/service.ts";
import { bearer, logIn, message, openAdmin, openPublic, somebody } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const CAEP = "https://schemas.openid.net/secevent/caep/event-type/";
const RISC = "https://schemas.openid.net/secevent/risc/event-type/";
const AUDIENCE = "https://app.example.com";

const provider = await startIssuer();
const transmitter = await startIssuer();
afterAll(() => {
  provider.stop();
  transmitter.stop();
});
const { issuer } = provider;

function providersFile(securityEvents: object): string {
  const file = join(scratch(), "providers.json");
  const entry = { name: "staff", issuer, client_id: "app", security_events: securityEvents };
  writeFileSync(file, JSON.stringify({ providers: [entry] }));
  return file;
}

const providersPath = providersFile({ issuer: transmitter.issuer, audience: AUDIENCE });
const service = aService({ SIGN_IN_PROVIDERS_FILE: providersPath });
type Live = { readonly accessToken: string };
const isLive = async ({ accessToken }: Live) =>
  (await openPublic(service).call(SessionService.method.listSessions, {}, bearer(accessToken))).ok;

async function push(token: string, type = "application/secevent+jwt") {
  const headers = { "content-type": type };
  const response = await fetch(`${service.publicUrl}/v1/auth/security-events`, {
    method: "POST",
    headers,
    body: token,
  });
  const text = await response.text();
  return [response.status, text === "" ? "" : (JSON.parse(text) as { readonly err: string }).err];
}
const sign = (events: object, sub_id: object, claims: object = {}) =>
  transmitter.sign({ aud: AUDIENCE, exp: undefined, events, sub_id, ...claims }, { typ: "secevent+jwt" });

/** Creates two sessions of a user, of two sessions of the provider. */
async function logInTwice() {
  const [sub, a, b] = [somebody(), somebody(), somebody()];
  const one = await logIn(service, { upstream: { issuer, sessionId: a, subject: sub } });
  const two = await logIn(service, { upstream: { issuer, sessionId: b, subject: sub } });
  const user = { format: "iss_sub", iss: issuer, sub };
  const session = { format: "opaque", id: a };
  return { user, session, live: () => Promise.all([one, two].map(isLive)) };
}

describe("an event", () => {
  test.each<[name: string, type: string, event: object, live: boolean[]]>([
    ["session-revoked", `${CAEP}session-revoked`, {}, [false, true]],
    ["credential-change", `${CAEP}credential-change`, { change_type: "revoke" }, [false, false]],
    ["credential-change of a new credential", `${CAEP}credential-change`, { change_type: "create" }, [true, true]],
    ["account-disabled", `${RISC}account-disabled`, { reason: "hijacking" }, [false, false]],
    ["account-purged", `${RISC}account-purged`, {}, [false, false]],
    ["account-enabled", `${RISC}account-enabled`, {}, [true, true]],
    ["assurance-level-change", `${CAEP}assurance-level-change`, {}, [true, true]],
  ])("%s about a session of a user", async (_, type, event, expected) => {
    const { user, session, live } = await logInTwice();
    expect(await push(await sign({ [type]: event }, { format: "complex", session, user }))).toEqual([202, ""]);
    expect(await live()).toEqual(expected);
  });

  test("counts whatever parameters its type of content has", async () => {
    const { user, live } = await logInTwice();
    const token = await sign({ [`${RISC}account-disabled`]: {} }, user);
    expect(await push(token, "Application/secevent+jwt; charset=utf-8")).toEqual([202, ""]);
    expect(await live()).toEqual([false, false]);
  });

  test("session-revoked about a user ends all sessions of that login, about a session that one", async () => {
    const [first, second] = [await logInTwice(), await logInTwice()];
    const revoked = { [`${CAEP}session-revoked`]: {} };
    expect(await push(await sign(revoked, first.user))).toEqual([202, ""]);
    expect(await push(await sign(revoked, second.session))).toEqual([202, ""]);
    expect([await first.live(), await second.live()]).toEqual([
      [false, false],
      [false, true],
    ]);
  });

  test("ends no session from after it, however often and late it comes", async () => {
    const { user, live } = await logInTwice();
    const [now, hour] = [Math.floor(Date.now() / 1000), 3_600];
    const disabled = { [`${RISC}account-disabled`]: {} };
    const old = await sign(disabled, user, { iat: now - hour });
    const reported = await sign({ [`${RISC}account-disabled`]: { event_timestamp: now - hour } }, user);
    for (const token of [old, old, reported]) expect(await push(token)).toEqual([202, ""]);
    expect(await live()).toEqual([true, true]);
  });

  test.each<[name: string, sub: (user: { readonly sub: string }) => object]>([
    ["a user of another issuer", ({ sub }) => ({ format: "iss_sub", iss: "https://other.example", sub })],
    ["an address", () => ({ format: "email", email: "alice@example.com" })],
    ["a user as an opaque id", ({ sub }) => ({ format: "opaque", id: sub })],
    ["nobody", () => ({})],
  ])("about %s ends nothing", async (_, subject) => {
    const { user, live } = await logInTwice();
    expect(await push(await sign({ [`${RISC}account-disabled`]: {} }, subject(user)))).toEqual([202, ""]);
    expect(await live()).toEqual([true, true]);
  });
});

test.each<
  [name: string, token: (user: object, events: object) => Promise<string> | string, err: string, type?: string]
>([
  ["of another transmitter", (sub_id, events) => provider.sign({ aud: AUDIENCE, sub_id, events }), "invalid_issuer"],
  ["for another receiver", (user, events) => sign(events, user, { aud: "https://b.example" }), "invalid_audience"],
  [
    "by another key",
    (sub_id, events) => provider.sign({ iss: transmitter.issuer, aud: AUDIENCE, sub_id, events }),
    "invalid_request",
  ],
  ["without jti", (user, events) => sign(events, user, { jti: undefined }), "invalid_request"],
  ["of another type of content", (user, events) => sign(events, user), "invalid_request", "application/json"],
  [
    "of another type of token",
    (sub_id, events) => transmitter.sign({ aud: AUDIENCE, sub_id, events }),
    "invalid_request",
  ],
  ["that is no token", () => "{}", "invalid_request"],
  ["oversized", (user, events) => sign(events, user, { more: "x".repeat(20_000) }), "invalid_request"],
])("a request %s ends nothing", async (_, token, err, type) => {
  const { user, live } = await logInTwice();
  expect(await push(await token(user, { [`${RISC}account-disabled`]: {} }), type)).toEqual([400, err]);
  expect(await live()).toEqual([true, true]);
});

describe("while the transmitter does not respond", () => {
  const other = startIssuer();
  beforeAll(async () => (await other).setDown(true));
  afterAll(async () => (await other).stop());

  test("or names keys by http on another machine, an event is not lost: 503, and it counts when it is pushed again", async () => {
    const { issuer: late, sign: signLate, setDown, keysAt } = await other;
    writeFileSync(
      providersPath,
      JSON.stringify({
        providers: [{ name: "staff", issuer, client_id: "app", security_events: { issuer: late, audience: AUDIENCE } }],
      }),
    );
    const { user, live } = await logInTwice();
    const disabled = { aud: AUDIENCE, events: { [`${RISC}account-disabled`]: {} }, sub_id: user };
    const token = await signLate(disabled, { typ: "secevent+jwt" });
    await until(async () => expect(await push(token)).toEqual([503, ""]));
    expect(await live()).toEqual([true, true]);
    setDown(false);
    // By this address, this machine is reached as well.
    keysAt("0.0.0.0");
    expect(await push(token)).toEqual([503, ""]);
    keysAt("127.0.0.1");
    expect(await push(token)).toEqual([202, ""]);
    expect(await live()).toEqual([false, false]);
  });
});

/** Starts a deployment of this service that is a transmitter. */
async function startTransmitter() {
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const adminPort = await freePort();
  const there = await startService({
    ...{ SIGNALS: "on", SIGNALS_ALLOW_PRIVATE: "on", SIGNALS_URL: `http://127.0.0.1:${adminPort}` },
    ...{ ISSUER: origin, PORT: String(port), ADMIN_PORT: String(adminPort) },
  });
  return { there, origin };
}

/** Logs a user in at the transmitter, and starts two sessions here: of that login, and of another one of the user. */
async function logInAtBoth(there: Service, origin: string, here: Service) {
  const login = await logIn(there);
  const session = await logIn(here, { upstream: { issuer: origin, sessionId: login.sid, subject: login.subject } });
  const other = await logIn(here, { upstream: { issuer: origin, sessionId: somebody(), subject: login.subject } });
  const rpc = SessionService.method;
  const live = async (one: Live) => (await openPublic(here).call(rpc.listSessions, {}, bearer(one.accessToken))).ok;
  return {
    logOut: async () => message(await openPublic(there).call(rpc.logout, {}, bearer(login.accessToken))),
    live: async () => [await live(session), await live(other)],
  };
}

test("another deployment of this service is a transmitter: a logout there ends the session here", async () => {
  const { there, origin } = await startTransmitter();
  const entry = { name: "there", issuer: origin, client_id: "app", security_events: { audience: AUDIENCE } };
  const file = join(scratch(), "providers.json");
  writeFileSync(file, JSON.stringify({ providers: [entry] }));
  const here = await startService({ SIGN_IN_PROVIDERS_FILE: file });
  const wanted = { kind: SubscriptionKind.SSF_PUSH, audience: [AUDIENCE] };
  const endpoint = `${here.publicUrl}/v1/auth/security-events`;
  const subscribed = await openAdmin(there).call(
    SignalsAdminService.method.createSubscription,
    { ...wanted, endpoint },
    bearer(there.adminToken),
  );
  message(subscribed);
  const { logOut, live } = await logInAtBoth(there, origin, here);
  await logOut();
  await until(async () => expect(await live()).toEqual([false, true]));
  await here.stop();
  await there.stop();
});

test("another deployment is polled by two instances: an event is acknowledged after its session has ended, and outlives an outage", async () => {
  const { there, origin } = await startTransmitter();
  const headers = { authorization: `Bearer ${there.adminToken}`, "content-type": "application/json" };
  const created = await fetch(`${there.adminUrl}/v1/ssf/streams`, {
    method: "POST",
    headers,
    body: JSON.stringify({ delivery: { method: "urn:ietf:rfc:8936" } }),
  });
  const stream = (await created.json()) as {
    readonly aud: string;
    readonly delivery: { readonly endpoint_url: string };
  };
  const tokenFile = join(scratch(), "token");
  writeFileSync(tokenFile, "wrong");
  const redis = await startRedis();
  const security_events = {
    ...{ audience: [stream.aud].flat()[0], poll_url: stream.delivery.endpoint_url, poll_token_file: tokenFile },
  };
  const file = join(scratch(), "providers.json");
  const entry = { name: "there", issuer: origin, client_id: "app", security_events };
  writeFileSync(file, JSON.stringify({ providers: [entry] }));
  const env = { SIGN_IN_PROVIDERS_FILE: file, REDIS_URL: redis.url, REDIS_COMMAND_TIMEOUT: "1s", DATA_DIR: withKeys() };
  const [here, second] = await Promise.all([startService(env), startService(env)]);
  const { logOut, live } = await logInAtBoth(there, origin, here);
  await until(() => expect(here.stderr()).toMatch(/"event":"security_poll_failed".*"reason":"status 401"/));
  writeFileSync(tokenFile, `${there.adminToken}\n`);
  await until(() => expect(here.stderr()).toContain('"event":"security_poll_recovered"'));

  // The event comes while the store does not respond. Without an acknowledgement, it comes again.
  redis.pause();
  await logOut();
  await until(() => expect(here.stderr()).toMatch(/security_poll_failed.*"reason":"(?!status)/));
  redis.resume();
  await until(async () => expect(await live()).toEqual([false, true]));
  const poll = async () => {
    const body = JSON.stringify({ returnImmediately: true });
    const response = await fetch(stream.delivery.endpoint_url, { method: "POST", headers, body });
    return ((await response.json()) as { readonly sets: object }).sets;
  };
  await until(async () => expect(await poll()).toEqual({}));
  const ended = (here.stderr() + second.stderr()).match(/"event":"session_ended".*"reason":"upstream_logout"/g);
  expect(ended).toHaveLength(1);
  await Promise.all([here.stop(), second.stop(), there.stop()]);
  await redis.stop();
});
