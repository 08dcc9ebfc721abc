/** Logout through every protocol: a session that one protocol ends is ended for all of them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { badRefreshTokens, forgedAccessTokens, malleated } from "../../support/bad-tokens.ts";
import { type Caller, PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import {
  admin,
  bearer,
  cookie,
  logIn,
  message,
  openAdmin,
  openPublic,
  somebody,
  successor,
} from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, logout, logoutByCookie, listSessions, revokeOtherSessions } = SessionService.method;
const CLEARED = ["refresh_token=; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=0"];
const REFUSED = { ok: false, code: "E001_AUTH_FAILURE", text: "authentication failed" };

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({}, store);
  /** Clients of all protocols, by which tests check that the effect of one protocol holds for the others. */
  let listeners: readonly Caller[] = [];
  beforeAll(() => {
    listeners = PUBLIC_PROTOCOLS.map((kind) => kind.open(service.publicUrl));
  });
  afterAll(() => {
    for (const listener of listeners) listener.close();
  });

  throughEvery(
    PUBLIC_PROTOCOLS,
    () => service.publicUrl,
    (caller) => {
      test("logout ends the session, clears the cookie and responds with empty data", async () => {
        const user = await logIn(service);
        const response = await caller.call(logout, {}, bearer(user.accessToken));
        expect(message(response).data).toBeDefined();
        expect(response.headers.getSetCookie()).toEqual([
          "refresh_token=; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
        ]);
        expect(response.headers.get("cache-control")).toBe("no-store");
      });

      test("after a logout neither token is good for anything, through any protocol", async () => {
        const user = await logIn(service);
        message(await caller.call(logout, {}, bearer(user.accessToken)));
        for (const listener of listeners) {
          const header = bearer(user.accessToken);
          for (const response of [
            await listener.call(logout, {}, header),
            await listener.call(listSessions, {}, header),
            await listener.call(revokeOtherSessions, {}, header),
          ]) {
            expect(response).toMatchObject(REFUSED);
            expect(response.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
            expect(response.headers.getSetCookie()).toEqual([]);
          }
          expect(await listener.call(refresh, {}, cookie(user.refreshToken))).toMatchObject(REFUSED);
        }
        for (const token of [user.accessToken, user.refreshToken]) {
          const response = await openAdmin(service).call(admin.introspectToken, { token }, bearer(service.adminToken));
          expect(message(response).active).toBe(false);
        }
      });

      test("no other text of the access token outlives the logout", async () => {
        const user = await logIn(service);
        const variants = malleated(user.accessToken);
        const mirrored = variants.at(-1)?.[1] ?? "";
        // This other encoding of the access token must be accepted before the logout. Otherwise its refusal after the logout would prove
        // nothing.
        message(await caller.call(listSessions, {}, bearer(mirrored)));
        message(await caller.call(logout, {}, bearer(user.accessToken)));
        for (const [what, text] of variants) {
          expect(await caller.call(logout, {}, bearer(text)), what).toMatchObject(REFUSED);
          expect(await caller.call(listSessions, {}, bearer(text)), what).toMatchObject(REFUSED);
        }
      });

      test("what is no access token of ours ends nothing", async () => {
        const user = await logIn(service);
        const texts = [...forgedAccessTokens(user.accessToken), ["a refresh token", user.refreshToken] as const];
        for (const [what, text] of texts) {
          const response = await caller.call(logout, {}, bearer(text));
          expect(response, what).toMatchObject(REFUSED);
          expect(response.headers.getSetCookie(), what).toEqual([]);
        }
        message(await caller.call(listSessions, {}, bearer(user.accessToken)));
      });

      test.each([
        ["no Authorization", {}],
        ["the refresh cookie alone", cookie("x")],
      ])("with %s there is nobody to log out", async (_, headers) => {
        const response = await caller.call(logout, {}, headers);
        expect(response).toMatchObject(REFUSED);
        expect(response.headers.get("www-authenticate")).toBe("Bearer");
      });

      test("the refresh cookie ends its session, and is cleared", async () => {
        const user = await logIn(service);
        const response = await caller.call(logoutByCookie, {}, cookie(user.refreshToken));
        expect(message(response).data).toBeDefined();
        expect(response.headers.getSetCookie()).toEqual(CLEARED);
        expect(response.headers.get("cache-control")).toBe("no-store");
        for (const listener of listeners) {
          expect(await listener.call(refresh, {}, cookie(user.refreshToken))).toMatchObject(REFUSED);
          expect(await listener.call(listSessions, {}, bearer(user.accessToken))).toMatchObject(REFUSED);
        }
      });

      test("the cookie of a session that has ended already is no error", async () => {
        const user = await logIn(service);
        message(await caller.call(logout, {}, bearer(user.accessToken)));
        for (let time = 0; time < 2; time++) {
          const response = await caller.call(logoutByCookie, {}, cookie(user.refreshToken));
          expect(message(response).data).toBeDefined();
          expect(response.headers.getSetCookie()).toEqual(CLEARED);
        }
      });

      test("with the name of its session the cookie ends it, and with another name nothing", async () => {
        const [user, other] = [await logIn(service), await logIn(service)];
        for (const sessionId of [other.sid, "%", user.sid.toLowerCase()]) {
          const response = await caller.call(logoutByCookie, { sessionId }, cookie(user.refreshToken));
          expect(response, sessionId).toMatchObject(REFUSED);
          expect(response.headers.getSetCookie()).toEqual([]);
        }
        message(await caller.call(listSessions, {}, bearer(user.accessToken)));
        const response = await caller.call(logoutByCookie, { sessionId: user.sid }, cookie(user.refreshToken));
        expect(message(response).data).toBeDefined();
        expect(response.headers.getSetCookie()).toEqual(CLEARED);
        expect(await caller.call(listSessions, {}, bearer(user.accessToken))).toMatchObject(REFUSED);
      });

      test("a logout by access token leaves the cookie of another user who has signed in since", async () => {
        const [user, next] = [await logIn(service), await logIn(service)];
        const headers = { ...bearer(user.accessToken), ...cookie(next.refreshToken) };
        const response = await caller.call(logout, {}, headers);
        expect(message(response).data).toBeDefined();
        expect(response.headers.getSetCookie()).toEqual([]);
        message(await caller.call(listSessions, {}, bearer(next.accessToken)));
        // The cookie of a session that has ended is cleared, whoever it was of.
        const [last] = [await logIn(service)];
        message(await caller.call(logoutByCookie, {}, cookie(next.refreshToken)));
        const cleared = await caller.call(logout, {}, { ...bearer(last.accessToken), ...cookie(next.refreshToken) });
        expect(cleared.headers.getSetCookie()).toEqual(CLEARED);
      });

      test("a logout by access token clears the cookie of an impersonation by its user", async () => {
        const [support, customer] = [somebody(), somebody()];
        const { accessToken } = await logIn(service, { subject: support });
        const { refreshToken } = await logIn(service, { subject: customer, actor: { subject: support } });
        const response = await caller.call(logout, {}, { ...bearer(accessToken), ...cookie(refreshToken) });
        expect(message(response).data).toBeDefined();
        expect(response.headers.getSetCookie()).toEqual(CLEARED);
      });

      test("with the name of a session that has ended, a second cookie ends nothing", async () => {
        const [user, next] = [await logIn(service), await logIn(service)];
        message(await caller.call(logout, {}, bearer(user.accessToken)));
        const both = { cookie: `refresh_token=${user.refreshToken}; refresh_token=${next.refreshToken}` };
        expect(await caller.call(logoutByCookie, { sessionId: user.sid }, both)).toMatchObject(REFUSED);
        message(await caller.call(listSessions, {}, bearer(next.accessToken)));
        message(await caller.call(logoutByCookie, { sessionId: next.sid }, both));
        expect(await caller.call(listSessions, {}, bearer(next.accessToken))).toMatchObject(REFUSED);
      });

      test("a refresh token that has a successor ends the session too", async () => {
        const user = await logIn(service);
        const next = successor(await caller.call(refresh, {}, cookie(user.refreshToken)));
        message(await caller.call(logoutByCookie, {}, cookie(user.refreshToken)));
        expect(await caller.call(refresh, {}, cookie(next ?? ""))).toMatchObject(REFUSED);
      });

      test("a cookie that is no refresh token of ours ends nothing", async () => {
        const user = await logIn(service);
        const texts = badRefreshTokens(user.refreshToken).map(([what, text]) => [what, cookie(text)] as const);
        for (const [what, headers] of [...texts, ["none at all", {}]] as const) {
          const response = await caller.call(logoutByCookie, {}, { ...bearer(user.accessToken), ...headers });
          expect(response, what).toMatchObject(REFUSED);
          expect(response.headers.getSetCookie(), what).toEqual([]);
        }
        message(await caller.call(listSessions, {}, bearer(user.accessToken)));
      });

      test("another session of the same subject lives on", async () => {
        const user = await logIn(service);
        const other = await logIn(service, { subject: user.subject });
        message(await caller.call(logout, {}, bearer(user.accessToken)));
        message(await caller.call(refresh, {}, cookie(other.refreshToken)));
        const list = message(await caller.call(listSessions, {}, bearer(other.accessToken)));
        expect(list.data?.sessions.map(({ sessionId }) => sessionId)).toEqual([other.sid]);
      });
    },
  );
});

