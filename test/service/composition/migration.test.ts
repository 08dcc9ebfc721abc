/** A browser that has the cookie of another system's session gets a session of this service, without a login. */
import { hash, randomUUID } from "node:crypto";
import { createRemoteJWKSet, decodeJwt, jwtVerify } from "jose";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { type Reply, startApplication, type TestApplication } from "../../support/migration/application.ts";
import { type Service, startService } from "../../support/service.ts";
import { admin, bearer, logIn, message, openAdmin, openPublic, somebody, successor } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, logout, logoutByCookie } = SessionService.method;
const COOKIES = "connect.sid,next-auth.session-token,__Host-only";

let application: TestApplication;
beforeAll(async () => {
  application = await startApplication();
});
afterAll(() => application.stop());

/** Returns an old cookie that no other test uses, for which the application gives this reply. */
function oldCookie(reply: Reply, name = "connect.sid"): string {
  const cookie = `${name}=s%3A${randomUUID()}.c2ln`;
  application.reply(cookie, reply);
  return cookie;
}

const withCookie = (cookie: string) => ({ cookie });
const asks = (cookie: string) => application.asked.filter(({ headers }) => headers.cookie === cookie);

async function sessionsOf(service: Pick<Service, "adminUrl" | "adminToken">, subject: string) {
  const caller = openAdmin(service);
  onTestFinished(() => void caller.close());
  return message(await caller.call(admin.listSessions, { subject }, bearer(service.adminToken))).sessions;
}

const metric = async (service: Pick<Service, "adminUrl">, result: string) => {
  const page = await (await fetch(`${service.adminUrl}/metrics`)).text();
  return Number(new RegExp(`^session_migrations_total\\{result="${result}"\\} (\\d+)$`, "m").exec(page)?.[1] ?? 0);
};

const refused = { ok: false, code: "E001_AUTH_FAILURE" };
const unavailable = { ok: false, code: "E503_UNAVAILABLE" };

