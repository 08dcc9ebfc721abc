/** The commands that requests send to Redis. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { badRefreshTokens, forgedAccessTokens } from "../support/bad-tokens.ts";
import { PUBLIC_PROTOCOLS } from "../support/clients.ts";
import { type RecordingProxy, startRecordingProxy } from "../support/recording-proxy.ts";
import { type RedisServer, startRedis } from "../support/redis.ts";
import { type Service, startService, withKeys } from "../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../support/sessions.ts";
import { until } from "../support/until.ts";

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
  message(await caller.call(refresh, {}, cookie(user.refreshToken))); // Redis knows the script from now on
  await until(async () => {
    const wanted = { sessionId: user.sid };
    const response = await openAdmin(recorded).call(admin.listSessionEvents, wanted, bearer(recorded.adminToken));
    if (message(response).events.length === 0) throw new Error("the event of the login is not written yet");
  });
  proxy.take();
  for (const [, text] of badRefreshTokens(user.refreshToken)) await caller.call(refresh, {}, cookie(text));
  await caller.call(refresh);
  await caller.call(refresh, {}, { cookie: `refresh_token=${user.refreshToken}; refresh_token=x` });
  for (const [, text] of forgedAccessTokens(user.accessToken)) {
    await caller.call(logout, {}, bearer(text));
    await caller.call(listSessions, {}, bearer(text));
  }
  await caller.call(refresh, {}, { ...cookie(user.refreshToken), "sec-fetch-site": "cross-site" });
  // A valid refresh shows that the proxy records.
  message(await caller.call(refresh, {}, cookie(user.refreshToken)));
  caller.close();
  const ofSessions = proxy.take().filter(isOfSession);
  expect(ofSessions).toEqual([expect.arrayContaining([user.sid])]);
});

/** Names a session. The feed, the checks of Redis itself and the agreement on its clock name partitions at most. */
const isOfSession = (words: readonly string[]) => words.some((word) => /^[\w-]{23}$/.test(word));
