/** The service with a Redis that fails, starts late, or must not be used because of its settings. */
import { Code } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { type Caller, type ProtocolClient, PUBLIC_PROTOCOLS, RPC_PROTOCOLS } from "../../support/clients.ts";
import { freePort } from "../../support/free-port.ts";
import { request } from "../../support/raw-http.ts";
import { RedisServer, startRedis } from "../../support/redis.ts";
import { runToExit, type Service, spawnService, startService, waitFor, withKeys } from "../../support/service.ts";
import {
  admin,
  bearer,
  cookie,
  type LoggedIn,
  logIn,
  message,
  openAdmin,
  openPublic,
  successor,
} from "../../support/sessions.ts";
import { quietMs } from "../../support/slowness.ts";

const { refresh, logout, listSessions, revokeSession, revokeOtherSessions } = SessionService.method;
const ADMIN_TOKEN = "admin".repeat(8);
const COMMAND_TIMEOUT_MS = 500;
/**
 * All calls are sent at once, and each may wait for one command timeout. This is how long they may take beyond that, in ms. Calls that
 * waited for a second timeout would take longer.
 */
const MAX_QUIET_MS = 300;
const UNAVAILABLE = { ok: false, code: "E503_UNAVAILABLE", text: "temporarily unavailable, try again" };

let redis: RedisServer;
let service: Service;
beforeAll(async () => {
  redis = await startRedis("--appendonly", "yes", "--appendfsync", "always");
  service = await startService({ DATA_DIR: withKeys(), REDIS_URL: redis.url, ADMIN_TOKENS: ADMIN_TOKEN });
});
afterAll(async () => {
  await service.stop();
  await redis.stop();
});

/** Calls every method with good credentials, all at once. */
function everything(publicListener: Caller, adminListener: Caller, user: LoggedIn) {
  const { subject, sid: sessionId, accessToken, refreshToken } = user;
  const own = bearer(accessToken);
  const header = bearer(ADMIN_TOKEN);
  return Promise.all([
    publicListener.call(refresh, {}, cookie(refreshToken)),
    publicListener.call(logout, {}, own),
    publicListener.call(listSessions, {}, own),
    publicListener.call(revokeSession, { sessionId }, own),
    publicListener.call(revokeOtherSessions, {}, own),
    adminListener.call(admin.createSession, { subject }, header),
    adminListener.call(admin.getSession, { sessionId }, header),
    adminListener.call(admin.listSessions, { subject }, header),
    adminListener.call(admin.revokeSession, { sessionId }, header),
    adminListener.call(admin.revokeSubjectSessions, { subject }, header),
    adminListener.call(admin.introspectToken, { token: accessToken }, header),
    adminListener.call(admin.introspectToken, { token: refreshToken }, header),
  ]);
}

/** Polls until the store is available. */
async function untilReady(url: string): Promise<void> {
  while ((await request(url, { path: "/readyz" })).status !== 200);
}

describe("while Redis does not respond, no credential is refused", () => {
  type Step = () => void | Promise<void>;
  test.each<[what: string, begin: Step, end: Step, lost: boolean]>([
    ["was killed", () => redis.kill(), () => redis.start(), true],
    ["hangs", () => redis.pause(), () => redis.resume(), false],
  ])(
    "Redis %s: unavailable after one command timeout on every protocol, and service when it is back",
    async (_, begin, end, lost) => {
      const users: LoggedIn[] = [];
      while (users.length < PUBLIC_PROTOCOLS.length) users.push(await logIn(service));
      await begin();
      try {
        for (const [at, kind] of PUBLIC_PROTOCOLS.entries()) {
          const publicListener = kind.open(service.publicUrl);
          const adminListener = (RPC_PROTOCOLS[at] ?? (RPC_PROTOCOLS[0] as ProtocolClient)).open(service.adminUrl);
          let responses: Awaited<ReturnType<typeof everything>> | undefined;
          const tookMs = await quietMs(COMMAND_TIMEOUT_MS, async () => {
            responses = await everything(publicListener, adminListener, users[at] as LoggedIn);
          });
          expect(tookMs).toBeLessThan(MAX_QUIET_MS);
          for (const response of responses ?? []) {
            expect(response).toMatchObject(UNAVAILABLE);
            expect(response.headers.get("retry-after")).toBe("1");
            expect(response.headers.getSetCookie()).toEqual([]);
          }
          // Requests whose response does not depend on the store get it during the outage as well.
          expect(await publicListener.call(refresh, {}, cookie("x"))).toMatchObject({ code: "E001_AUTH_FAILURE" });
          publicListener.close();
          adminListener.close();
        }
        const ready = await request(service.publicUrl, { path: "/readyz" });
        expect([ready.status, ready.headers.get("retry-after")]).toEqual([503, "1"]);
        expect((await request(service.publicUrl, { path: "/healthz" })).status).toBe(200);
      } finally {
        await end();
      }
      await untilReady(service.publicUrl);
      for (const [at, kind] of PUBLIC_PROTOCOLS.entries()) {
        const listener = kind.open(service.publicUrl);
        const user = users[at] as LoggedIn;
        // If Redis was only stalled, it now executes the commands that it had received, which include the logouts. If it was lost, the
        // sessions are still live.
        if (lost) message(await listener.call(refresh, {}, cookie(user.refreshToken)));
        const fresh = await logIn(service);
        message(await listener.call(refresh, {}, cookie(fresh.refreshToken)));
        message(await listener.call(logout, {}, bearer(fresh.accessToken)));
        listener.close();
      }
    },
  );
});

