/** What a live session says is changed, and access tokens that say something else are refused: through every protocol, on every store. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { AccessTokenPolicy, SessionEventType } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS, RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, openPublic, somebody } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, logout, listSessions, revokeSession, revokeOtherSessions } = SessionService.method;
const { KEEP, REFRESH } = AccessTokenPolicy;
const claimsOf = (token = "") => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
const READER = { claims: { role: "reader" } };

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ REUSE_INTERVAL: "0" }, store);
  const header = () => bearer(service.adminToken);
  const renewed = async (user: { readonly refreshToken: string }) => {
    const response = message(await openPublic(service).call(refresh, {}, cookie(user.refreshToken)));
    return response.data?.accessToken ?? "";
  };
  const isActive = async (token: string) =>
    message(await openAdmin(service).call(admin.introspectToken, { token }, header())).active;

  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      const update = (sessionId: string, more: object) =>
        caller.call(admin.updateSession, { sessionId, ...more }, header());
      const updateAll = (subject: string, more: object) =>
        caller.call(admin.updateSubjectSessions, { subject, ...more }, header());

      test("the next refresh carries new claims and audiences, and tokens from before are accepted", async () => {
        const user = await logIn(service, { claims: { role: "admin", team: 7 } });
        expect(claimsOf(user.accessToken)).not.toHaveProperty("sv");
        const { session } = message(await update(user.sid, { ...READER, audiences: [service.publicUrl, "b"] }));
        expect(session).toMatchObject({
          sessionId: user.sid,
          ...READER,
          audiences: [service.publicUrl, "b"],
          etag: "1",
        });
        expect(await isActive(user.accessToken)).toBe(true);
        const token = await renewed(user);
        expect(claimsOf(token)).toMatchObject({ role: "reader", aud: [service.publicUrl, "b"], sv: 1 });
        expect(claimsOf(token)).not.toHaveProperty("team");
        await until(async () => {
          const { events } = message(await caller.call(admin.listSessionEvents, { sessionId: user.sid }, header()));
          expect(events.map(({ type }) => type)).toContain(SessionEventType.UPDATED);
        });
      });

      test("with REFRESH, tokens from before are inactive at once, the refresh token is not", async () => {
        const user = await logIn(service, { claims: { role: "admin" } });
        message(await update(user.sid, { ...READER, accessTokens: REFRESH }));
        expect(await isActive(user.accessToken)).toBe(false);
        expect(await isActive(user.refreshToken)).toBe(true);
        const token = await renewed(user);
        expect(await isActive(token)).toBe(true);
        message(await update(user.sid, { claims: {}, accessTokens: KEEP }));
        expect(await isActive(token)).toBe(true);
        message(await update(user.sid, { claims: {}, accessTokens: REFRESH }));
        expect(await isActive(token)).toBe(false);
      });

      test("an elevation makes tokens from before stale by option alone", async () => {
        const user = await logIn(service);
        const elevation = { sessionId: user.sid, authTime: timestampFromMs(Date.now()), amr: ["otp"] };
        message(await caller.call(admin.elevateSession, elevation, header()));
        expect(await isActive(user.accessToken)).toBe(true);
        message(await caller.call(admin.elevateSession, { ...elevation, accessTokens: REFRESH }, header()));
        expect(await isActive(user.accessToken)).toBe(false);
        expect(claimsOf(await renewed(user))).toMatchObject({ sv: 1, amr: ["otp"] });
      });

      test("all sessions of a subject are updated, others are not, and it can be repeated", async () => {
        const subject = somebody();
        const users = [await logIn(service, { subject }), await logIn(service, { subject })];
        const other = await logIn(service);
        for (let time = 0; time < 2; time++) {
          const updated = message(await updateAll(subject, { ...READER, accessTokens: REFRESH }));
          expect(updated.updatedCount).toBe(2);
        }
        for (const user of users) {
          expect(await isActive(user.accessToken)).toBe(false);
          expect(claimsOf(await renewed(user))).toMatchObject({ role: "reader", sv: 1 });
        }
        expect(await isActive(other.accessToken)).toBe(true);
        expect(message(await updateAll(somebody(), READER)).updatedCount).toBe(0);
      });

      test("an update by an outdated etag is aborted, and changes nothing", async () => {
        const user = await logIn(service);
        const { session: read } = message(await caller.call(admin.getSession, { sessionId: user.sid }, header()));
        const first = message(await update(user.sid, { ...READER, etag: read?.etag }));
        expect(await update(user.sid, { claims: {}, etag: read?.etag })).toMatchObject({
          ok: false,
          code: "E409_CONFLICT",
          rpc: "aborted",
        });
        const { session } = message(await caller.call(admin.getSession, { sessionId: user.sid }, header()));
        expect(session).toEqual(first.session);
        message(await update(user.sid, { claims: {}, etag: first.session?.etag }));
      });

      test("the mask says what is replaced", async () => {
        const user = await logIn(service, { claims: { role: "admin" }, audiences: [service.publicUrl] });
        const both = { claims: { role: "x" }, audiences: ["b"] };
        const mask = (...paths: string[]) => ({ updateMask: { paths } });
        const one = message(await update(user.sid, { ...both, ...mask("claims") }));
        expect(one.session).toMatchObject({ claims: { role: "x" }, audiences: [service.publicUrl] });
        const two = message(await update(user.sid, { ...both, ...mask("audiences") }));
        expect(two.session).toMatchObject({ audiences: ["b"] });
        const cleared = message(await update(user.sid, mask("claims")));
        expect(cleared.session?.claims).toEqual({});
      });

      test.each<[string, object]>([
        ["session_id", { sessionId: "nonsense", ...READER }],
        ["update_mask", {}],
        ["update_mask", { ...READER, updateMask: { paths: ["subject"] } }],
        ["update_mask", { ...READER, updateMask: { paths: ["claims.role"] } }],
        ["update_mask", { ...READER, updateMask: { paths: ["claims", "*"] } }],
        ["audiences", { ...READER, updateMask: { paths: ["audiences"] } }],
        ["audiences", { audiences: ["a", "a"] }],
        ["audiences", { audiences: Array.from({ length: 9 }, (_, at) => `a${at}`) }],
        ["audiences[0]", { audiences: ["a".repeat(256)] }],
        ["claims.sub", { claims: { sub: "x" } }],
        ["claims.sv", { claims: { sv: 7 } }],
        ["claims.acr", { claims: { acr: "gold" } }],
        ["claims", { claims: { text: "x".repeat(4_096) } }],
        ["etag", { ...READER, etag: "x" }],
        ["etag", { ...READER, etag: "01" }],
        ["access_tokens", { ...READER, accessTokens: 7 }],
      ])("a bad %s is named (%o)", async (field, wanted) => {
        const user = await logIn(service);
        expect(await update(user.sid, wanted)).toMatchObject({
          ok: false,
          code: "E400_INVALID_REQUEST",
          text: expect.stringContaining(`${field}: `),
        });
      });

      test("a session that is not live is not found", async () => {
        const user = await logIn(service);
        message(await openPublic(service).call(logout, {}, bearer(user.accessToken)));
        expect(await update(user.sid, READER)).toMatchObject({ ok: false, code: "E404_NOT_FOUND" });
      });
    },
  );

  describe("an access token that is stale", () => {
    throughEvery(
      PUBLIC_PROTOCOLS,
      () => service.publicUrl,
      (caller) => {
        const stale = async () => {
          const user = await logIn(service);
          const wanted = { sessionId: user.sid, ...READER, accessTokens: REFRESH };
          message(await openAdmin(service).call(admin.updateSession, wanted, header()));
          return user;
        };

        test("is refused on the user's own sessions, by name, and its successor is not", async () => {
          const user = await stale();
          const calls = (token: string) => [
            caller.call(listSessions, {}, bearer(token)),
            caller.call(revokeSession, { sessionId: "A".repeat(23) }, bearer(token)),
            caller.call(revokeSession, { sessionId: user.sid.replace(/^..../, "AAAA") }, bearer(token)),
            caller.call(revokeOtherSessions, {}, bearer(token)),
          ];
          for (const response of await Promise.all<Awaited<ReturnType<typeof calls>[number]>>(
            calls(user.accessToken),
          )) {
            expect(response).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
            expect(response.headers.get("www-authenticate")).toBe(
              'Bearer error="invalid_token", error_description="stale"',
            );
          }
          message(await caller.call(listSessions, {}, bearer(await renewed(user))));
        });

        test("still logs out", async () => {
          const user = await stale();
          message(await caller.call(logout, {}, bearer(user.accessToken)));
          expect(await isActive(user.refreshToken)).toBe(false);
        });
      },
    );
  });

  test("PATCH does the same, and refuses unknown fields", async () => {
    const subject = somebody();
    const user = await logIn(service, { subject });
    const patch = async (path: string, body: object) => {
      const headers = { ...header(), "content-type": "application/json" };
      const response = await fetch(service.adminUrl + path, { method: "PATCH", headers, body: JSON.stringify(body) });
      return { status: response.status, body: await response.json() };
    };
    const session = `/v1/sessions/${user.sid}`;
    const updated = await patch(session, { claims: { role: "reader" }, accessTokens: "ACCESS_TOKEN_POLICY_REFRESH" });
    expect(updated).toMatchObject({ status: 200, body: { session: { claims: { role: "reader" }, etag: "1" } } });
    expect(await isActive(user.accessToken)).toBe(false);
    const form = { method: "POST", headers: header(), body: new URLSearchParams({ token: user.accessToken }) };
    expect(await (await fetch(`${service.adminUrl}/v1/oauth/introspect`, form)).json()).toEqual({ active: false });
    expect(await patch(session, { claims: {}, etag: "0" })).toMatchObject({
      status: 409,
      body: { error: { code: "E409_CONFLICT" } },
    });
    const masked = await patch(session, { claims: { role: "x" }, audiences: ["b"], updateMask: "audiences" });
    expect(masked).toMatchObject({ status: 200, body: { session: { claims: { role: "reader" }, audiences: ["b"] } } });
    const all = await patch(`/v1/subjects/${encodeURIComponent(subject)}/sessions`, { claims: {} });
    expect(all).toMatchObject({ status: 200, body: { updatedCount: 1 } });
    expect(await patch(session, { claims: {}, acces_tokens: 2 })).toMatchObject({ status: 400 });
    for (const query of ["?etag=0", "?updateMask=audiences"]) {
      expect(await patch(session + query, { claims: { role: "lost" } })).toMatchObject({ status: 400 });
    }
    const response = await fetch(service.adminUrl + session, { method: "PATCH", body: "{}" });
    expect(response.status).toBe(401);
  });
});
