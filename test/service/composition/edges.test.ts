/** Exact values on which callers may rely: times to the second, and texts to the letter. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES } from "../../support/every-protocol.ts";
import { startRedis } from "../../support/redis.ts";
import { startService, withKeys } from "../../support/service.ts";
import { admin, bearer, logIn, message, openAdmin } from "../../support/sessions.ts";

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ ACCESS_TOKEN_TTL: "90s" }, store);

  test("an ended session is remembered for the longest life of an access token, and a minute", async () => {
    const user = await logIn(service);
    const caller = openAdmin(service);
    const credential = bearer(service.adminToken);
    message(await caller.call(admin.revokeSession, { sessionId: user.sid }, credential));
    for await (const batch of caller.stream(admin.watchRevocations, {}, credential)) {
      const entry = batch.revocations.find(({ sessionId }) => sessionId === user.sid);
      if (entry?.revokeTime === undefined || entry.expireTime === undefined) continue;
      expect(timestampMs(entry.expireTime) - timestampMs(entry.revokeTime)).toBe(150_000);
      break;
    }
  });
});

test("a bad cursor is a bad request in an outage, too", async () => {
  const redis = await startRedis();
  const service = await startService({ DATA_DIR: withKeys(), REDIS_URL: redis.url, ADMIN_TOKENS: "a".repeat(40) });
  await redis.stop();
  for (const kind of RPC_PROTOCOLS) {
    const caller = kind.open(service.adminUrl);
    const watch = caller.stream(admin.watchRevocations, { cursor: "not a cursor" }, bearer(service.adminToken));
    await expect(watch[Symbol.asyncIterator]().next()).rejects.toThrow(/cursor/);
    const page = { subject: "alice", pageToken: "not a token" };
    expect(await caller.call(admin.listSessions, page, bearer(service.adminToken))).toMatchObject({
      code: "E400_INVALID_REQUEST",
    });
    caller.close();
  }
  await service.stop();
});
