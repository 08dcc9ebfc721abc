/** The hint cookie is set and cleared together with the refresh cookie, through every protocol. */
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS, RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, throughEvery } from "../../support/every-protocol.ts";
import { admin, bearer, cookie, logIn, message } from "../../support/sessions.ts";

const { refresh, logout, logoutByCookie } = SessionService.method;
const service = aService({ SESSION_HINT_COOKIE: "signed_in", COOKIE_SAMESITE: "Strict" });
const SET = /^signed_in=([\w-]{23}); Path=\/; Secure; SameSite=Strict; Max-Age=(\d+)$/;
const CLEARED = "signed_in=; Path=/; Secure; SameSite=Strict; Max-Age=0";

throughEvery(
  PUBLIC_PROTOCOLS,
  () => service.publicUrl,
  (caller) => {
    test("a refresh sets it to the session id for as long as the refresh cookie", async () => {
      const user = await logIn(service);
      const [token = "", hint = "", ...others] = (
        await caller.call(refresh, {}, cookie(user.refreshToken))
      ).headers.getSetCookie();
      expect(others).toEqual([]);
      expect(token).toMatch(/^refresh_token=[\w-]{96}; Path=\/v1\/auth; HttpOnly; /);
      expect(SET.exec(hint)?.slice(1)).toEqual([user.sid, /Max-Age=(\d+)$/.exec(token)?.[1]]);
    });

    test("both ways of logging out clear it, and a refusal does not", async () => {
      const [one, two] = [await logIn(service), await logIn(service)];
      expect((await caller.call(refresh, {}, cookie("x"))).headers.getSetCookie()).toEqual([]);
      for (const response of [
        await caller.call(logout, {}, bearer(one.accessToken)),
        await caller.call(logoutByCookie, {}, cookie(two.refreshToken)),
      ]) {
        expect(response.headers.getSetCookie()[1]).toBe(CLEARED);
        expect(response.headers.getSetCookie()).toHaveLength(2);
      }
    });
  },
);

throughEvery(
  RPC_PROTOCOLS,
  () => service.adminUrl,
  (caller) => {
    describe("CreateSession", () => {
      test("returns it beside the refresh cookie", async () => {
        const response = await caller.call(admin.createSession, { subject: "a" }, bearer(service.adminToken));
        const { setCookie, setCookies } = message(response);
        expect(setCookies[0]).toBe(setCookie);
        expect(setCookies[1]).toMatch(SET);
        expect(setCookies).toHaveLength(2);
      });
    });
  },
);
