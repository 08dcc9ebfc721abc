/**
 * ForgetSubject and ExportSubject of the running service. After a subject is forgotten, neither the subject nor anything that was stored of
 * it is in any key of Redis, in any byte of the directory of the embedded store, or in what the service logs from then on.
 */
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";
import { SignalsAdminService, SubscriptionKind } from "../../../gen/auth/admin/v1/signals_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { MAX_EVENT_SESSIONS } from "../../../src/service/session/events/events.ts";
import { aService } from "../../support/every-protocol.ts";
import { startRedis, startRedisCluster } from "../../support/redis.ts";
import { type Service, scratch, startService, withKeys } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, openPublic } from "../../support/sessions.ts";
import { EVENT_MS, until } from "../../support/until.ts";
import { startReceiver } from "../signals/world.ts";

const SETTINGS = {
  ADMIN_TOKENS: "a".repeat(40),
  ISSUER: "https://auth.example.com",
  SIGNALS: "on",
  SIGNALS_ALLOW_PRIVATE: "on",
  LAST_SEEN: "full",
  TRUST_PROXY: "1",
  LOG_LEVEL: "debug",
  RATE_LIMIT_CREATE: "off",
};

/** The subject that is not forgotten. One of the others is the beginning of it. */
const STAYS = "mary.smith";
const SUBJECTS = [
  "mary",
  "müller@exämple.test 🦀",
  "glob*?[a-z]\\{x}^$.()%s",
  "  two  spaces ",
  `quote"'; DROP TABLE sessions; --`,
  "__proto__",
  "é".repeat(127).concat("x"),
];

type Place = {
  readonly env: Readonly<Record<string, string>>;
  /** Returns all that the store has. */
  read(service: Service): Promise<Buffer>;
  stop(): Promise<void>;
};

const PLACES: Readonly<Record<string, () => Promise<Place>>> = {
  async "the embedded store"() {
    const directory = join(scratch(), "data");
    mkdirSync(directory, { mode: 0o700 });
    const read = async () =>
      Buffer.concat(readdirSync(directory).flatMap((name) => [Buffer.from(name), readFileSync(join(directory, name))]));
    return { env: { DATA_DIR: directory }, read, stop: async () => {} };
  },
  async Redis() {
    const server = await startRedis();
    const read = () => everythingIn([server.url]);
    return { env: { DATA_DIR: withKeys(), REDIS_URL: server.url }, read, stop: () => server.stop() };
  },
  async "a cluster of Redis"() {
    const cluster = await startRedisCluster();
    const read = () => everythingIn(cluster.nodes.map(({ url }) => url));
    return { env: { DATA_DIR: withKeys(), REDIS_URL: cluster.url }, read, stop: () => cluster.stop() };
  },
};

/** Returns all keys and all values of all nodes. */
async function everythingIn(urls: readonly string[]): Promise<Buffer> {
  const parts: Buffer[] = [];
  for (const url of urls) {
    const redis = new Redis(url);
    for await (const keys of redis.scanBufferStream({ count: 1_000 }) as AsyncIterable<Buffer[]>) {
      for (const key of keys) parts.push(key, await contentOf(redis, key));
    }
    redis.disconnect();
  }
  return Buffer.concat(parts);
}

async function contentOf(redis: Redis, key: Buffer): Promise<Buffer> {
  switch (await redis.type(key)) {
    case "string":
      return (await redis.getBuffer(key)) ?? Buffer.alloc(0);
    case "hash":
      return Buffer.concat((await redis.callBuffer("HGETALL", key)) as Buffer[]);
    case "zset":
      return Buffer.concat(await redis.zrangeBuffer(key, "0", "-1"));
    case "none":
      return Buffer.alloc(0); // It has expired since it was listed.
    default:
      throw new Error("a type that the service does not use");
  }
}

/** What is stored of a subject. Each text is found nowhere else. */
function dataOf(subject: string) {
  const at = [STAYS, ...SUBJECTS].indexOf(subject);
  return {
    subject,
    claim: `claim-no-${at}-end`,
    userAgent: `agent-no-${at}-end`,
    displayName: `device-no-${at}-end`,
    ipAddress: `2001:db8:1::${at}:aaaa`,
    seenBy: `seen-by-${at}-end`,
    seenFrom: `2001:db8:2::${at}:bbbb`,
  };
}

/** Returns the texts that are in the bytes, as they are or as JSON. The subject that stays does not count as the one that it begins with. */
function found(bytes: Buffer, subject: string): string[] {
  const texts = Object.values(dataOf(subject));
  const withoutOther = bytes.toString("latin1").replaceAll(STAYS, "");
  const latin = (text: string) => Buffer.from(text).toString("latin1");
  return texts.filter((text) => {
    if (text === STAYS) return bytes.includes(text);
    return [text, JSON.stringify(text).slice(1, -1)].some((form) => withoutOther.includes(latin(form)));
  });
}

