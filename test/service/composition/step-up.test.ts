/**
 * When and how a user authenticated is set at the creation of a session and by a step-up, and returned in tokens, through every protocol.
 */
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { admin, bearer, cookie, logIn, message, openPublic, somebody, successor } from "../../support/sessions.ts";

const { refresh, logout, listSessions } = SessionService.method;
const SECOND = 1000;
/** Returns a time in the past, in whole seconds. */
const ago = (ms: number) => Math.floor((Date.now() - ms) / SECOND) * SECOND;
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
const badRequest = (field: string) => ({
  ok: false,
  code: "E400_INVALID_REQUEST",
  rpc: "invalid_argument",
  text: expect.stringMatching(new RegExp(`^${field.replaceAll(".", "\\.")}(\\[\\d\\])?: `)),
});

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({}, store);
  const header = () => bearer(service.adminToken);

  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      const elevate = (sessionId: string, at: number, more: object = {}) =>
        caller.call(
          admin.elevateSession,
          { sessionId, authTime: timestampFromMs(at), amr: ["pwd", "otp"], ...more },
          header(),
        );
      const active = async (token: string) =>
        message(await caller.call(admin.introspectToken, { token }, header())).claims;

      test("an authentication given at creation is in tokens, introspection and the session", async () => {
        const at = ago(60 * SECOND);
        const wanted = {
          subject: somebody(),
          claims: { role: "editor" },
          authTime: timestampFromMs(at + 999),
          amr: ["pwd", "hwk"],
          acr: "urn:example:silver",
        };
        const created = message(await caller.call(admin.createSession, wanted, header()));
        const authentication = { auth_time: at / SECOND, amr: ["pwd", "hwk"], acr: "urn:example:silver" };
        expect(claimsOf(created.accessToken)).toMatchObject({ ...authentication, role: "editor" });
        expect(await active(created.accessToken)).toMatchObject(authentication);
        expect(await active(created.refreshToken)).toMatchObject(authentication);
        const sessionId = created.session?.sessionId ?? "";
        const { session } = message(await caller.call(admin.getSession, { sessionId }, header()));
        expect(session).toMatchObject({ amr: authentication.amr, acr: authentication.acr });
        expect(session?.authTime && timestampMs(session.authTime)).toBe(at);
        const refreshed = message(await openPublic(service).call(refresh, {}, cookie(created.refreshToken)));
        expect(claimsOf(refreshed.data?.accessToken ?? "")).toMatchObject({ ...authentication, role: "editor" });
      });

      test("fields that are not given are in no token", async () => {
        const user = await logIn(service, { acr: "0" });
        expect(claimsOf(user.accessToken)).toMatchObject({ acr: "0" });
        for (const token of [user.accessToken, user.refreshToken]) {
          expect(Object.keys((await active(token)) ?? {})).not.toEqual(expect.arrayContaining(["auth_time"]));
          expect(Object.keys((await active(token)) ?? {})).not.toEqual(expect.arrayContaining(["amr"]));
        }
        const plain = await logIn(service);
        for (const name of ["auth_time", "amr", "acr"]) expect(claimsOf(plain.accessToken)).not.toHaveProperty(name);
      });

      test("after a step-up the next access token carries it, and the one before stays valid", async () => {
        const first = ago(3600 * SECOND);
        const user = await logIn(service, { authTime: timestampFromMs(first), amr: ["pwd"], acr: "silver" });
        const at = ago(5 * SECOND);
        const { session } = message(await elevate(user.sid, at, { acr: "gold" }));
        expect(session).toMatchObject({ sessionId: user.sid, amr: ["pwd", "otp"], acr: "gold" });
        const authentication = { auth_time: at / SECOND, amr: ["pwd", "otp"], acr: "gold" };
        const refreshed = await openPublic(service).call(refresh, {}, cookie(user.refreshToken));
        expect(claimsOf(message(refreshed).data?.accessToken ?? "")).toMatchObject(authentication);
        expect(await active(successor(refreshed) ?? "")).toMatchObject(authentication);
        expect(await active(user.accessToken)).toMatchObject({
          auth_time: first / SECOND,
          amr: ["pwd"],
          acr: "silver",
        });
        message(await openPublic(service).call(listSessions, {}, bearer(user.accessToken)));
      });

      test("what a step-up does not say is not known any more", async () => {
        const user = await logIn(service, { amr: ["pwd"], acr: "gold" });
        message(await elevate(user.sid, ago(0)));
        const refreshed = message(await openPublic(service).call(refresh, {}, cookie(user.refreshToken)));
        expect(claimsOf(refreshed.data?.accessToken ?? "")).not.toHaveProperty("acr");
      });

      test("a step-up may be repeated, and an earlier one is refused", async () => {
        const user = await logIn(service);
        const at = ago(10 * SECOND);
        message(await elevate(user.sid, at));
        message(await elevate(user.sid, at));
        expect(await elevate(user.sid, at - SECOND)).toMatchObject(badRequest("auth_time"));
        message(await elevate(user.sid, at + SECOND));
      });

      test("a session that is not live is not found", async () => {
        const user = await logIn(service);
        message(await openPublic(service).call(logout, {}, bearer(user.accessToken)));
        for (const sid of [user.sid, "A".repeat(23)]) {
          expect(await elevate(sid, ago(0))).toMatchObject({ ok: false, code: "E404_NOT_FOUND", rpc: "not_found" });
        }
      });

      test.each<[string, object]>([
        ["session_id", { sessionId: "nonsense" }],
        ["auth_time", { authTime: undefined }],
        ["auth_time", { authTime: timestampFromMs(Date.now() + 3_600_000) }],
        ["auth_time", { authTime: timestampFromMs(0) }],
        ["auth_time", { authTime: timestampFromMs(-1) }],
        ["amr", { amr: [] }],
        ["amr", { amr: [""] }],
        ["amr", { amr: ["p".repeat(33)] }],
        ["amr", { amr: ["a\n"] }],
        ["amr", { amr: Array.from({ length: 9 }, (_, at) => `m${at}`) }],
        ["acr", { acr: "a".repeat(256) }],
      ])("a bad %s of a step-up is named (%o)", async (field, wanted) => {
        const user = await logIn(service);
        expect(await elevate(user.sid, ago(0), wanted)).toMatchObject(badRequest(field));
      });

      test.each<[string, object]>([
        ["auth_time", { authTime: timestampFromMs(Date.now() + 3_600_000) }],
        ["amr", { amr: ["p".repeat(33)] }],
        ["acr", { acr: "\u0000" }],
        ["claims.acr", { acr: "gold", claims: { acr: "silver" } }],
        ["claims.acr", { claims: { acr: "gold" } }],
        ["claims.amr", { claims: { amr: ["hwk"] } }],
        ["claims.auth_time", { claims: { auth_time: 1 } }],
        ["claims.auth_time", { authTime: timestampFromMs(1e12), claims: { auth_time: 1 } }],
        ["claims.sct", { claims: { sct: 1 } }],
        ["replaces_session_id", { replacesSessionId: "nonsense" }],
      ])("a bad %s of a creation is named", async (field, wanted) => {
        const response = await caller.call(admin.createSession, { subject: somebody(), ...wanted }, header());
        expect(response).toMatchObject(badRequest(field));
      });

      test("the session that a new one replaces has ended", async () => {
        for (const subject of [undefined, somebody()]) {
          const old = await logIn(service);
          const wanted = { subject: subject ?? old.subject, replacesSessionId: old.sid };
          const created = message(await caller.call(admin.createSession, wanted, header()));
          expect(await active(old.accessToken)).toBeUndefined();
          expect(await active(old.refreshToken)).toBeUndefined();
          expect(await active(created.accessToken)).toBeDefined();
          // The session to replace has already ended, so the second call replaces nothing.
          const again = message(await caller.call(admin.createSession, wanted, header()));
          expect(again.session?.sessionId).not.toBe(created.session?.sessionId);
          expect(await active(created.accessToken)).toBeDefined();
        }
      });
    },
  );
});
