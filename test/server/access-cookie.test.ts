/** The cookie with the access token is set and cleared together with the refresh cookie, through every protocol. */
import { expect, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS } from "../support/clients.ts";
import { aService, throughEvery } from "../support/every-protocol.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../support/sessions.ts";

const { refresh, logoutByCookie, listSessions } = SessionService.method;
const service = aService({ ACCESS_COOKIE: "access_token", COOKIE_PATH: "/" });
const SET = /^access_token=([\w.-]+); Path=\/; HttpOnly; Secure; SameSite=Lax; Max-Age=(\d+)$/;

throughEvery(
  PUBLIC_PROTOCOLS,
  () => service.publicUrl,
  (caller) => {
    test("a refresh sets it to the access token of the response, for its life", async () => {
      const user = await logIn(service);
      const response = await caller.call(refresh, {}, cookie(user.refreshToken));
      const [, token = "", maxAge] = SET.exec(response.headers.getSetCookie()[1] ?? "") ?? [];
      const { data } = message(response);
      expect(token).toBe(data?.accessToken);
      const { iat, exp } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
      expect(Number(maxAge)).toBeLessThanOrEqual(exp - iat);
      expect(Number(maxAge)).toBeGreaterThan(exp - iat - 60);
    });

    test("a logout clears it, and a refusal does not", async () => {
      const user = await logIn(service);
      expect((await caller.call(refresh, {}, cookie("x"))).headers.getSetCookie()).toEqual([]);
      const response = await caller.call(logoutByCookie, {}, cookie(user.refreshToken));
      expect(response.headers.getSetCookie()[1]).toBe(
        "access_token=; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
      );
    });

    test("is no credential for the service's own routes: a page elsewhere cannot use it", async () => {
      const user = await logIn(service);
      const response = await caller.call(listSessions, {}, { cookie: `access_token=${user.accessToken}` });
      expect(response.ok).toBe(false);
      expect((await caller.call(listSessions, {}, bearer(user.accessToken))).ok).toBe(true);
    });
  },
);

test("CreateSession returns it with the other cookies", async () => {
  const created = await openAdmin(service).call(admin.createSession, { subject: "a" }, bearer(service.adminToken));
  const { setCookies, accessToken } = message(created);
  expect(SET.exec(setCookies[1] ?? "")?.[1]).toBe(accessToken);
});