/** Does with a user whatever the service stores something of. */
async function use(service: Service, subject: string): Promise<void> {
  const { claim, userAgent, displayName, ipAddress, seenBy, seenFrom } = dataOf(subject);
  const wanted = { subject, clientId: "web", claims: { claim }, client: { userAgent, displayName, ipAddress } };
  const headers = { "user-agent": seenBy, "x-forwarded-for": seenFrom };
  const [caller, api] = [openAdmin(service), openPublic(service)];
  const [first, second, third] = [
    await logIn(service, wanted),
    await logIn(service, wanted),
    await logIn(service, wanted),
  ];
  await logIn(service, { ...wanted, idleTimeout: { seconds: 1n } });
  message(await api.call(SessionService.method.refresh, {}, { ...cookie(first.refreshToken), ...headers }));
  const authTime = { seconds: BigInt(Math.floor(Date.now() / 1000)) };
  message(
    await caller.call(
      admin.elevateSession,
      { sessionId: second.sid, authTime, amr: ["otp"] },
      bearer(service.adminToken),
    ),
  );
  message(await api.call(SessionService.method.logout, {}, { ...bearer(third.accessToken), ...headers }));
}

/** Waits until the store has recorded the creations of sessions, so that what is removed is there. */
const recorded = (service: Service, subject: string, count: number) =>
  until(async () => {
    const request = { subject, pageSize: 100 };
    const { events } = message(
      await openAdmin(service).call(admin.listSessionEvents, request, bearer(service.adminToken)),
    );
    expect(events.length).toBeGreaterThanOrEqual(count);
  });

const forget = async (service: Service, subject: string) =>
  message(await openAdmin(service).call(admin.forgetSubject, { subject }, bearer(service.adminToken)));
const exported = async (service: Service, subject: string) =>
  message(await openAdmin(service).call(admin.exportSubject, { subject }, bearer(service.adminToken)));

async function subscribe(service: Service, endpoint: string, filter = {}): Promise<string> {
  const request = { kind: SubscriptionKind.WEBHOOK, endpoint, filter };
  const method = SignalsAdminService.method.createSubscription;
  const { subscription } = message(await openAdmin(service).call(method, request, bearer(service.adminToken)));
  return subscription?.subscriptionId ?? "";
}

describe.each(Object.entries(PLACES))("%s", (_, open) => {
  test("has nothing of a subject that was forgotten, and all of one that was not", async () => {
    const place = await open();
    let service = await startService({ ...SETTINGS, ...place.env });
    let isUp = false;
    const receiver = await startReceiver();
    const failing = await startReceiver(() => (isUp ? 204 : 500));
    await subscribe(service, receiver.url);
    await subscribe(service, failing.url);
    const failingSinceMs = performance.now();
    const everybody = [STAYS, ...SUBJECTS];
    for (const subject of everybody) await use(service, subject);
    message(await openAdmin(service).call(admin.revokeAllSessions, {}, bearer(service.adminToken)));
    for (const subject of everybody) {
      await use(service, subject);
      await recorded(service, subject, 9);
    }
    const [, busy = ""] = SUBJECTS;
    for (let count = 0; count <= MAX_EVENT_SESSIONS; count++)
      await logIn(service, { subject: busy, claims: { claim: dataOf(busy).claim } });
    for (const subject of everybody) {
      expect(found(await place.read(service), subject)).toEqual(Object.values(dataOf(subject)));
    }
    const counts = await Promise.all(SUBJECTS.map((subject) => forget(service, subject)));
    const logged = service.stderr().length;
    for (const count of counts) {
      expect(count.revokedCount).toBeGreaterThanOrEqual(2);
      expect(count.eventCount).toBeGreaterThanOrEqual(9);
      expect(count.signalCount).toBeGreaterThan(0);
    }
    const check = async () => {
      const bytes = await place.read(service);
      for (const subject of SUBJECTS) expect(found(bytes, subject)).toEqual([]);
      expect(found(bytes, STAYS)).toEqual(Object.values(dataOf(STAYS)));
    };
    await check();
    isUp = true;
    // Each failure may double the delay of the next attempt, so that delay grows with the time that the receiver has failed.
    const retryMs = 4 * (performance.now() - failingSinceMs);
    // What one receiver had not accepted reaches it nevertheless, without the subject. The other one had it with the subject.
    await until(() => {
      const sent = failing.received.map(({ body }) => JSON.parse(body).data);
      const ids = new Set(sent.filter((data) => data.subject === undefined).map((data) => data.session_id));
      const whole = receiver.received
        .map(({ body }) => JSON.parse(body).data)
        .filter(({ subject }) => SUBJECTS.includes(subject));
      expect(whole.length).toBeGreaterThan(0);
      for (const { session_id: id } of whole) expect(ids).toContain(id);
    }, EVENT_MS + retryMs);
    await service.stop();
    const log = service.stderr().slice(logged) + service.stdout();
    for (const subject of SUBJECTS) expect(found(Buffer.from(log), subject)).toEqual([]);
    service = await service.restart();
    await check();
    for (const subject of SUBJECTS) {
      expect(await forget(service, subject)).toMatchObject({ revokedCount: 0, eventCount: 0, signalCount: 0 });
      expect(await exported(service, subject)).toMatchObject({
        sessions: [],
        events: [],
        signals: [],
        nextPageToken: "",
      });
    }
    expect((await exported(service, STAYS)).sessions).toHaveLength(2);
    await service.stop();
    await Promise.all([receiver.close(), failing.close()]);
    await place.stop();
  });
});

