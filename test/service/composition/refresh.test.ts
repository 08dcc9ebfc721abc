/** The RPC `Refresh`, through every protocol: its cookie and its errors. */

import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { badRefreshTokens } from "../../support/bad-tokens.ts";
import { type Caller, PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import type { Service } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, successor } from "../../support/sessions.ts";

const { refresh } = SessionService.method;

/** Returns the session from the admin API; undefined if it no longer exists. */
async function look(service: Service, sessionId: string) {
  const response = await openAdmin(service).call(admin.getSession, { sessionId }, bearer(service.adminToken));
  if (!response.ok && response.code === "E404_NOT_FOUND") return undefined;
  return message(response).session;
}

/** Refreshes until the response has a new token. With a reuse interval of 0, the first or the second response has one. */
async function rotate(caller: Caller, token: string): Promise<string> {
  for (;;) {
    const response = await caller.call(refresh, {}, cookie(token));
    message(response);
    const next = successor(response);
    if (next !== undefined && next !== token) return next;
  }
}

describe.each(STORES)("on the %s store, with the default reuse interval", (store) => {
  const service = aService({}, store);
  throughEvery(
    PUBLIC_PROTOCOLS,
    () => service.publicUrl,
    (caller) => {
      test("a refresh token in the cookie is traded for an access token and a successor", async () => {
        const user = await logIn(service);
        const response = await caller.call(refresh, {}, cookie(user.refreshToken));
        const accessToken = message(response).data?.accessToken ?? "";
        expect(accessToken).not.toBe(user.accessToken);
        const introspected = message(
          await openAdmin(service).call(admin.introspectToken, { token: accessToken }, bearer(service.adminToken)),
        );
        expect(introspected).toMatchObject({ active: true, claims: { sub: user.subject, sid: user.sid } });
        expect(response.headers.getSetCookie()).toEqual([
          expect.stringMatching(
            /^refresh_token=[A-Za-z0-9_-]{96}; Path=\/v1\/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=1209600$/,
          ),
        ]);
        expect(successor(response)).not.toBe(user.refreshToken);
        expect(response.headers.get("cache-control")).toBe("no-store");
      });

      test("the cookie lives no longer than the session does", async () => {
        const lifetime = { seconds: 100n };
        const user = await logIn(service, { idleTimeout: lifetime, absoluteLifetime: lifetime });
        expect(user.setCookie).toMatch(/Max-Age=100$/);
        const response = await caller.call(refresh, {}, cookie(user.refreshToken));
        const [, seconds] = /Max-Age=(\d+)$/.exec(response.headers.getSetCookie()[0] ?? "") ?? [];
        expect(Number(seconds)).toBeLessThanOrEqual(100);
        expect(Number(seconds)).toBeGreaterThan(90);
      });

      test("a session that is not to be remembered has cookies that end with the browser, from its login on", async () => {
        const user = await logIn(service, { persistent: false });
        expect(user.setCookie).toMatch(/^refresh_token=[^;]*; Path=\/v1\/auth; HttpOnly; Secure; SameSite=Lax$/);
        const once = await caller.call(refresh, {}, cookie(user.refreshToken));
        const twice = await caller.call(refresh, {}, cookie(successor(once) ?? ""));
        for (const { headers } of [once, twice]) expect(headers.getSetCookie().join()).not.toContain("Max-Age");
        const { session } = message(
          await openAdmin(service).call(admin.getSession, { sessionId: user.sid }, bearer(service.adminToken)),
        );
        expect(session?.persistent).toBe(false);
      });

      test("a second tab gets the same successor", async () => {
        const user = await logIn(service);
        const responses = await Promise.all([1, 2, 3].map(() => caller.call(refresh, {}, cookie(user.refreshToken))));
        expect(new Set(responses.map(successor)).size).toBe(1);
      });

      test("invalid refresh tokens are refused with one response, and the session lives on", async () => {
        const user = await logIn(service);
        const refused = [
          await caller.call(refresh),
          await caller.call(refresh, {}, { cookie: "theme=dark; refresh_tokens=1" }),
        ];
        for (const [what, text] of badRefreshTokens(user.refreshToken)) {
          const response = await caller.call(refresh, {}, cookie(text));
          expect(response.ok, what).toBe(false);
          refused.push(response);
        }
        for (const response of refused) {
          expect(response).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE", text: "authentication failed" });
          expect(response.headers.getSetCookie()).toEqual([]);
          expect(response.headers.get("www-authenticate")).toBe("Bearer");
          expect(response.headers.get("cache-control")).toBe("no-store");
        }
        expect((await look(service, user.sid))?.lastRefreshTime).toEqual((await look(service, user.sid))?.createTime);
        message(await caller.call(refresh, {}, cookie(user.refreshToken)));
      });

      test("the cookies of two subjects are refused, and nothing is rotated", async () => {
        const [user, other] = [await logIn(service), await logIn(service)];
        const header = `refresh_token=${user.refreshToken}; a=b; refresh_token=${other.refreshToken}`;
        const response = await caller.call(refresh, {}, { cookie: header });
        expect(response).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
        expect(successor(response)).toBeFalsy();
        for (const { sid } of [user, other]) {
          const session = await look(service, sid);
          expect(session?.lastRefreshTime).toEqual(session?.createTime);
        }
      });

      test("the same cookie twice is one cookie", async () => {
        const user = await logIn(service);
        const header = `refresh_token=${user.refreshToken};refresh_token=${user.refreshToken}`;
        message(await caller.call(refresh, {}, { cookie: header }));
      });

      test.each([
        ["no token", "Bearer"],
        ["a broken token", "Bearer x.y.z"],
        ["a long token", `Bearer ${"ey".repeat(500)}`],
        ["another scheme", "Basic YTpi"],
        ["nonsense", "nonsense"],
      ])("an Authorization of %s changes nothing", async (_, authorization) => {
        const user = await logIn(service);
        message(await caller.call(refresh, {}, { ...cookie(user.refreshToken), authorization }));
      });
    },
  );
});

describe.each(STORES)("on the %s store, with a strict reuse interval of 0", (store) => {
  const service = aService({ REUSE_INTERVAL: "0" }, store);
  throughEvery(
    PUBLIC_PROTOCOLS,
    () => service.publicUrl,
    (caller) => {
      test("a token that was used long ago ends its session", async () => {
        const user = await logIn(service);
        const first = await rotate(caller, user.refreshToken);
        const second = await rotate(caller, first);
        const third = await rotate(caller, second);
        const response = await caller.call(refresh, {}, cookie(user.refreshToken));
        expect(response).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE", text: "authentication failed" });
        expect(response.headers.getSetCookie()).toEqual([]);
        expect(await look(service, user.sid)).toBeUndefined();
        expect(await caller.call(refresh, {}, cookie(third))).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
      });
    },
  );
});