describe("POST /v1/auth/logout", () => {
  const service = aService();

  test.each<[string, Record<string, string>, string | undefined]>([
    ["no body", {}, undefined],
    ["an empty body", { "content-length": "0" }, ""],
    ["an empty object", { "content-type": "application/json" }, "{}"],
    ["a form", { "content-type": "application/x-www-form-urlencoded" }, "csrf=1&next=%2F"],
    ["a multipart form", { "content-type": "multipart/form-data; boundary=x" }, "--x--"],
    ["a beacon of text", { "content-type": "text/plain;charset=UTF-8" }, "bye"],
    ["a beacon without a type", { "content-type": "" }, "bye"],
  ])("works with %s", async (_, headers, body) => {
    const user = await logIn(service);
    const own = { "sec-fetch-site": "same-origin", origin: service.publicUrl };
    const response = await request(service.publicUrl, {
      method: "POST",
      path: "/v1/auth/logout",
      headers: { ...cookie(user.refreshToken), ...own, ...headers },
      body,
    });
    expect(response).toMatchObject({ status: 200, body: '{"data":{}}', cookies: CLEARED });
    expect(await openPublic(service).call(refresh, {}, cookie(user.refreshToken))).toMatchObject(REFUSED);
  });
});

describe("with an access token that has expired", () => {
  const service = aService({ ACCESS_TOKEN_TTL: "1s" });

  async function withExpired() {
    const user = await logIn(service);
    const listener = openPublic(service);
    await until(async () => {
      if ((await listener.call(listSessions, {}, bearer(user.accessToken))).ok) throw new Error("not yet");
    });
    return user;
  }

  throughEvery(
    PUBLIC_PROTOCOLS,
    () => service.publicUrl,
    (caller) => {
      test("the refresh cookie of the same live session completes a logout, and nothing else does", async () => {
        const [user, other] = await Promise.all([withExpired(), withExpired()]);
        const refused = [{}, cookie(other.refreshToken), cookie("x"), cookie(`${user.refreshToken}A`)];
        for (const headers of refused) {
          const response = await caller.call(logout, {}, { ...bearer(user.accessToken), ...headers });
          expect(response).toMatchObject(REFUSED);
          expect(response.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
          expect(response.headers.getSetCookie()).toEqual([]);
        }
        const forged = { ...bearer(`${user.accessToken.slice(0, -4)}AAAA`), ...cookie(user.refreshToken) };
        expect(await caller.call(logout, {}, forged)).toMatchObject(REFUSED);
        message(await caller.call(refresh, {}, cookie(user.refreshToken))); // The session is live despite the refused logouts.

        const both = { ...bearer(user.accessToken), ...cookie(user.refreshToken) };
        const response = await caller.call(logout, {}, both);
        expect(message(response).data).toBeDefined();
        expect(response.headers.getSetCookie()).toEqual(CLEARED);
        expect(await caller.call(refresh, {}, cookie(user.refreshToken))).toMatchObject(REFUSED);
        expect(await caller.call(logout, {}, both)).toMatchObject(REFUSED);
        message(await caller.call(refresh, {}, cookie(other.refreshToken)));
      });
    },
  );
});
