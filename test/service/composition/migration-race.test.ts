/** Several processes migrate the same old session at the same time: its user has one session, and is not signed out. */
import { randomUUID } from "node:crypto";
import type { ServerResponse } from "node:http";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import type { Caller } from "../../support/clients.ts";
import { dice, SEED } from "../../support/dice.ts";
import { startApplication, type TestApplication } from "../../support/migration/application.ts";
import { type RedisServer, startRedis } from "../../support/redis.ts";
import { type Service, startService, withKeys } from "../../support/service.ts";
import { admin, bearer, message, openAdmin, openPublic, somebody, successor } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, logoutByCookie } = SessionService.method;
const TOKEN = "t".repeat(40);

let application: TestApplication;
let redis: RedisServer;
beforeAll(async () => {
  [application, redis] = await Promise.all([startApplication(), startRedis()]);
});
afterAll(() => Promise.all([application.stop(), redis.stop()]));

/** Returns the error of a refresh with this cookie; `ok` if it is served. */
async function codeOf(caller: Caller, cookie: string): Promise<string> {
  const response = await caller.call(refresh, {}, { cookie });
  return response.ok ? "ok" : String(response.code);
}

type Env = Readonly<Record<string, string>>;
const PLACES: readonly (readonly [name: string, start: (env: Env) => Promise<Service[]>])[] = [
  [
    "two instances on Redis",
    (env) => {
      const shared = { ...env, DATA_DIR: withKeys(), REDIS_URL: redis.url };
      return Promise.all([startService(shared), startService(shared)]);
    },
  ],
  [
    "two workers",
    async (env) => {
      const settings = { DATA_DIR: withKeys(), REDIS_URL: redis.url, REDIS_KEY_PREFIX: "w:", WORKERS: "2" };
      const service = await startService({ ...env, ...settings });
      return [service, service];
    },
  ],
  [
    "two processes on one file",
    async (env) => {
      const first = await startService(env);
      return [first, await startService({ ...env, DATA_DIR: first.dataDir })];
    },
  ],
];

