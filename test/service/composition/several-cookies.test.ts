/** Several refresh token cookies in one request, after a change of `COOKIE_DOMAIN` or `COOKIE_PATH`, or set by a sibling domain. */
import { describe, expect, test } from "vitest";
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
  somebody,
  successor,
} from "../../support/sessions.ts";

const { refresh, logout, logoutByCookie } = SessionService.method;
const REFUSED = { ok: false, code: "E001_AUTH_FAILURE" };

const both = (...tokens: readonly string[]) => ({ cookie: tokens.map((token) => `refresh_token=${token}`).join("; ") });

/** Returns `Cookie` headers with two refresh tokens, in both orders in which a browser may send them. */
const orders = (a: string, b: string) => [both(a, b), both(b, a)];

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ REUSE_INTERVAL: "0", ACCESS_TOKEN_TTL: "10m" }, store);
  const isLive = async ({ sid }: LoggedIn) =>
    (await openAdmin(service).call(admin.getSession, { sessionId: sid }, bearer(service.adminToken))).ok;

  throughEvery(
    PUBLIC_PROTOCOLS,
    () => service.publicUrl,
    (caller) => {
      test("of one session the newest token counts, in any order", async () => {
        const user = await logIn(service);
        // Two refreshes follow the first token, so a request with the first token alone would count as reuse.
        let newest = user.refreshToken;
        for (let time = 0; time < 2; time++) {
          newest = successor(await caller.call(refresh, {}, cookie(newest))) ?? "";
        }
        for (const _ of ["first", "last"]) {
          for (const headers of orders(user.refreshToken, newest)) {
            const response = await caller.call(refresh, {}, headers);
            message(response);
            newest = successor(response) ?? "";
          }
        }
        expect(await isLive(user)).toBe(true);
      });

      test.each(["", "x", "A".repeat(96)])("%j beside it means nothing, and is left alone", async (planted) => {
        const user = await logIn(service);
        const response = await caller.call(refresh, {}, both(planted, user.refreshToken));
        message(response);
        expect(response.headers.getSetCookie()).toHaveLength(1);
        message(await caller.call(logoutByCookie, {}, both(successor(response) ?? "", planted)));
        expect(await isLive(user)).toBe(false);
      });

      test("of several sessions of one subject the newest live one is served", async () => {
        const subject = somebody();
        const older = await logIn(service, { subject });
        const newer = await logIn(service, { subject });
        const [headers = {}] = orders(older.refreshToken, newer.refreshToken);
        expect(sidOf(message(await caller.call(refresh, {}, headers)).data?.accessToken)).toBe(newer.sid);
        // The newer session is served, and the older one is ended. The response sets the cookie of the newer session.
        expect([await isLive(older), await isLive(newer)]).toEqual([false, true]);
        const newest = await logIn(service, { subject });
        await openAdmin(service).call(admin.revokeSession, { sessionId: newest.sid }, bearer(service.adminToken));
        const { data } = message(await caller.call(refresh, {}, both(newest.refreshToken, newer.refreshToken)));
        expect(sidOf(data?.accessToken)).toBe(newer.sid);
      });

      test("a logout ends all of them", async () => {
        const subject = somebody();
        const byCookie = (headers: Record<string, string>) => caller.call(logoutByCookie, {}, headers);
        const byToken = (headers: Record<string, string>) => caller.call(logout, {}, headers);
        for (const logOut of [byCookie, byToken]) {
          const [a, b] = [await logIn(service, { subject }), await logIn(service, { subject })];
          const [elsewhere] = [await logIn(service, { subject })];
          const response = await logOut({ ...both(a.refreshToken, b.refreshToken), ...bearer(a.accessToken) });
          expect(response).toMatchObject({ ok: true });
          expect([await isLive(a), await isLive(b), await isLive(elsewhere)]).toEqual([false, false, true]);
        }
      });

      test("sessions of two subjects are refused, nothing is changed, and the next request can tell", async () => {
        const [a, b] = [await logIn(service), await logIn(service)];
        for (const headers of orders(a.refreshToken, b.refreshToken)) {
          for (const response of [
            await caller.call(refresh, {}, headers),
            await caller.call(logoutByCookie, {}, headers),
          ]) {
            expect(response).toMatchObject(REFUSED);
            // The response removes the cookies of all earlier scopes, but not that of the present scope. The browser then has one of the
            // two tokens left.
            const lines = response.headers.getSetCookie();
            expect(lines.every((line) => /^refresh_token=;.*; Max-Age=0$/.test(line))).toBe(true);
            expect(lines.map((line) => /Path=([^;]*)/.exec(line)?.[1]).sort()).toEqual(["/", "/v1"]);
          }
        }
        expect([await isLive(a), await isLive(b)]).toEqual([true, true]);
        for (const user of [a, b]) message(await caller.call(refresh, {}, cookie(user.refreshToken)));
      });

      test("a logout by access token leaves another subject's session alone", async () => {
        const [a, b] = [await logIn(service), await logIn(service)];
        const headers = { ...both(a.refreshToken, b.refreshToken), ...bearer(a.accessToken) };
        message(await caller.call(logout, {}, headers));
        expect([await isLive(a), await isLive(b)]).toEqual([false, true]);
      });

      test("sessions that have ended decide nothing", async () => {
        const [gone, user] = [await logIn(service), await logIn(service)];
        message(await caller.call(logoutByCookie, {}, cookie(gone.refreshToken)));
        const response = await caller.call(refresh, {}, both(gone.refreshToken, user.refreshToken));
        message(response);
        expect(response.headers.getSetCookie().length).toBeGreaterThan(1);
        expect(await caller.call(refresh, {}, both(gone.refreshToken, gone.refreshToken))).toMatchObject(REFUSED);
      });

      test("more than four sessions are refused", async () => {
        const subject = somebody();
        const users = await Promise.all(Array.from({ length: 5 }, () => logIn(service, { subject })));
        const tokens = users.map(({ refreshToken }) => refreshToken);
        expect(await caller.call(refresh, {}, both(...tokens))).toMatchObject(REFUSED);
        message(await caller.call(refresh, {}, both(...tokens.slice(0, 4))));
      });
    },
  );
});

function sidOf(accessToken = ""): unknown {
  return JSON.parse(Buffer.from(accessToken.split(".")[1] ?? "", "base64url").toString()).sid;
}
