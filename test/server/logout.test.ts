/** Logout, through every protocol: what it ends is ended for all of them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SessionService } from "../../gen/auth/v1/session_pb.ts";
import { forgedAccessTokens, malleated } from "../support/bad-tokens.ts";
import { type Caller, PUBLIC_DOORS } from "../support/clients.ts";
import { aService, STORES, throughEvery } from "../support/every-protocol.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../support/sessions.ts";

const { refresh, logout, listSessions, revokeOtherSessions } = SessionService.method;
const REFUSED = { ok: false, code: "E001_AUTH_FAILURE", text: "authentication failed" };

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({}, store);
  /** All protocols at once, to see that what one listener did holds for the others. */
  let listeners: readonly Caller[] = [];
  beforeAll(() => {
    listeners = PUBLIC_DOORS.map((kind) => kind.open(service.publicUrl));
  });
  afterAll(() => {
    for (const listener of listeners) listener.close();
  });

  throughEvery(
    PUBLIC_DOORS,
    () => service.publicUrl,
    (caller) => {
      test("logout ends the session, clears the cookie and answers with empty data", async () => {
        const user = await logIn(service);
        const answer = await caller.call(logout, {}, bearer(user.accessToken));
        expect(message(answer).data).toBeDefined();
        expect(answer.headers.getSetCookie()).toEqual([
          "refresh_token=; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
        ]);
        expect(answer.headers.get("cache-control")).toBe("no-store");
      });

      test("after a logout neither token is good for anything, through any protocol", async () => {
        const user = await logIn(service);
        message(await caller.call(logout, {}, bearer(user.accessToken)));
        for (const listener of listeners) {
          const header = bearer(user.accessToken);
          for (const answer of [
            await listener.call(logout, {}, header),
            await listener.call(listSessions, {}, header),
            await listener.call(revokeOtherSessions, {}, header),
          ]) {
            expect(answer).toMatchObject(REFUSED);
            expect(answer.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
            expect(answer.headers.getSetCookie()).toEqual([]);
          }
          expect(await listener.call(refresh, {}, cookie(user.refreshToken))).toMatchObject(REFUSED);
        }
        for (const token of [user.accessToken, user.refreshToken]) {
          const answer = await openAdmin(service).call(admin.introspectToken, { token }, bearer(service.adminToken));
          expect(message(answer).active).toBe(false);
        }
      });

      test("no other text of the access token outlives the logout", async () => {
        const user = await logIn(service);
        const variants = malleated(user.accessToken);
        const mirrored = variants.at(-1)?.[1] ?? "";
        message(await caller.call(listSessions, {}, bearer(mirrored))); // else its refusal below would prove nothing
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
          const answer = await caller.call(logout, {}, bearer(text));
          expect(answer, what).toMatchObject(REFUSED);
          expect(answer.headers.getSetCookie(), what).toEqual([]);
        }
        message(await caller.call(listSessions, {}, bearer(user.accessToken)));
      });

      test.each([
        ["no Authorization", {}],
        ["the refresh cookie alone", cookie("x")],
      ])("with %s there is nobody to log out", async (_, headers) => {
        const answer = await caller.call(logout, {}, headers);
        expect(answer).toMatchObject(REFUSED);
        expect(answer.headers.get("www-authenticate")).toBe("Bearer");
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
