/**
 * An instance whose wall clock differs from that of the store. The times in tokens are set by the store's clock, so the instance also
 * verifies them by the store's clock.
 */
import { describe, expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { BOUND, challengeIn, Device, offerIn } from "../../support/device.ts";
import { aService } from "../../support/every-protocol.ts";
import { startRedis } from "../../support/redis.ts";
import { startService, withKeys } from "../../support/service.ts";
import { admin, bearer, logIn, message, openAdmin, openPublic } from "../../support/sessions.ts";

const { listSessions, logout } = SessionService.method;

const clockAheadBy = (ms: number) => {
  const shift = `const now = Date.now; Date.now = () => now() + ${ms};`;
  return { NODE_OPTIONS: `--import data:text/javascript,${encodeURIComponent(shift)}` };
};

describe.each([400_000, -400_000])("an instance whose clock is ahead of Redis's by %d ms", (ms) => {
  const service = aService(clockAheadBy(ms), "redis");

  test("takes a fresh access token at every route of its own", async () => {
    const user = await logIn(service);
    const caller = openPublic(service);
    expect(message(await caller.call(listSessions, {}, bearer(user.accessToken))).data?.sessions).toHaveLength(1);
    const introspection = await openAdmin(service).call(
      admin.introspectToken,
      { token: user.accessToken },
      bearer(service.adminToken),
    );
    expect(message(introspection).active).toBe(true);
    expect((await caller.call(logout, {}, bearer(user.accessToken))).ok).toBe(true);
  });
});

test.each([3_600_000, -3_600_000])("a browser proves its key to instances whose clocks differ by %d ms", async (ms) => {
  const redis = await startRedis();
  onTestFinished(() => redis.stop());
  const env = { ...BOUND, REDIS_URL: redis.url, DATA_DIR: withKeys(), ADMIN_TOKENS: "a".repeat(40) };
  const [plain, shifted] = await Promise.all([startService(env), startService({ ...env, ...clockAheadBy(ms) })]);
  onTestFinished(async () => void (await Promise.all([plain.stop(), shifted.stop()])));

  const { refreshToken } = await logIn(plain);
  const device = new Device(plain.publicUrl, refreshToken);
  const offer = offerIn(await device.refresh()) ?? "";
  device.url = shifted.publicUrl;
  const registered = await device.register(offer);
  expect(registered.status).toBe(200);
  expect((await device.refresh()).status).toBe(200);
  device.url = plain.publicUrl;
  const renewed = await device.renew(challengeIn(registered) ?? "");
  expect(renewed.status).toBe(200);
  device.url = shifted.publicUrl;
  expect((await device.renew(challengeIn(renewed) ?? "")).status).toBe(200);
  expect((await device.refresh()).status).toBe(200);
});