test("watchers hear nothing while Redis is away, and again when it is back", async () => {
  const user = await logIn(service);
  const caller = (RPC_PROTOCOLS[3] as ProtocolClient).open(service.adminUrl);
  const watch = () => caller.stream(admin.watchRevocations, {}, bearer(ADMIN_TOKEN))[Symbol.asyncIterator]();
  let batches = watch();
  // Opens the feed of revocations until it sends a message, such as a heartbeat. That shows that the feed works after the outage.
  for (let silent = true; silent; batches = silent ? watch() : batches) {
    silent = await batches.next().then(
      () => false,
      () => true,
    );
  }
  const silences = () => service.stderr().split("the feed is silent").length;
  const before = silences();
  await redis.kill();
  await waitFor(service, () => silences() > before || undefined);
  await expect(watch().next()).rejects.toMatchObject({ code: Code.Unavailable });
  await redis.start();
  await untilReady(service.publicUrl);
  message(await openPublic(service).call(logout, {}, bearer(user.accessToken)));
  for (let reported = false; !reported; ) {
    const { value } = await batches.next();
    reported = value?.revocations.some(({ sessionId }: { sessionId: string }) => sessionId === user.sid) ?? false;
  }
  caller.close();
});

test("a service that is started before its Redis opens its listeners, and is ready when Redis is", async () => {
  const late = new RedisServer(await freePort(), []);
  const [port, adminPort] = [String(await freePort()), String(await freePort())];
  const env = {
    DATA_DIR: withKeys(),
    REDIS_URL: late.url,
    ADMIN_TOKENS: ADMIN_TOKEN,
    PORT: port,
    ADMIN_PORT: adminPort,
  };
  const early = spawnService(env);
  const publicUrl = `http://127.0.0.1:${port}`;
  await waitFor(early, () => (early.stderr().includes("waiting for the store") ? true : undefined));
  expect(await openPublic({ publicUrl }).call(listSessions, {}, bearer("x"))).toMatchObject({
    code: "E001_AUTH_FAILURE",
  });
  const created = await openAdmin({ adminUrl: `http://127.0.0.1:${adminPort}` }).call(
    admin.createSession,
    { subject: "early" },
    bearer(ADMIN_TOKEN),
  );
  expect(created).toMatchObject(UNAVAILABLE);
  expect((await request(publicUrl, { path: "/readyz" })).status).toBe(503);
  expect(early.stdout()).toBe("");
  await late.start();
  const ready = await waitFor(early, () => (early.stdout().includes("\n") ? early.stdout() : undefined));
  expect(JSON.parse(ready)).toEqual({ event: "ready", public: publicUrl, admin: expect.any(String), store: "redis" });
  message(
    await openAdmin({ adminUrl: `http://127.0.0.1:${adminPort}` }).call(
      admin.createSession,
      { subject: "early" },
      bearer(ADMIN_TOKEN),
    ),
  );
  early.kill("SIGTERM");
  expect(await early.exited).toEqual({ code: 0, signal: null });
  await late.stop();
});