describe.each(PLACES)("%s", (_name, start) => {
  let services: Service[];
  let callers: readonly [Caller, Caller];
  beforeAll(async () => {
    services = await start({
      MIGRATE_COOKIES: "connect.sid",
      MIGRATE_URL: application.url,
      ADMIN_TOKENS: TOKEN,
      ISSUER: "https://auth.example",
      RATE_LIMIT_CREATE: "off",
      REDIS_COMMAND_TIMEOUT: "10s",
      REUSE_INTERVAL: "60s",
      OVERLOAD_MAX_LOOP_DELAY: "0",
    });
    const [one, two] = services as [Service, Service];
    callers = [openPublic(one), openPublic(two)];
  });
  afterAll(async () => {
    for (const caller of callers) caller.close();
    await Promise.all([...new Set(services)].map((service) => service.stop()));
  });

  const sessionsOf = async (subject: string) => {
    const caller = openAdmin(services[0] as Service);
    const { sessions } = message(await caller.call(admin.listSessions, { subject }, bearer(TOKEN)));
    caller.close();
    return sessions;
  };

  test("both get the same token, whichever is first, and a logout at one holds at the other", async () => {
    for (let round = 0; round < 10; round++) {
      const subject = somebody();
      const cookie = `connect.sid=${randomUUID()}`;
      // The application replies when both have asked, so that both create the session at the same time. Of two workers, one may have
      // got both requests, and asks once.
      const waiting: ServerResponse[] = [];
      const asked = Promise.withResolvers<void>();
      application.reply(cookie, (response) => {
        waiting.push(response);
        if (waiting.length === new Set(services).size) asked.resolve();
      });
      const both = callers.map((caller) => caller.call(refresh, {}, { cookie }));
      await asked.promise;
      application.reply(cookie, { subject });
      for (const response of waiting) response.end(JSON.stringify({ subject }));
      const responses = await Promise.all(both);
      const [token, ...others] = new Set(responses.map((response) => message(response) && successor(response)));
      expect(others).toEqual([]);
      expect(await sessionsOf(subject)).toHaveLength(1);
      const own = { cookie: `refresh_token=${token}; ${cookie}` };
      const [one, two] = callers;
      message(await one.call(refresh, {}, own));
      message(await two.call(refresh, {}, own));
      message(await one.call(logoutByCookie, {}, own));
      for (const caller of callers) {
        await until(async () => expect(await codeOf(caller, cookie)).toBe("E001_AUTH_FAILURE"));
      }
      expect(await sessionsOf(subject)).toEqual([]);
    }
  });

  test(`no browser is signed out, whatever responses and replies are lost, until it logs out (SEED=${SEED})`, async () => {
    const browse = async (_: unknown, index: number) => {
      const random = dice(SEED + index);
      const subject = somebody();
      const old = `connect.sid=${randomUUID()}`;
      let own: string | undefined;
      let served = 0;
      const header = () => ({ cookie: own === undefined ? old : `refresh_token=${own}; ${old}` });
      const tab = async () => {
        // All is drawn before the call, because the tabs get their responses in any order.
        const [fails, caller, arrives] = [random.chance(0.3), random.pick(callers), random.chance(0.7)];
        application.reply(old, fails ? 500 : { subject });
        const response = await caller.call(refresh, {}, header());
        if (!response.ok) expect(response.code).toBe("E503_UNAVAILABLE");
        else if (arrives) {
          own = successor(response);
          served++;
        }
      };
      while (served < 5) await Promise.all([tab(), tab(), tab()]);
      application.reply(old, { subject });
      expect(await sessionsOf(subject)).toHaveLength(1);
      // A busy machine may make the store or the application late: that is 503, and tried again.
      await until(async () => message(await callers[0].call(logoutByCookie, {}, header())));
      await until(async () => expect(await codeOf(callers[1], old)).toBe("E001_AUTH_FAILURE"));
    };
    await Promise.all(Array.from({ length: 20 }, browse));
  });

  test("back and forth: without the settings the old session still counts there, and its user is the same here later", async () => {
    // What a rollback leaves: the application's own session was not touched, and the session here has its own cookie.
    const subject = somebody();
    const old = `connect.sid=${randomUUID()}`;
    application.reply(old, { subject });
    const migrated = await callers[0].call(refresh, {}, { cookie: old });
    expect(migrated.headers.getSetCookie().join()).not.toContain("connect.sid");
    const again = await callers[1].call(refresh, {}, { cookie: `refresh_token=${successor(migrated)}; ${old}` });
    message(again);
    expect(application.asked.filter(({ headers }) => headers.cookie === old)).toHaveLength(1);
    expect(await sessionsOf(subject)).toHaveLength(1);
  });
});

test("a rollback: an instance without the settings serves what was migrated, and asks for nothing", async () => {
  const DATA_DIR = withKeys();
  const settings = { DATA_DIR, REDIS_URL: redis.url, REDIS_KEY_PREFIX: "r:", ADMIN_TOKENS: TOKEN };
  const first = await startService({ ...settings, MIGRATE_COOKIES: "connect.sid", MIGRATE_URL: application.url });
  const old = `connect.sid=${randomUUID()}`;
  application.reply(old, { subject: somebody() });
  const migrated = await openPublic(first).call(refresh, {}, { cookie: old });
  const own = `refresh_token=${successor(migrated)}`;
  await first.stop();
  const second = await startService(settings);
  const before = application.asked.length;
  message(await openPublic(second).call(refresh, {}, { cookie: `${own}; ${old}` }));
  expect(await openPublic(second).call(refresh, {}, { cookie: old })).toMatchObject({ code: "E001_AUTH_FAILURE" });
  expect(application.asked.length).toBe(before);
  await second.stop();
});
