/** The commands that requests send to Redis. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { badRefreshTokens, forgedAccessTokens } from "../../support/bad-tokens.ts";
import { PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { BOUND, challengeIn, Device, RENEW } from "../../support/device.ts";
import { type RecordingProxy, startRecordingProxy } from "../../support/recording-proxy.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, startService, withKeys } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, logout, listSessions } = SessionService.method;

let redis: RedisServer;
let proxy: RecordingProxy;
let recorded: Service;
beforeAll(async () => {
  redis = await startRedis();
  proxy = await startRecordingProxy(redis.port);
  recorded = await startService({
    DATA_DIR: withKeys(),
    REDIS_URL: `redis://127.0.0.1:${proxy.port}`,
    ADMIN_TOKENS: "admin".repeat(8),
    ISSUER: "https://auth.example.com",
    REDIS_COMMAND_TIMEOUT: "5s", // With a shorter timeout, a busy machine would make the service send commands twice.
    ...BOUND,
  });
});
afterAll(async () => {
  await recorded.stop();
  await proxy.stop();
  await redis.stop();
});

test.each(PUBLIC_PROTOCOLS)("$name: a credential that is not valid costs the store nothing", async (kind) => {
  const user = await logIn(recorded);
  const caller = kind.open(recorded.publicUrl);
  message(await caller.call(refresh, {}, cookie(user.refreshToken))); // Redis now has the script cached.
  await loginIsRecorded(user.sid);
  proxy.take();
  for (const [, text] of badRefreshTokens(user.refreshToken)) await caller.call(refresh, {}, cookie(text));
  await caller.call(refresh);
  await caller.call(refresh, {}, { cookie: "refresh_token=x; refresh_token=y" });
  for (const [, text] of forgedAccessTokens(user.accessToken)) {
    await caller.call(logout, {}, bearer(text));
    await caller.call(listSessions, {}, bearer(text));
  }
  await caller.call(refresh, {}, { ...cookie(user.refreshToken), "sec-fetch-site": "cross-site" });
  // The commands of a valid refresh show that the proxy records commands.
  message(await caller.call(refresh, {}, cookie(user.refreshToken)));
  caller.close();
  const ofSessions = proxy.take().filter(isOfSession);
  expect(ofSessions).toEqual([expect.arrayContaining([user.sid])]);
});

test("a refresh of a bound session is one command, and so is one that is refused; a renewal is one more", async () => {
  const user = await logIn(recorded);
  const device = new Device(recorded.publicUrl, user.refreshToken);
  const challenge = challengeIn(await device.bind()) ?? "";
  await device.renew(challenge); // Redis now has the script cached.
  const thief = device.copied();
  thief.forgetDeviceCookie();
  // The service writes the events of sessions to Redis later than the response. The commands for that are not counted.
  const isEvent = (words: readonly string[]) => words.some((word) => word.startsWith('{"t":'));
  const ofSession = () => proxy.take().filter((words) => words.includes(user.sid) && !isEvent(words)).length;
  ofSession();
  expect((await device.refresh()).status).toBe(200);
  expect(ofSession()).toBe(1);
  expect((await thief.refresh()).status).toBe(401);
  expect(ofSession()).toBe(1);
  expect((await device.send(RENEW)).status).toBe(403);
  expect(ofSession()).toBe(1);
  expect((await device.renew(challenge)).status).toBe(200);
  expect(ofSession()).toBe(1);
  thief.jar.set("refresh_token_device", "A".repeat(124));
  await thief.renew("none");
  expect(ofSession()).toBe(1);
});

/** Resolves when the event of a login has been written to Redis, which may happen after the response to the login. */
async function loginIsRecorded(sessionId: string): Promise<void> {
  await until(async () => {
    const response = await openAdmin(recorded).call(
      admin.listSessionEvents,
      { sessionId },
      bearer(recorded.adminToken),
    );
    if (message(response).events.length === 0) throw new Error("the event of the login is not written yet");
  });
}

/**
 * Returns whether a command contains the id of a session. The commands of the feed, of health checks and of clock synchronization contain
 * none.
 */
const isOfSession = (words: readonly string[]) => words.some((word) => /^[\w-]{23}$/.test(word));
