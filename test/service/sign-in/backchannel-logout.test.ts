/**
 * Back-channel logouts of providers: which requests end which sessions. Among them are the checks of the OpenID Foundation's conformance plan
 * `oidcc-client-back-channel-logout-rp-basic`.
 */

import { generateKeyPair, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { oneProvider } from "../../../src/service/config/providers.ts";
import { aService, STORES } from "../../support/every-protocol.ts";
import { LOGOUT_EVENTS, sendLogout, startIssuer } from "../../support/logout-token.ts";
import { startRedis } from "../../support/redis.ts";
import { type Service, startService, withKeys } from "../../support/service.ts";

import { bearer, logIn, openPublic, somebody } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const provider = await startIssuer();
afterAll(() => provider.stop());
const { issuer, sign } = provider;
const now = () => Math.floor(Date.now() / 1000);

describe.each(STORES)("on the %s store", (kind) => {
  const service = aService(provider.env, kind);

  const isLive = async ({ accessToken }: { readonly accessToken: string }) =>
    (await openPublic(service).call(SessionService.method.listSessions, {}, bearer(accessToken))).ok;
  /** Sends a logout token, and returns the status of the response. */
  const end = async (...given: Parameters<typeof sign>) => (await sendLogout(service, await sign(...given))).status;

  /** Creates the sessions of a user of the provider: two of its session `a`, one of `b`, and one that did not come from it. */
  async function logInEverywhere() {
    const [name, a, b] = [somebody(), somebody(), somebody()];
    const one = await logIn(service, { upstream: { issuer, sessionId: a, subject: name } });
    const same = await logIn(service, { upstream: { issuer, sessionId: a, subject: name } });
    const two = await logIn(service, { upstream: { issuer, sessionId: b, subject: name } });
    const own = await logIn(service, { subject: name });
    const live = () => Promise.all([one, same, two, own].map(isLive));
    expect(await live()).toEqual([true, true, true, true]);
    return { name, a, b, live };
  }

  test("a token with a session ends the sessions of that login, with a user those of all logins, and no others", async () => {
    const first = await logInEverywhere();
    expect(await end({ sid: first.a })).toBe(200);
    expect(await first.live()).toEqual([false, false, true, true]);
    const second = await logInEverywhere();
    expect(await end({ sid: second.b, sub: second.name })).toBe(200);
    expect(await second.live()).toEqual([true, true, false, true]);
    const third = await logInEverywhere();
    expect(await end({ sub: third.name })).toBe(200);
    expect(await third.live()).toEqual([false, false, false, true]);
    expect(await first.live()).toEqual([false, false, true, true]);
  });

  test("a user and a session that do not belong together end nothing, and neither do unknown ones", async () => {
    const { a, name, live } = await logInEverywhere();
    expect(await end({ sid: a, sub: "another" })).toBe(200);
    expect(await end({ sid: "unknown", sub: name })).toBe(200);
    expect(await end({ sid: name })).toBe(200);
    expect(await end({ sub: a })).toBe(200);
    expect(await live()).toEqual([true, true, true, true]);
  });

  test("a login after the logout is not ended by it", async () => {
    const { name, live } = await logInEverywhere();
    expect(await end({ sub: name, iat: now() - 300 })).toBe(200);
    expect(await live()).toEqual([true, true, true, true]);
  });

  test("a token counts once", async () => {
    const { name } = await logInEverywhere();
    const token = await sign({ sub: name });
    expect((await sendLogout(service, token)).status).toBe(200);
    const again = await logIn(service, { upstream: { issuer, subject: name } });
    const response = await sendLogout(service, token);
    expect([response.status, await response.json()]).toEqual([
      400,
      { error: "invalid_request", error_description: "the logout token is not valid" },
    ]);
    expect(await isLive(again)).toBe(true);
  });
});

describe("a request", () => {
  const service = aService(provider.env);
  let user: Awaited<ReturnType<typeof logIn>>;
  const sub = somebody();
  beforeAll(async () => {
    user = await logIn(service, { upstream: { issuer, sessionId: "a session", subject: sub } });
  });
  const isLive = async () =>
    (await openPublic(service).call(SessionService.method.listSessions, {}, bearer(user.accessToken))).ok;

  test.each<[string, () => Promise<string> | string]>([
    ["of an ID token", () => sign({ sub, events: undefined, nonce: "n" }, { typ: "JWT" })],
    ["of an ID token that has the event", () => sign({ sub, nonce: "n" })],
    ["of a token without the event", () => sign({ sub, events: {} })],
    ["of a token whose event is a text", () => sign({ sub, events: { [Object.keys(LOGOUT_EVENTS)[0] ?? ""]: "" } })],
    ["of a token for another client", () => sign({ sub, aud: "other" })],
    ["of a token of another issuer", () => sign({ sub, iss: "https://login.example" })],
    ["of a token without jti", () => sign({ sub, jti: undefined })],
    ["of a token without iat", () => sign({ sub, iat: undefined })],
    ["of a token of an hour ago", () => sign({ sub, iat: now() - 3600, exp: undefined })],
    ["of a token that has expired", () => sign({ sub, exp: now() - 120 })],
    ["of a token of tomorrow", () => sign({ sub, iat: now() + 86_400, exp: undefined })],
    ["of a token that names nobody", () => sign({})],
    ["of a token with a list in place of a session", () => sign({ sub, sid: ["a session"] as never })],
    ["of a token with a very long user", () => sign({ sub: "x".repeat(4_000) })],
    ["of a token by another key", async () => sign({ sub }, {}, (await generateKeyPair("ES256")).privateKey)],
    ["of a token by an unknown key", () => sign({ sub }, { kid: "two" })],
    [
      "of a token with a secret as its key",
      () => sign({ sub }, { alg: "HS256" }, new TextEncoder().encode(provider.env.OIDC_CLIENT_SECRET) as never),
    ],
    ["of a token with another event", () => sign({ sub, events: { "https://a.example/other": {} } })],
    ["of a token without a signature", async () => new UnsecuredJWT({ sub, iss: issuer, aud: "app" }).encode()],
    ["of a token that is changed", async () => `${(await sign({ sub })).slice(0, -4)}AAAA`],
    ["of no token", () => ""],
    ["of an oversized token", () => sign({ sub, more: "x".repeat(20_000) })],
  ])("%s ends nothing", async (_, token) => {
    const response = await sendLogout(service, await token());
    expect(response.status).toBe(400);
    expect(response.headers.get("cache-control")).toBe("no-store");
    expect(await isLive()).toBe(true);
  });

  test("with two tokens, or with none in the form, ends nothing", async () => {
    const token = await sign({ sub });
    const url = `${service.publicUrl}/v1/auth/backchannel-logout`;
    for (const body of [`logout_token=${token}&logout_token=${token}`, JSON.stringify({ logout_token: token }), ""])
      expect((await fetch(url, { method: "POST", body })).status).toBe(400);
    expect((await fetch(`${url}?logout_token=${token}`, { method: "POST" })).status).toBe(404);
    expect((await fetch(url)).status).toBe(405);
    expect(await isLive()).toBe(true);
  });
});

test("while the provider's keys or the store do not respond, the token is not used up; once used, no instance takes it again", async () => {
  const other = await startIssuer();
  const redis = await startRedis();
  const env = { ...other.env, REDIS_URL: redis.url, REDIS_COMMAND_TIMEOUT: "1s", DATA_DIR: withKeys() };
  const [first, second] = await Promise.all([startService(env), startService(env)]);
  const session = await logIn(first, { upstream: { issuer: other.issuer, subject: "alice" } });
  const token = await other.sign({ sub: "alice" });
  const send = async (at: Service) => {
    const { status, headers } = await sendLogout(at, token);
    return [status, headers.get("retry-after")];
  };
  const isLive = async () =>
    (await openPublic(first).call(SessionService.method.listSessions, {}, bearer(session.accessToken))).ok;

  other.setDown(true);
  expect(await send(first)).toEqual([503, "1"]);
  other.setDown(false);
  redis.pause();
  expect(await send(first)).toEqual([503, "1"]);
  redis.resume();
  await until(async () => expect(await isLive()).toBe(true));
  await until(async () => expect(await send(first)).toEqual([200, null]));
  expect(await isLive()).toBe(false);
  expect(await send(second)).toEqual([400, null]);
  await first.stop();
  const restarted = await startService(env);
  expect(await send(restarted)).toEqual([400, null]);
  await Promise.all([restarted.stop(), second.stop()]);
  await redis.stop();
  other.stop();
});

test("a provider that is away is asked again, and its keys are read once for many tokens", async () => {
  const other = await startIssuer();
  other.setDown(true);
  const { createProvider } = await import("../../../src/service/sign-in/provider.ts");
  const settings = oneProvider({ issuer: other.issuer, clientId: "app", credential: { kind: "none" } });
  const { verifyLogout } = createProvider(settings);
  expect(await verifyLogout(await other.sign({ sub: "alice" }))).toEqual({ ok: false, reason: "unavailable" });
  other.setDown(false);
  for (let i = 0; i < 20; i++)
    expect(await verifyLogout(await other.sign({ sub: "alice" }))).toMatchObject({
      ok: true,
      token: { subject: "alice" },
    });
  expect(other.requests()).toBe(2);
  other.stop();
});

test("a token counts by a key that was published just after the keys were read, and is repeated while they cannot be used", async () => {
  const other = await startIssuer();
  const { createProvider } = await import("../../../src/service/sign-in/provider.ts");
  const settings = oneProvider({ issuer: other.issuer, clientId: "app", credential: { kind: "none" } });
  const { verifyLogout } = createProvider(settings);
  const verify = async () => verifyLogout(await other.sign({ sub: "alice" }));
  expect(await verify()).toMatchObject({ ok: true });
  await other.rotate("two");
  // Many tokens read the keys once.
  const before = other.requests();
  const all = await Promise.all([verify(), verify(), verify()]);
  expect(all.map(({ ok }) => ok)).toEqual([true, true, true]);
  expect(other.requests() - before).toBe(1);
  await other.rotate("three");
  other.breakKeys();
  expect(await verify()).toEqual({ ok: false, reason: "unavailable" });
  other.stop();
});

test("keys that a provider names by http on another machine are not read: whoever is in between could end sessions", async () => {
  const other = await startIssuer();
  const { createProvider } = await import("../../../src/service/sign-in/provider.ts");
  const settings = oneProvider({ issuer: other.issuer, clientId: "app", credential: { kind: "none" } });
  const verify = async () => createProvider(settings).verifyLogout(await other.sign({ sub: "alice" }));
  // By this address, this machine is reached as well.
  other.keysAt("0.0.0.0");
  expect(await verify()).toEqual({ ok: false, reason: "unavailable" });
  other.keysAt("127.0.0.1");
  expect(await verify()).toMatchObject({ ok: true });
  other.stop();
});

test("whoever sends many bad tokens gets 429, and a valid one counts nevertheless", async () => {
  const limited = await startService({ ...provider.env, RATE_LIMIT_FAILURES: "2/10m" });
  const { accessToken } = await logIn(limited, { upstream: { issuer, subject: "alice" } });
  const events = { method: "POST", headers: { "content-type": "application/secevent+jwt" }, body: "bad" };
  const bad = [
    () => sendLogout(limited, "bad"),
    () => fetch(`${limited.publicUrl}/v1/auth/security-events`, events),
    () => sendLogout(limited, "bad"),
    () => fetch(`${limited.publicUrl}/v1/auth/security-events`, events),
  ];
  const responses: Response[] = [];
  for (const send of bad) responses.push(await send());
  expect(responses.map(({ status }) => status)).toEqual([400, 400, 429, 429]);
  expect(Number(responses[2]?.headers.get("retry-after"))).toBeGreaterThan(1);
  expect((await sendLogout(limited, await provider.sign({ sub: "alice" }))).status).toBe(200);
  const listed = await openPublic(limited).call(SessionService.method.listSessions, {}, bearer(accessToken));
  expect(listed.ok).toBe(false);
  await limited.stop();
});
