/** What sessions keep of the request that last refreshed them (LAST_SEEN), and that a new device is reported. */
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { SessionEventType } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import {
  admin,
  bearer,
  cookie,
  type LoggedIn,
  logIn,
  message,
  openAdmin,
  openPublic,
  somebody,
  successor,
} from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, listSessions } = SessionService.method;
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";

type Target = { readonly publicUrl: string; readonly adminUrl: string; readonly adminToken: string };

/** Returns what the admin API and the list of the user say about who last refreshed a session. */
async function seen(service: Target, { sid, accessToken }: LoggedIn) {
  const found = await openAdmin(service).call(admin.getSession, { sessionId: sid }, bearer(service.adminToken));
  const { session } = message(found);
  const { data } = message(await openPublic(service).call(listSessions, {}, bearer(accessToken)));
  const own = data?.sessions.find(({ sessionId }) => sessionId === sid);
  const client = session?.lastSeenClient;
  expect([own?.lastSeenUserAgent, own?.lastSeenIpAddress]).toEqual([client?.userAgent ?? "", client?.ipAddress ?? ""]);
  return { client, time: session?.lastRefreshTime, login: session?.client };
}

/** Sends the bytes of a refresh, with a user agent of any bytes. */
async function refreshWith(service: Target, refreshToken: string, userAgent: Buffer): Promise<string> {
  const { hostname, port } = new URL(service.publicUrl);
  const socket = connect(Number(port), hostname);
  socket.write(`POST /v1/auth/refresh HTTP/1.1\r\nHost: ${hostname}:${port}\r\nConnection: close\r\n`);
  socket.write(`Cookie: refresh_token=${refreshToken}\r\nContent-Length: 0\r\nUser-Agent: `);
  socket.write(userAgent);
  socket.write("\r\n\r\n");
  let text = "";
  for await (const chunk of socket) text += String(chunk);
  return text;
}

describe.each(STORES)("on the %s store", (store) => {
  describe("LAST_SEEN=full behind a proxy", () => {
    const service = aService({ LAST_SEEN: "full", TRUST_PROXY: "1", REUSE_INTERVAL: "0" }, store);
    const from = (address: string) => ({ "user-agent": FIREFOX, "x-forwarded-for": `203.0.113.66, ${address}` });

    throughEvery(
      PUBLIC_PROTOCOLS,
      () => service.publicUrl,
      (caller) => {
        test("each refresh replaces the address that the proxy reports, and the user agent", async () => {
          const client = { userAgent: "of the login", ipAddress: "192.0.2.1" };
          const user = await logIn(service, { client });
          expect(await seen(service, user)).toMatchObject({ client: undefined, login: client });
          const first = await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...from("198.51.100.7") });
          message(first);
          const once = await seen(service, user);
          // grpc-js puts its own name into the header, too.
          const userAgent = expect.stringMatching(/^Mozilla\/5\.0 .* Firefox\/140\.0$|^grpc-node-js/);
          expect(once).toMatchObject({ client: { userAgent, ipAddress: "198.51.100.7" }, login: client });
          const headers = { ...cookie(successor(first) ?? ""), ...from("::ffff:198.51.100.8") };
          message(await caller.call(refresh, {}, headers));
          expect((await seen(service, user)).client).toMatchObject({ ipAddress: "198.51.100.8" });
        });
      },
    );

    test("a refresh at the token endpoint counts", async () => {
      const user = await logIn(service, { clientId: "cli" });
      const response = await fetch(`${service.publicUrl}/v1/oauth/token`, {
        method: "POST",
        headers: { "user-agent": "example-cli/1.2", "x-forwarded-for": "2001:db8::7" },
        body: new URLSearchParams({
          grant_type: "refresh_token",
          refresh_token: user.refreshToken,
          client_id: "cli",
        }),
      });
      expect(response.status).toBe(200);
      const client = { userAgent: "example-cli/1.2", ipAddress: "2001:db8::7" };
      expect((await seen(service, user)).client).toMatchObject(client);
    });

    test("a user agent of 8 KiB, and one of bytes that are no text, are kept within their bounds", async () => {
      const user = await logIn(service);
      const bytes = Buffer.from([0x41, 0xff, 0xfe, 0xc3, 0x28, 0x80, 0x5a]);
      const response = await refreshWith(service, user.refreshToken, bytes);
      expect(response).toContain(" 200 ");
      expect((await seen(service, user)).client?.userAgent).toBe("A(Z");
      const next = /refresh_token=([^;]+)/.exec(response)?.[1] ?? "";
      expect(await refreshWith(service, next, Buffer.alloc(8192, "u"))).toContain(" 200 ");
      expect((await seen(service, user)).client?.userAgent).toBe("u".repeat(512));
    });

    test("a refused refresh is not kept", async () => {
      const user = await logIn(service);
      const headers = { ...cookie(user.refreshToken), ...from("198.51.100.7"), "sec-fetch-site": "cross-site" };
      expect(await openPublic(service).call(refresh, {}, headers)).toMatchObject({ code: "E403_FORBIDDEN" });
      expect((await seen(service, user)).client).toBeUndefined();
    });
  });

  describe("LAST_SEEN=truncated without a proxy", () => {
    const service = aService({ LAST_SEEN: "truncated" }, store);

    test("the network and the names are kept; a forwarded address is not believed, and a repeat changes nothing", async () => {
      const user = await logIn(service);
      const headers = { ...cookie(user.refreshToken), "user-agent": FIREFOX, "x-forwarded-for": "198.51.100.7" };
      message(await openPublic(service).call(refresh, {}, headers));
      const once = await seen(service, user);
      expect(once.client).toMatchObject({ userAgent: "Firefox on Linux", ipAddress: "127.0.0.0/24" });
      const other = { ...cookie(user.refreshToken), "user-agent": "curl/8" };
      message(await openPublic(service).call(refresh, {}, other));
      expect(await seen(service, user)).toEqual(once);
      expect(service.stderr()).not.toContain("Firefox");
    });
  });
});

describe("LAST_SEEN=off, the default", () => {
  const service = aService();

  test("nothing is kept", async () => {
    const user = await logIn(service);
    message(await openPublic(service).call(refresh, {}, { ...cookie(user.refreshToken), "user-agent": FIREFOX }));
    expect((await seen(service, user)).client).toBeUndefined();
  });
});

describe.each(STORES)("a new device on the %s store", (store) => {
  const service = aService({}, store);

  test("an event says that no live session had the user agent, beside the one of the creation", async () => {
    const subject = somebody();
    const login = (userAgent: string) => logIn(service, { subject, client: { userAgent } });
    const firefox = await login("Firefox");
    await login("Firefox");
    await login("");
    const chrome = await login("Chrome");
    const events = await until(async () => {
      const wanted = { subject, pageSize: 100 };
      const found = await openAdmin(service).call(admin.listSessionEvents, wanted, bearer(service.adminToken));
      const listed = message(found).events;
      return listed.length >= 6 ? listed : Promise.reject(new Error(`${listed.length} events`));
    });
    const { CREATED, NEW_DEVICE } = SessionEventType;
    expect(events.filter(({ type }) => type === CREATED)).toHaveLength(4);
    const fresh = events.filter(({ type }) => type === NEW_DEVICE);
    expect(fresh.map(({ sessionId, client }) => [sessionId, client?.userAgent])).toEqual([
      [chrome.sid, "Chrome"],
      [firefox.sid, "Firefox"],
    ]);
    expect(service.stderr()).toContain('"newDevice":true');
  });
});