describe.each(STORES)("on the %s store", (store) => {
  const service = aService(
    {
      MIGRATE_COOKIES: COOKIES,
      get MIGRATE_URL() {
        return application.url;
      },
      ISSUER: "https://auth.example",
      SESSION_HINT_COOKIE: "signed_in",
      LOG_LEVEL: "debug",
    },
    store,
  );

  throughEvery(
    PUBLIC_PROTOCOLS,
    () => service.publicUrl,
    (caller) => {
      test("an old session becomes one of this service, with its cookies, and stays as it is", async () => {
        const subject = somebody();
        const cookie = oldCookie({
          subject,
          claims: { role: "editor" },
          authTime: "2026-01-02T03:04:05Z",
          amr: ["pwd"],
          client: { displayName: "laptop" },
        });
        const response = await caller.call(refresh, {}, withCookie(`theme=dark; ${cookie}; other=1`));
        const { data } = message(response);
        const [session, ...more] = await sessionsOf(service, subject);
        expect(more).toEqual([]);
        expect(decodeJwt(data?.accessToken ?? "")).toMatchObject({
          sub: subject,
          sid: session?.sessionId,
          role: "editor",
          amr: ["pwd"],
        });
        expect(session?.client?.displayName).toBe("laptop");
        const [own = "", hint = "", ...others] = response.headers.getSetCookie();
        expect(own).toMatch(/^refresh_token=[\w-]{96}; Path=\/v1\/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=\d+$/);
        expect(hint).toMatch(new RegExp(`^signed_in=${session?.sessionId}; Path=/; `));
        expect(others).toEqual([]);
        const next = await caller.call(refresh, {}, withCookie(`refresh_token=${successor(response)}; ${cookie}`));
        expect(decodeJwt(message(next).data?.accessToken ?? "").sid).toBe(session?.sessionId);
        expect(asks(cookie)).toHaveLength(1);
      });

      test("a session that the application does not know is refused as any other, and asked for once", async () => {
        const cookie = oldCookie(204);
        for (let time = 0; time < 3; time++) {
          const response = await caller.call(refresh, {}, withCookie(cookie));
          expect(response).toMatchObject(refused);
          expect(response.headers.getSetCookie()).toEqual([]);
        }
        expect(asks(cookie)).toHaveLength(1);
      });

      test("two tabs get the same session and the same token, and either may use it", async () => {
        const subject = somebody();
        const cookie = oldCookie({ subject });
        const responses = await Promise.all([1, 2, 3, 4].map(() => caller.call(refresh, {}, withCookie(cookie))));
        expect(new Set(responses.map((response) => message(response) && successor(response))).size).toBe(1);
        expect(await sessionsOf(service, subject)).toHaveLength(1);
        for (const response of responses) {
          const own = `refresh_token=${successor(response)}`;
          expect(await caller.call(refresh, {}, withCookie(own))).toMatchObject({ ok: true });
        }
      });

      test("after a logout the old session signs nobody in, and its cookie is removed", async () => {
        for (const way of ["cookie", "bearer"]) {
          const subject = somebody();
          const cookie = oldCookie({ subject });
          const migrated = await caller.call(refresh, {}, withCookie(cookie));
          const own = `refresh_token=${successor(migrated)}; ${cookie}`;
          const accessToken = message(migrated).data?.accessToken ?? "";
          const ended =
            way === "cookie"
              ? await caller.call(logoutByCookie, {}, withCookie(own))
              : await caller.call(logout, {}, { ...withCookie(own), ...bearer(accessToken) });
          message(ended);
          expect(ended.headers.getSetCookie()).toContain(
            "connect.sid=; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
          );
          const again = await caller.call(refresh, {}, withCookie(cookie));
          expect([again, again.headers.getSetCookie()]).toMatchObject([refused, []]);
          expect(await sessionsOf(service, subject)).toEqual([]);
        }
      });

      test("a request whose response was lost is repeated at any time before the first use", async () => {
        const subject = somebody();
        const cookie = oldCookie({ subject });
        const lost = await caller.call(refresh, {}, withCookie(cookie));
        const again = await caller.call(refresh, {}, withCookie(cookie));
        expect(successor(again)).toBe(successor(lost));
        expect(asks(cookie)).toHaveLength(2);
        expect(await sessionsOf(service, subject)).toHaveLength(1);
      });

      test("a request that was overtaken by the first use of the new cookie has to try again", async () => {
        const cookie = oldCookie({ subject: somebody() });
        const first = await caller.call(refresh, {}, withCookie(cookie));
        message(await caller.call(refresh, {}, withCookie(`refresh_token=${successor(first)}`)));
        const late = await caller.call(refresh, {}, withCookie(cookie));
        expect(late).toMatchObject(unavailable);
        expect(late.headers.getSetCookie()).toEqual([]);
      });

      test("a page of another site migrates nothing", async () => {
        const cookie = oldCookie({ subject: somebody() });
        const headers = { ...withCookie(cookie), "sec-fetch-site": "cross-site", origin: "https://evil.example" };
        expect(await caller.call(refresh, {}, headers)).toMatchObject({ ok: false, code: "E403_FORBIDDEN" });
        expect(asks(cookie)).toEqual([]);
      });

      test("a cookie of this service, even a bad one, comes first", async () => {
        const cookie = oldCookie({ subject: somebody() });
        expect(await caller.call(refresh, {}, withCookie(`refresh_token=x; ${cookie}`))).toMatchObject(refused);
        expect(asks(cookie)).toEqual([]);
      });

      test("only a refresh migrates", async () => {
        const cookie = oldCookie({ subject: somebody() });
        expect(await caller.call(logoutByCookie, {}, withCookie(cookie))).toMatchObject(refused);
        expect(asks(cookie)).toEqual([]);
      });

      test("a logout before the first refresh removes the old cookie, by which that refresh would sign the user in", async () => {
        const cookie = oldCookie({ subject: somebody() });
        const response = await caller.call(logoutByCookie, {}, withCookie(cookie));
        expect(response.headers.getSetCookie()).toContain(
          "connect.sid=; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
        );
        // A bad cookie of this service comes first: no refresh would migrate the old session.
        const bad = await caller.call(logoutByCookie, {}, withCookie(`refresh_token=x; ${cookie}`));
        expect(bad.headers.getSetCookie()).toEqual([]);
      });
    },
  );

  test("the question is signed for its URL, and has the old cookies alone", async () => {
    const cookie = oldCookie({ subject: somebody() });
    const headers = { "user-agent": "a browser", ...withCookie(`a=1; ${cookie}; session=2`) };
    await openPublic(service).call(refresh, {}, headers);
    const [{ headers: sent, body } = { headers: {}, body: undefined }] = asks(cookie);
    expect(body).toEqual({ cookie: "connect.sid", client: { userAgent: "a browser", ipAddress: "127.0.0.1" } });
    const keys = createRemoteJWKSet(new URL("/.well-known/jwks.json", service.publicUrl));
    const options = { issuer: "https://auth.example", audience: application.url, typ: "migration+jwt" };
    const { payload } = await jwtVerify(sent.authorization?.replace("Bearer ", "") ?? "", keys, options);
    expect(payload.cookie_hash).toBe(hash("sha256", cookie, "base64url"));
    expect((payload.exp ?? 0) - (payload.iat ?? 0)).toBe(60);
    const asAccessToken = await fetch(`${service.publicUrl}/v1/auth/sessions`, {
      headers: { authorization: sent.authorization ?? "" },
    });
    expect(asAccessToken.status).toBe(401);
  });

  test.each([
    ["__Secure-next-auth.session-token=x", "next-auth.session-token"],
    ["__Host-next-auth.session-token=x", "next-auth.session-token"],
    ["next-auth.session-token.0=x; next-auth.session-token.1=y", "next-auth.session-token"],
    ["__Secure-next-auth.session-token.0=x; __Secure-next-auth.session-token.12=y", "next-auth.session-token"],
    ["next-auth.session-token=x; connect.sid=y", "connect.sid"],
    ["__Host-only=x", "__Host-only"],
  ])("%s is passed on", async (sent, cookie) => {
    const before = application.asked.length;
    await openPublic(service).call(refresh, {}, withCookie(`${sent}${randomUUID()}`));
    const [asked, ...others] = application.asked.slice(before);
    expect([asked?.body, others]).toMatchObject([{ cookie }, []]);
    expect(asked?.headers.cookie).toContain(sent);
  });

  test.each([
    "only=x",
    "__Secure-only=x",
    "next-auth.session-token-x=1",
    "next-auth.session-token.123=1",
    "xconnect.sid=1",
    "connect.sid",
    "connect.sid=",
    "connect.sid=a\u00e9b",
  ])("%j is no old cookie", async (cookie) => {
    const before = application.asked.length;
    const response = await fetch(`${service.publicUrl}/v1/auth/refresh`, {
      method: "POST",
      headers: withCookie(cookie),
    });
    expect([response.status, application.asked.length - before]).toEqual([401, 0]);
  });

  test("the application names the old session where its cookie changes", async () => {
    const subject = somebody();
    const reply = { subject, old_session_id: randomUUID() };
    const [first, second] = [oldCookie(reply), oldCookie(reply)];
    const caller = openPublic(service);
    const migrated = await caller.call(refresh, {}, withCookie(first));
    expect(successor(await caller.call(refresh, {}, withCookie(second)))).toBe(successor(migrated));
    message(await caller.call(logoutByCookie, {}, withCookie(`refresh_token=${successor(migrated)}`)));
    expect(await caller.call(refresh, {}, withCookie(oldCookie(reply)))).toMatchObject(refused);
    expect(await sessionsOf(service, subject)).toEqual([]);
    const beside = `connect.sid=junk; ${oldCookie({ subject })}`;
    application.reply(beside, { subject, old_session_id: randomUUID() });
    expect(await caller.call(refresh, {}, withCookie(beside))).toMatchObject({ ok: true });
  });

  test.each([
    ["a second one before it", (cookie: string) => `connect.sid=junk; ${cookie}`],
    ["a second one after it", (cookie: string) => `${cookie}; connect.sid=junk`],
    ["one with a prefix", (cookie: string) => `${cookie}; __Secure-connect.sid=junk`],
    ["a chunk", (cookie: string) => `${cookie}; connect.sid.1=junk`],
  ])("an ended session does not move again beside a cookie that is added: %s", async (_what, add) => {
    const [subject, caller] = [somebody(), openPublic(service)];
    const cookie = oldCookie({ subject });
    const migrated = await caller.call(refresh, {}, withCookie(cookie));
    message(await caller.call(logoutByCookie, {}, withCookie(`refresh_token=${successor(migrated)}`)));
    application.reply(add(cookie), { subject });
    expect(await caller.call(refresh, {}, withCookie(add(cookie)))).toMatchObject(refused);
    expect(asks(add(cookie))).toHaveLength(1);
    expect(await sessionsOf(service, subject)).toEqual([]);
  });

  test("a cookie that was set for several paths is one, and moves once", async () => {
    const [subject, caller] = [somebody(), openPublic(service)];
    const cookie = oldCookie({ subject });
    const twice = `${cookie}; ${cookie}`;
    application.reply(twice, { subject });
    const migrated = await caller.call(refresh, {}, withCookie(twice));
    message(await caller.call(logoutByCookie, {}, withCookie(`refresh_token=${successor(migrated)}`)));
    expect(await caller.call(refresh, {}, withCookie(cookie))).toMatchObject(refused);
    expect(await sessionsOf(service, subject)).toEqual([]);
  });

  test("a limit on sessions holds for a session that is migrated, too", async () => {
    const { subject, sid } = await logIn(service);
    const limit = { maxSessions: 1, whenExceeded: "LIMIT_ACTION_REFUSE" };
    const cookie = oldCookie({ subject, limit });
    expect(await openPublic(service).call(refresh, {}, withCookie(cookie))).toMatchObject(refused);
    expect((await sessionsOf(service, subject)).map(({ sessionId }) => sessionId)).toEqual([sid]);
    const other = oldCookie({ subject, limit: { maxSessions: 1 } });
    expect(await openPublic(service).call(refresh, {}, withCookie(other))).toMatchObject({ ok: true });
    expect((await sessionsOf(service, subject)).map(({ sessionId }) => sessionId)).not.toContain(sid);
  });

  test("a session of an application that ends with the browser does so here", async () => {
    const cookie = oldCookie({ subject: somebody(), persistent: false });
    const response = await openPublic(service).call(refresh, {}, withCookie(cookie));
    expect(response.headers.getSetCookie()[0]).not.toContain("Max-Age");
  });

  test("the log and the metrics say what happened, with the name of the cookie and not its value", async () => {
    const [migratedBefore, refusedBefore, failedBefore] = await Promise.all(
      ["migrated", "refused", "failed"].map((result) => metric(service, result)),
    );
    const subject = somebody();
    const caller = openPublic(service);
    message(await caller.call(refresh, {}, withCookie(oldCookie({ subject }))));
    await caller.call(refresh, {}, withCookie(oldCookie(204)));
    await caller.call(refresh, {}, withCookie(oldCookie(418)));
    const created = await until(() => {
      const line = service
        .stderr()
        .split("\n")
        .find((one) => one.includes('"session_created"') && one.includes(subject));
      expect(line).toBeDefined();
      return JSON.parse(line ?? "") as Record<string, unknown>;
    });
    expect(created).toMatchObject({ by: "migration", cookieName: "connect.sid" });
    await until(() => expect(service.stderr()).toContain('"reason":"status_418"'));
    expect(service.stderr()).not.toContain("s%3A");
    expect(await metric(service, "migrated")).toBe((migratedBefore ?? 0) + 1);
    expect(await metric(service, "refused")).toBe((refusedBefore ?? 0) + 1);
    expect(await metric(service, "failed")).toBe((failedBefore ?? 0) + 1);
  });

  const TOO_LARGE = "x".repeat(40_000);
  const SWITCHED = "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n";
  const never = () => {};
  test.each<[what: string, reply: Reply, fault: string | RegExp]>([
    ["an error", 500, "status_500"],
    ["a page that is not there", 404, "status_404"],
    ["a signature that it does not accept", 401, "status_401"],
    ["a redirect", (response) => response.writeHead(302, { location: application.url }).end(), "status_302"],
    ["no JSON", (response) => response.end("<html>"), "the reply is not a JSON object"],
    ["no object", (response) => response.end("null"), "the reply is not a JSON object"],
    ["another protocol", (response) => void response.socket?.write(SWITCHED), "unreachable"],
    ["half a reply", (response) => response.write("{", () => response.destroy()), "unreachable"],
    ["a body that is too large", { subject: "a", acr: TOO_LARGE }, "too_large"],
    ["no subject", {}, "subject: value is required"],
    ["an unknown field", { subject: "a", rolle: "b" }, /^CreateSessionRequest has no field "rolle"/],
    ["a reserved claim", { subject: "a", claims: { sid: "x" } }, "claims.sid: is a reserved claim"],
    ["a session for clients without cookies", { subject: "a", transport: "TRANSPORT_TOKEN" }, /^transport: /],
    ["a session to replace", { subject: "a", replacesSessionId: "x" }, /^replaces_session_id: /],
    ["a bad id of the old session", { subject: "a", old_session_id: 7 }, /^old_session_id: /],
    ["nothing in time", never, "timeout"],
    ["a body without end", (response) => void response.writeHead(200).write("{"), "timeout"],
  ])("%s is an outage, and not a no", async (_what, reply, fault) => {
    const cookie = oldCookie(reply);
    const response = await openPublic(service).call(refresh, {}, withCookie(cookie));
    expect(response).toMatchObject(unavailable);
    expect(response.headers.get("retry-after")).toBe("1");
    expect(response.headers.getSetCookie()).toEqual([]);
    expect(asks(cookie)).toHaveLength(1);
    const found = typeof fault === "string" ? expect.stringContaining(fault) : expect.stringMatching(fault);
    await until(() => {
      const line = service
        .stderr()
        .split("\n")
        .findLast((one) => one.includes('"migration_failed"'));
      expect(JSON.parse(line ?? "{}")).toMatchObject({ cookieName: "connect.sid", reason: found });
    });
    // The next attempt succeeds: a failure is not remembered.
    application.reply(cookie, { subject: somebody() });
    expect(await openPublic(service).call(refresh, {}, withCookie(cookie))).toMatchObject({ ok: true });
  });
});

