/** The audiences of access tokens. The public API accepts only tokens with its own audience. */
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS, RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { waitFor } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, openPublic, successor } from "../../support/sessions.ts";

const { refresh, logout, logoutByCookie, listSessions, revokeSession, revokeOtherSessions } = SessionService.method;
const APP = "https://app.example.com";
const PARTNER = "https://partner.example.com";
const OTHER = "https://third-party.example";
const REFUSED = { ok: false, code: "E001_AUTH_FAILURE", text: "authentication failed" };

const audOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).aud;

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ AUDIENCE: `${APP}, ${PARTNER}` }, store);
  const active = async (token: string) =>
    message(await openAdmin(service).call(admin.introspectToken, { token }, bearer(service.adminToken))).active;

  throughEvery(
    PUBLIC_PROTOCOLS,
    () => service.publicUrl,
    (caller) => {
      test.each<[string, { audience?: string; audiences?: string[] }]>([
        ["another service", { audience: OTHER }],
        ["several others", { audiences: [OTHER, `${APP}/`] }],
        ["one whose name begins like ours", { audience: `${APP}.evil.example` }],
        ["a list of ours as one text", { audience: `${APP}, ${PARTNER}` }],
      ])("a token for %s is good for nothing here", async (_, wanted) => {
        const mine = await logIn(service);
        const user = await logIn(service, { subject: mine.subject, ...wanted });
        const header = bearer(user.accessToken);
        for (const response of [
          await caller.call(listSessions, {}, header),
          await caller.call(revokeSession, { sessionId: mine.sid }, header),
          await caller.call(revokeOtherSessions, {}, header),
          await caller.call(logout, {}, header),
          await caller.call(logout, {}, { ...header, ...cookie(user.refreshToken) }),
        ]) {
          expect(response).toMatchObject(REFUSED);
          expect(response.headers.get("www-authenticate")).toBe('Bearer error="invalid_token"');
        }
        const list = message(await caller.call(listSessions, {}, bearer(mine.accessToken)));
        expect(list.data?.sessions).toHaveLength(2);
        expect(await active(user.accessToken)).toBe(true);
        message(await caller.call(logoutByCookie, {}, cookie(user.refreshToken)));
        expect(await active(user.accessToken)).toBe(false);
      });

      test.each<[string, { audience?: string; audiences?: string[] }, unknown]>([
        ["nobody in particular", {}, APP],
        ["one of ours", { audience: PARTNER }, PARTNER],
        ["one of ours, in a list", { audiences: [PARTNER] }, PARTNER],
        ["us and others", { audiences: [OTHER, PARTNER] }, [OTHER, PARTNER]],
      ])("a token for %s is accepted, and so is its successor", async (_, wanted, aud) => {
        const user = await logIn(service, wanted);
        expect(audOf(user.accessToken)).toEqual(aud);
        message(await caller.call(listSessions, {}, bearer(user.accessToken)));
        const next = await caller.call(refresh, {}, cookie(user.refreshToken));
        const accessToken = message(next).data?.accessToken ?? "";
        expect(audOf(accessToken)).toEqual(aud);
        expect(successor(next)).toBeDefined();
        message(await caller.call(logout, {}, bearer(accessToken)));
      });
    },
  );

  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      const header = () => bearer(service.adminToken);

      test("several audiences are returned, the first also as the audience, and introspected", async () => {
        const audiences = [OTHER, APP, "urn:example:api"];
        const created = message(await caller.call(admin.createSession, { subject: "a", audiences }, header()));
        expect(created.session).toMatchObject({ audience: OTHER, audiences, clientId: OTHER });
        const sessionId = created.session?.sessionId ?? "";
        const { session } = message(await caller.call(admin.getSession, { sessionId }, header()));
        expect(session).toEqual(created.session);
        for (const token of [created.accessToken, created.refreshToken]) {
          const response = message(await caller.call(admin.introspectToken, { token }, header()));
          expect(response.claims?.aud).toEqual(audiences);
        }
      });

      test.each<[string, object]>([
        ["only one of audience, audiences", { audience: APP, audiences: [APP] }],
        ["audiences: .*unique", { audiences: [APP, PARTNER, APP] }],
        ["audiences\\[1]: .*at least 1 bytes", { audiences: [APP, ""] }],
        ["audiences: .*8", { audiences: Array.from({ length: 9 }, (_, at) => `urn:${at}`) }],
        ["audiences\\[0]: .*at most 255 bytes", { audiences: ["a".repeat(256)] }],
        ["audiences\\[0]: .*Cc", { audiences: ["a\nb"] }],
      ])("audiences that are not clear are refused (%s)", async (text, wanted) => {
        const response = await caller.call(admin.createSession, { subject: "a", ...wanted }, header());
        expect(response).toMatchObject({ ok: false, code: "E400_INVALID_REQUEST" });
        expect(response).toMatchObject({ text: expect.stringMatching(new RegExp(`^${text}`)) });
      });
    },
  );
});

const service = aService();

test("an audience that was refused is named in the log", async () => {
  const user = await logIn(service, { audience: OTHER });
  await openPublic(service).call(logout, {}, bearer(user.accessToken));
  const line = await waitFor(service, () =>
    service
      .stderr()
      .split("\n")
      .find((text) => text.includes('"wrong_audience"')),
  );
  expect(JSON.parse(line)).toMatchObject({ event: "authn_failed", operation: "Logout", sid: user.sid });
});
