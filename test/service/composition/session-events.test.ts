/** The RPC `ListSessionEvents`, by which support staff finds out why sessions ended. */
import { describe, expect, test } from "vitest";
import {
  RevocationReason,
  SessionAdminService,
  type SessionEvent,
  SessionEventType,
} from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { aService, STORES } from "../../support/every-protocol.ts";
import { startService } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, openPublic, somebody } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { CREATED, ENDED, ALL_ENDED } = SessionEventType;

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({}, store);

  /** Returns the events of a subject, after waiting for this many of them. */
  async function eventsOf(subject: string, count: number): Promise<readonly SessionEvent[]> {
    const caller = openAdmin(service);
    const list = async () =>
      message(await caller.call(admin.listSessionEvents, { subject, pageSize: 100 }, bearer(service.adminToken)));
    return until(async () => {
      const { events } = await list();
      if (events.length < count) throw new Error(`${events.length} events`);
      return events;
    });
  }

  test("an ending is there with its reason and who asked for it, whoever ended the session", async () => {
    const subject = somebody();
    const client = { userAgent: "Firefox", displayName: "laptop" };
    const users = [];
    for (let at = 0; at < 3; at++) users.push(await logIn(service, { subject, clientId: "web", client }));
    const [a, b, c] = users;
    if (!a || !b || !c) throw new Error("no sessions");
    const header = bearer(service.adminToken);
    message(await openAdmin(service).call(admin.revokeSession, { sessionId: a.sid }, header));
    message(await openPublic(service).call(SessionService.method.logout, {}, bearer(b.accessToken)));
    message(await openPublic(service).call(SessionService.method.logoutByCookie, {}, cookie(c.refreshToken)));
    const events = await eventsOf(subject, 7);
    const ends = events.filter(({ type }) => type === ENDED);
    expect(new Map(ends.map((event) => [event.sessionId, event.revocationReason]))).toEqual(
      new Map([
        [a.sid, RevocationReason.REVOKED_BY_ADMIN],
        [b.sid, RevocationReason.LOGOUT],
        [c.sid, RevocationReason.LOGOUT],
      ]),
    );
    expect(ends.find(({ sessionId }) => sessionId === a.sid)).toMatchObject({
      admin: expect.stringMatching(/./),
      ipAddress: "127.0.0.1",
      subject,
    });
    expect(ends.find(({ sessionId }) => sessionId === b.sid)?.admin).toBe("");
    const logins = events.filter(({ type }) => type === CREATED);
    expect(logins).toHaveLength(3);
    for (const login of logins) expect(login).toMatchObject({ clientId: "web", client });
  });

  test("a text that is cut within a character leaves the events readable", async () => {
    const subject = somebody();
    await logIn(service, { subject, client: { userAgent: `${"a".repeat(199)}\u{1F600} and more` } });
    const { typeName } = SessionAdminService;
    // The test reads the raw JSON: a client that validates UTF-8 would refuse a response with half of a character as a whole.
    const events = await until(async () => {
      const response = await fetch(`${service.adminUrl}/${typeName}/${admin.listSessionEvents.name}`, {
        method: "POST",
        headers: { ...bearer(service.adminToken), "content-type": "application/json" },
        body: JSON.stringify({ subject }),
      });
      const listed = (await response.json()) as { readonly events: { readonly client?: { userAgent: string } }[] };
      return listed.events.length > 0 ? listed.events : Promise.reject(new Error("no events"));
    });
    expect(events[0]?.client?.userAgent).toBe(`${"a".repeat(199)}\uFFFD`);
  });

  test("pages follow each other without gaps or repeats, of a subject and of a session", async () => {
    const subject = somebody();
    for (let at = 0; at < 5; at++) await logIn(service, { subject });
    const all = await eventsOf(subject, 5);
    const caller = openAdmin(service);
    const seen: SessionEvent[] = [];
    let pageToken = "";
    do {
      const wanted = { subject, pageSize: 2, pageToken };
      const page = message(await caller.call(admin.listSessionEvents, wanted, bearer(service.adminToken)));
      seen.push(...page.events);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(seen).toEqual(all);
    const sessionId = all[0]?.sessionId ?? "";
    const own = message(await caller.call(admin.listSessionEvents, { sessionId }, bearer(service.adminToken)));
    expect(own.events).toEqual([all[0]]);
  });

  test.each([
    ["neither", {}],
    ["both", { subject: "x", sessionId: "A".repeat(23) }],
    ["a session id that is none", { sessionId: "x" }],
    ["a page token that is none", { subject: "x", pageToken: "e30" }],
  ])("%s: refused", async (_, wanted) => {
    const response = await openAdmin(service).call(admin.listSessionEvents, wanted, bearer(service.adminToken));
    expect(response).toMatchObject({ ok: false, code: "E400_INVALID_REQUEST" });
  });

  test("the end of all is among the events of everybody", async () => {
    const { subject } = await logIn(service);
    await eventsOf(subject, 1);
    message(await openAdmin(service).call(admin.revokeAllSessions, {}, bearer(service.adminToken)));
    const events = await eventsOf(subject, 2);
    expect(events[0]?.type).toBe(ALL_ENDED);
    expect(events[0]?.revokedUntilTime).toBeDefined();
  });
});

test("events outlive a restart, and with EVENT_RETENTION=0 none are kept", async () => {
  const first = await startService();
  const { subject } = await logIn(first);
  await first.stop(); // At its stop the service first writes outstanding events.
  const second = await startService({ DATA_DIR: first.dataDir, EVENT_RETENTION: "0" });
  await logIn(second, { subject });
  await second.stop();
  const third = await startService({ DATA_DIR: first.dataDir });
  const header = bearer(third.adminToken);
  const { events } = message(await openAdmin(third).call(admin.listSessionEvents, { subject }, header));
  await third.stop();
  expect(events.map(({ type }) => type)).toEqual([CREATED]);
});