describe("an application that is down", () => {
  test("is an outage, until it is back", async () => {
    const other = await startApplication();
    const service = await startService({ MIGRATE_COOKIES: "connect.sid", MIGRATE_URL: other.url });
    onTestFinished(async () => {
      await service.stop();
      await other.stop();
    });
    other.reply("connect.sid=a", { subject: somebody() });
    await other.stop();
    const caller = openPublic(service);
    expect(await caller.call(refresh, {}, withCookie("connect.sid=a"))).toMatchObject(unavailable);
    await other.start();
    expect(await caller.call(refresh, {}, withCookie("connect.sid=a"))).toMatchObject({ ok: true });
  });
});

test("an address that presents too many old sessions that are none is limited, and others are not", async () => {
  const service = await startService({
    MIGRATE_COOKIES: COOKIES,
    MIGRATE_URL: application.url,
    RATE_LIMIT_FAILURES: "3/10m",
    TRUST_PROXY: "1",
  });
  onTestFinished(async () => void (await service.stop()));
  const caller = openPublic(service);
  const call = (cookie: string, address: string) =>
    caller.call(refresh, {}, { ...withCookie(cookie), "x-forwarded-for": address });
  for (let time = 0; time < 5; time++) {
    expect(await call(oldCookie({ subject: somebody() }), "198.51.100.1")).toMatchObject({ ok: true });
    expect(await call(oldCookie(500), "198.51.100.1")).toMatchObject(unavailable);
  }
  for (let time = 0; time < 3; time++) expect(await call(oldCookie(204), "198.51.100.1")).toMatchObject(refused);
  const over = oldCookie(204);
  expect(await call(over, "198.51.100.1")).toMatchObject({ ok: false, code: "E429_RATE_LIMITED" });
  expect(asks(over)).toEqual([]);
  expect(await call(over, "198.51.100.2")).toMatchObject(refused);
});

test("without the settings an old cookie is no cookie", async () => {
  const service = await startService();
  onTestFinished(async () => void (await service.stop()));
  const cookie = oldCookie({ subject: somebody() });
  const user = await logIn(service);
  expect(await openPublic(service).call(refresh, {}, withCookie(cookie))).toMatchObject(refused);
  const out = await openPublic(service).call(
    logoutByCookie,
    {},
    withCookie(`refresh_token=${user.refreshToken}; ${cookie}`),
  );
  expect(out.headers.getSetCookie().join()).not.toContain("connect.sid");
  expect(asks(cookie)).toEqual([]);
});