describe("one call", () => {
  const service = aService({ RATE_LIMIT_CREATE: "off", MAX_SESSIONS_PER_SUBJECT: "200" });
  const call = (pageToken = "", subject = "of many pages") =>
    openAdmin(service).call(admin.exportSubject, { subject, pageToken }, bearer(service.adminToken));

  test("exports a page, and the pages have everything once", async () => {
    const sids: string[] = [];
    for (let count = 0; count < 130; count++) sids.push((await logIn(service, { subject: "of many pages" })).sid);
    const pages = await until(async () => {
      const found = [message(await call())];
      while (found.at(-1)?.nextPageToken) found.push(message(await call(found.at(-1)?.nextPageToken)));
      expect(found.flatMap(({ events }) => events)).toHaveLength(130);
      return found;
    });
    expect(pages.map(({ sessions, events }) => [sessions.length, events.length])).toEqual([
      [100, 0],
      [30, 50],
      [0, 50],
      [0, 30],
    ]);
    const exported = pages.flatMap(({ sessions }) => sessions.map(({ sessionId }) => sessionId));
    expect(exported.toSorted()).toEqual(sids.toSorted());
    expect(new Set(pages.flatMap(({ events }) => events.map(({ sessionId }) => sessionId)))).toEqual(new Set(sids));
  });

  test.each(["x", "s", "g", "g-1", "sabc", "ex y"])("refuses the position %j", async (position) => {
    const token = Buffer.from(position).toString("base64url");
    const response = await call(token, "nobody");
    // A position after an id that never was is one in the order of ids.
    if (position === "s" || position === "ex y") expect(response.ok).toBe(true);
    else expect(response).toMatchObject({ code: "E400_INVALID_REQUEST" });
  });

  test.each(["", "a\nb", "x".repeat(256)])("refuses the subject %j", async (subject) => {
    expect(await call("", subject)).toMatchObject({ code: "E400_INVALID_REQUEST" });
    const forgotten = openAdmin(service).call(admin.forgetSubject, { subject }, bearer(service.adminToken));
    expect(await forgotten).toMatchObject({ code: "E400_INVALID_REQUEST" });
  });

  test("reports subscriptions that name the subject, and leaves them", async () => {
    const own = await startService(SETTINGS);
    const receiver = await startReceiver();
    const [only, other] = [
      await subscribe(own, receiver.url, { subject: "alice" }),
      await subscribe(own, receiver.url, { subject: "alice2" }),
    ];
    expect((await exported(own, "alice")).subscriptionIds).toEqual([only]);
    expect((await forget(own, "alice")).subscriptionIds).toEqual([only]);
    expect((await exported(own, "alice2")).subscriptionIds).toEqual([other]);
    await own.stop();
    await receiver.close();
  });

  test("a login while a user is being forgotten is a new session, and stays", async () => {
    const subject = "in both ways";
    const before = await logIn(service, { subject });
    const [, ...after] = await Promise.all([
      forget(service, subject),
      ...Array.from({ length: 20 }, () => logIn(service, { subject })),
    ]);
    const { sessions } = await exported(service, subject);
    const live = new Set(sessions.map(({ sessionId }) => sessionId));
    expect(live).not.toContain(before.sid);
    const refreshed = await Promise.all(
      after.map(({ refreshToken }) =>
        openPublic(service).call(SessionService.method.refresh, {}, cookie(refreshToken)),
      ),
    );
    // Those that were created before the call ended the sessions have ended, too. Nothing is left in between.
    expect(refreshed.map(({ ok }) => ok)).toEqual(after.map(({ sid }) => live.has(sid)));
    await forget(service, subject);
    expect(await exported(service, subject)).toMatchObject({ sessions: [], events: [] });
  });
});