describe("a Redis that must not be used", () => {
  const env = (url: string) => ({
    DATA_DIR: withKeys(),
    REDIS_URL: url,
    REDIS_KEY_PREFIX: "other:",
    ADMIN_TOKENS: ADMIN_TOKEN,
    ISSUER: "https://auth.example.com",
    TRUST_PROXY: "1",
  });

  test.each<[what: string, user: string[], url: (url: string) => string, why: string]>([
    ["may evict", ["default"], (url) => url, "noeviction"],
    ["does not let its user ask", ["user", "on", ">pw", "~*", "&*", "+@all", "-info"], asUser, "+info"],
    ["has given its user no channel", ["user", "on", ">pw", "~*", "+@all"], asUser, "&other:session-revocations"],
  ])("one that %s is refused at start, with the reason in one line", async (_, user, url, why) => {
    const unfit = await startRedis("--maxmemory-policy", why === "noeviction" ? "allkeys-lru" : "noeviction");
    await unfit.admin.call("ACL", "SETUSER", ...user);
    const exit = await runToExit(env(url(unfit.url)));
    await unfit.stop();
    expect(exit.code).toBe(1);
    expect(exit.stderr.trimEnd().split("\n")).toEqual([expect.stringContaining(why)]);
  });

  test("one that turns up while the service waits for it ends the start too", async () => {
    const late = new RedisServer(await freePort(), ["--maxmemory-policy", "allkeys-lru"]);
    const early = spawnService({ ...env(late.url), PORT: "0", ADMIN_PORT: "0" });
    await waitFor(early, () => early.stderr().includes("waiting for the store") || undefined);
    await late.start();
    expect(await early.exited).toEqual({ code: 1, signal: null });
    expect(early.stderr().trimEnd().split("\n").at(-1)).toMatch(/^the Redis at .* noeviction$/);
    expect(early.stdout()).toBe("");
    await late.stop();
  });

  test("one that becomes so is an outage, which ends when it is fixed, without a restart", async () => {
    const user = await logIn(service);
    const caller = openPublic(service);
    await redis.admin.config("SET", "maxmemory-policy", "allkeys-lru");
    const line = await waitFor(service, () => /^.*"level":"error".*allkeys-lru.*$/m.exec(service.stderr())?.[0]);
    expect(JSON.parse(line)).toMatchObject({ level: "error" });
    expect((await request(service.publicUrl, { path: "/readyz" })).status).toBe(503);
    expect(await caller.call(refresh, {}, cookie(user.refreshToken))).toMatchObject(UNAVAILABLE);
    expect(await caller.call(logout, {}, bearer(user.accessToken))).toMatchObject(UNAVAILABLE);
    await redis.admin.config("SET", "maxmemory-policy", "noeviction");
    await untilReady(service.publicUrl);
    message(await caller.call(refresh, {}, cookie(user.refreshToken)));
  });

  test("a permission that is taken away makes no logout a bug, and none is lost", async () => {
    await redis.admin.call("ACL", "SETUSER", "user", "on", ">pw", "~*", "&*", "+@all");
    const own = await startService(env(asUser(redis.url)));
    const user = await logIn(own);
    const caller = openPublic(own);
    await redis.admin.call("ACL", "SETUSER", "user", "-zadd");
    expect(await caller.call(logout, {}, bearer(user.accessToken))).toMatchObject(UNAVAILABLE);
    expect((await request(own.publicUrl, { path: "/readyz" })).status).toBe(503);
    await redis.admin.call("ACL", "SETUSER", "user", "+zadd");
    await untilReady(own.publicUrl);
    message(await caller.call(logout, {}, bearer(user.accessToken)));
    expect(await redis.admin.call("ACL", "DELUSER", "user")).toBe(1);
    expect((await own.stop()).code).toBe(0);
  });

  function asUser(url: string): string {
    return url.replace("//", "//user:pw@");
  }
});

test("two instances on one Redis are one service", async () => {
  const other = await startService({
    DATA_DIR: service.dataDir,
    REDIS_URL: redis.url,
    ADMIN_TOKENS: ADMIN_TOKEN,
    ISSUER: service.publicUrl,
  });
  const user = await logIn(service);
  const refreshed = await openPublic(other).call(refresh, {}, cookie(user.refreshToken));
  expect(successor(refreshed)).toBe(successor(await openPublic(service).call(refresh, {}, cookie(user.refreshToken))));
  message(await openPublic(other).call(logout, {}, bearer(user.accessToken)));
  expect(await openPublic(service).call(listSessions, {}, bearer(user.accessToken))).toMatchObject({
    code: "E001_AUTH_FAILURE",
  });
  expect((await other.stop()).code).toBe(0);
});
