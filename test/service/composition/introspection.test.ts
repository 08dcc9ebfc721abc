/** IntrospectToken, through every protocol that speaks RPC. */
import { describe, expect, test } from "vitest";
import { TokenType } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { badRefreshTokens, forgedAccessTokens } from "../../support/bad-tokens.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { admin, bearer, logIn, message } from "../../support/sessions.ts";

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({}, store);
  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      const introspect = async (token: string) =>
        message(await caller.call(admin.introspectToken, { token }, bearer(service.adminToken)));

      test("a live access token is returned with its claims, a refresh token with its session's", async () => {
        const user = await logIn(service, { claims: { role: "admin" } });
        const payload = JSON.parse(Buffer.from(user.accessToken.split(".")[1] ?? "", "base64url").toString());
        expect(await introspect(user.accessToken)).toMatchObject({
          active: true,
          tokenType: "access_token",
          type: TokenType.ACCESS_TOKEN,
          claims: payload,
        });
        const { subject, sid } = user;
        expect(await introspect(user.refreshToken)).toMatchObject({
          active: true,
          tokenType: "refresh_token",
          type: TokenType.REFRESH_TOKEN,
          claims: { sub: subject, sid, iss: service.publicUrl },
        });
      });

      test("asking rotates nothing", async () => {
        const user = await logIn(service);
        for (let i = 0; i < 3; i++) await introspect(user.refreshToken);
        const session = message(
          await caller.call(admin.getSession, { sessionId: user.sid }, bearer(service.adminToken)),
        ).session;
        expect(session?.lastRefreshTime).toEqual(session?.createTime);
      });

      test("nothing is returned of a token that would be refused", async () => {
        const user = await logIn(service);
        const dead = await logIn(service);
        message(await caller.call(admin.revokeSession, { sessionId: dead.sid }, bearer(service.adminToken)));
        const texts = [...badRefreshTokens(user.refreshToken), ...forgedAccessTokens(user.accessToken)].filter(
          ([, text]) => text !== "",
        );
        for (const [what, text] of [
          ...texts,
          ["a dead one", dead.accessToken],
          ["a dead one", dead.refreshToken],
        ] as const) {
          const response = await introspect(text);
          expect(response.active, what).toBe(false);
          expect(response.tokenType, what).toBeUndefined();
          expect(response.type, what).toBeUndefined();
          expect(response.claims, what).toBeUndefined();
        }
      });

      test("no token at all is a bad request", async () => {
        const response = await caller.call(admin.introspectToken, {}, bearer(service.adminToken));
        expect(response).toMatchObject({
          ok: false,
          code: "E400_INVALID_REQUEST",
          rpc: "invalid_argument",
          text: expect.stringMatching(/^token: /),
        });
      });
    },
  );
});
