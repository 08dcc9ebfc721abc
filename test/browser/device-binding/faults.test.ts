/** Faults of the network, the service and the store around renewals. In Chromium, none of them costs the user the session. */
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { withKeys } from "../../support/service.ts";
import type { Fault } from "../engines/origin.ts";
import { eventually, isToken, statesOf, tokenOf } from "../engines/pages.ts";
import { type Bed, bound, DEVICE_COOKIE, pathsOf, REFRESH, RENEW, startBed, type User } from "./bed.ts";
import type { Profile, ProfileTab } from "./profiles.ts";

/** Whether all faults are tried, as in `npm run test:browser`. */
const LONG = process.env.BROWSERS === "long";

/** The life of access tokens. It is short, so that pages refresh often. */
const TOKEN_TTL_S = 3;

let redis: RedisServer;
let bed: Bed;
let profile: Profile;
beforeAll(async () => {
  redis = await startRedis("--appendonly", "yes", "--appendfsync", "always");
  const env = { REDIS_URL: redis.url, DATA_DIR: withKeys(), ACCESS_TOKEN_TTL: `${TOKEN_TTL_S}s` };
  bed = await startBed({ ...env, REDIS_COMMAND_TIMEOUT: "1s" });
  profile = await bed.profile();
});
afterAll(async () => {
  await bed?.stop();
  await redis?.stop();
});
afterEach(() => {
  bed.origin.fault = "up";
  bed.origin.isFaulty = () => true;
});

/** Returns a bound user with a page of the kit, whose device cookie has just expired. */
async function userWithPage(): Promise<{ user: User; page: ProfileTab }> {
  const user = bed.user(profile);
  await bound(user, bed);
  const page = await profile.open(user.url);
  await eventually(() => tokenOf(page), isToken);
  await expireCookie(user);
  return { user, page };
}

const expireCookie = ({ host }: User) => profile.deleteCookie(DEVICE_COOKIE, host);

/** Checks that the user still has the session. */
async function expectUnharmed({ user, page }: { user: User; page: ProfileTab }): Promise<void> {
  await page.evaluate("dispatchEvent(new Event('online'))");
  await eventually(() => tokenOf(page), isToken);
  await expireCookie(user);
  bed.seen.length = 0;
  await eventually(
    async () => [await tokenOf(page), ...pathsOf(bed.seen)],
    ([token = "", ...paths]) => isToken(token) && paths.includes(RENEW) && paths.at(-1) === REFRESH,
  );
  expect(await statesOf(page)).not.toContain("ended");
  expect(bed.audit(user)).not.toContain("session_ended");
  expect(bed.audit(user)).not.toContain("device_proof_missing");
  // If this page stayed open, it would send refreshes during the following tests.
  await page.close();
}

const unavailable = (page: ProfileTab) =>
  eventually(
    () => tokenOf(page),
    (token) => token === "unavailable",
  );

const RESPONSES: readonly { fault: Fault; where: string; paths: readonly string[] }[] = [
  { fault: "cut", where: "everywhere", paths: [REFRESH, RENEW] },
  { fault: "lost", where: "at renewals", paths: [RENEW] },
  { fault: "cut", where: "at renewals", paths: [RENEW] },
  { fault: "cut", where: "at refreshes", paths: [REFRESH] },
  { fault: "lost", where: "everywhere", paths: [REFRESH, RENEW] },
  { fault: "lost", where: "at refreshes", paths: [REFRESH] },
  // A renewal must not receive an HTML page with status 200, because Chromium would then end the device bound session.
  { fault: "html", where: "at refreshes", paths: [REFRESH] },
];

test.each(LONG ? RESPONSES : RESPONSES.slice(0, 2))("responses $fault $where", async ({ fault, paths }) => {
  const given = await userWithPage();
  bed.origin.isFaulty = (path) => paths.includes(path);
  bed.origin.fault = fault;
  await unavailable(given.page);
  bed.origin.fault = "up";
  await expectUnharmed(given);
});

test("a store that is stalled", async () => {
  const given = await userWithPage();
  redis.pause();
  await unavailable(given.page);
  redis.resume();
  await expectUnharmed(given);
});

test("a service that is killed and started again", async () => {
  const given = await userWithPage();
  await bed.origin.service.kill9();
  await unavailable(given.page);
  await bed.restartService();
  await expectUnharmed(given);
});

if (LONG) {
  test("renewals that are held up hold refreshes up, and no more", async () => {
    const given = await userWithPage();
    bed.origin.isFaulty = (path) => path === RENEW;
    bed.origin.fault = "held";
    const token = tokenOf(given.page);
    await eventually(
      () => pathsOf(bed.seen),
      (paths) => paths.includes(RENEW),
    );
    bed.origin.fault = "up";
    await token;
    await expectUnharmed(given);
  });

  test("a store that is killed and started again", async () => {
    const given = await userWithPage();
    await redis.kill();
    await unavailable(given.page);
    await redis.start();
    await expectUnharmed(given);
  });
}
