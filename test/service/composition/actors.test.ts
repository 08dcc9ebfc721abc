/** Sessions that somebody uses in place of their subject (impersonation), through every protocol and on both stores. */
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { AccessTokenPolicy, RevocationReason } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { waitFor } from "../../support/service.ts";
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

const rpc = SessionService.method;
const HOUR_MS = 3_600_000;
const SUPPORT = { subject: "support-7", reason: "ticket 4711" };
const claimsOf = (token: string) => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
const badRequest = (field: string) => ({
  ok: false,
  code: "E400_INVALID_REQUEST",
  text: expect.stringMatching(new RegExp(`^${field.replaceAll(".", "\\.")}: `)),
});
const failedPrecondition = {
  ok: false,
  ...{ code: "E400_FAILED_PRECONDITION", rpc: "failed_precondition" },
  text: expect.stringMatching(/^actor\.session_id: /),
};

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ LOG_LEVEL: "debug", REUSE_INTERVAL: "0", MAX_SESSIONS_PER_SUBJECT: "2" }, store);
  const header = () => bearer(service.adminToken);

  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      const create = (wanted: object) =>
        caller.call(admin.createSession, { subject: somebody(), actor: SUPPORT, ...wanted }, header());

      test("tokens, introspection, lists and the user's own list name the actor", async () => {
        const user = await logIn(service);
        const created = message(await create({ subject: user.subject, claims: { role: "editor" } }));
        const sid = created.session?.sessionId ?? "";
        const act = { sub: SUPPORT.subject };
        expect(claimsOf(created.accessToken)).toMatchObject({ sub: user.subject, act, role: "editor" });
        const refreshed = await openPublic(service).call(rpc.refresh, {}, cookie(created.refreshToken));
        expect(claimsOf(message(refreshed).data?.accessToken ?? "")).toMatchObject({ sub: user.subject, act });
        for (const token of [created.accessToken, successor(refreshed) ?? ""]) {
          const { active, claims } = message(await caller.call(admin.introspectToken, { token }, header()));
          expect([active, claims]).toEqual([true, expect.objectContaining({ act })]);
        }
        expect(message(await caller.call(admin.getSession, { sessionId: sid }, header())).session?.actor).toMatchObject(
          SUPPORT,
        );
        const { sessions } = message(await caller.call(admin.listSessions, { subject: user.subject }, header()));
        expect(sessions.map(({ actor }) => actor?.subject)).toEqual([SUPPORT.subject, undefined]);
        const own = message(await openPublic(service).call(rpc.listSessions, {}, bearer(user.accessToken)));
        expect(own.data?.sessions.map(({ actor }) => actor)).toEqual([SUPPORT.subject, ""]);
        message(await openPublic(service).call(rpc.revokeSession, { sessionId: sid }, bearer(user.accessToken)));
        expect(await caller.call(admin.getSession, { sessionId: sid }, header())).toMatchObject({ rpc: "not_found" });
        expect(claimsOf(user.accessToken)).not.toHaveProperty("act");
      });

      test("it lives an hour at most, whatever other sessions may", async () => {
        const { session } = message(await create({}));
        const [created, idle, absolute] = [session?.createTime, session?.idleExpireTime, session?.absoluteExpireTime];
        const from = created === undefined ? 0 : timestampMs(created);
        expect([idle, absolute].map((time) => time && timestampMs(time) - from)).toEqual([HOUR_MS, HOUR_MS]);
        const long = { seconds: 3_601n };
        expect(await create({ idleTimeout: long })).toMatchObject(badRequest("idle_timeout"));
        expect(await create({ absoluteLifetime: long })).toMatchObject(badRequest("absolute_lifetime"));
        message(await create({ idleTimeout: { seconds: 60n }, absoluteLifetime: { seconds: 3_600n } }));
      });

      test.each<[string, object, string]>([
        ["whose actor is its subject", { subject: "support-7" }, "actor.subject"],
        ["without the subject of the actor", { actor: {} }, "actor.subject"],
        ["whose subject has authenticated", { authTime: timestampFromMs(Date.now() - 9_000) }, "actor"],
        ["with methods", { amr: ["pwd"] }, "actor"],
        ["with a class", { acr: "gold" }, "actor"],
        ["with a limit, which would not count it", { limit: { maxSessions: 1 } }, "limit"],
        ["that ends with no session", { actor: { ...SUPPORT, endWithSession: true } }, "actor.session_id"],
        ["whose actor's session has no id of one", { actor: { ...SUPPORT, sessionId: "x" } }, "actor.session_id"],
        ["with a reason of two lines", { actor: { ...SUPPORT, reason: "a\nb" } }, "actor.reason"],
      ])("one %s is refused", async (_, wanted, field) => {
        expect(await create(wanted)).toMatchObject(badRequest(field));
      });

      test("act and sv by hand are refused, at creation and by an update, also without an actor", async () => {
        for (const name of ["act", "sv"]) {
          const claims = { [name]: name === "act" ? { sub: "boss" } : 7 };
          for (const more of [{}, { actor: undefined }]) {
            expect(await create({ claims, ...more })).toMatchObject(badRequest(`claims.${name}`));
          }
          const { sid, subject } = await logIn(service, { actor: SUPPORT });
          const change = { claims, updateMask: { paths: ["claims"] } };
          const updates = [
            await caller.call(admin.updateSession, { sessionId: sid, ...change }, header()),
            await caller.call(admin.updateSubjectSessions, { subject, ...change }, header()),
          ];
          for (const update of updates) expect(update).toMatchObject(badRequest(`claims.${name}`));
        }
      });

      test("an update of its claims keeps the actor", async () => {
        const { sid, refreshToken } = await logIn(service, { actor: SUPPORT });
        const change = { claims: { role: "reader" }, accessTokens: AccessTokenPolicy.REFRESH };
        message(await caller.call(admin.updateSession, { sessionId: sid, ...change }, header()));
        const refreshed = message(await openPublic(service).call(rpc.refresh, {}, cookie(refreshToken)));
        const claims = claimsOf(refreshed.data?.accessToken ?? "");
        expect(claims).toMatchObject({ role: "reader", sv: 1, act: { sub: SUPPORT.subject } });
      });

      test("it is never elevated", async () => {
        const { sid } = await logIn(service, { actor: SUPPORT });
        const wanted = { sessionId: sid, authTime: timestampFromMs(Date.now() - 9_000), amr: ["pwd"] };
        expect(await caller.call(admin.elevateSession, wanted, header())).toMatchObject({
          ...{ ok: false, code: "E400_FAILED_PRECONDITION", rpc: "failed_precondition" },
          text: expect.stringContaining("never elevated"),
        });
      });

      test("the actor's session must be live, the actor's, and nobody may act in it", async () => {
        const own = await logIn(service, { subject: "support-7", actor: undefined });
        const acting = await logIn(service, { subject: "support-7", actor: { subject: "boss" } });
        const other = await logIn(service);
        const naming = (sessionId: string) => create({ actor: { ...SUPPORT, sessionId } });
        message(await naming(own.sid));
        for (const { sid } of [acting, other]) expect(await naming(sid)).toMatchObject(failedPrecondition);
        message(await caller.call(admin.revokeSession, { sessionId: own.sid }, header()));
        expect(await naming(own.sid)).toMatchObject(failedPrecondition);
      });

      test("the actor's session cannot be the one that is replaced", async () => {
        const { sid } = await logIn(service, { subject: "support-7" });
        const wanted = { actor: { ...SUPPORT, sessionId: sid, endWithSession: true }, replacesSessionId: sid };
        expect(await create(wanted)).toMatchObject(badRequest("replaces_session_id"));
        expect((await caller.call(admin.getSession, { sessionId: sid }, header())).ok).toBe(true);
      });

      test("it puts out no session of its subject, and none of these puts it out; it has a bound of its own", async () => {
        const subject = somebody();
        const live = async () => {
          const { sessions } = message(await caller.call(admin.listSessions, { subject, pageSize: 100 }, header()));
          return new Set(sessions.map(({ sessionId }) => sessionId));
        };
        const own = [await logIn(service, { subject }), await logIn(service, { subject })];
        const acting = [];
        for (let at = 0; at < 9; at++) acting.push(await logIn(service, { subject, actor: SUPPORT }));
        expect(await live()).toEqual(new Set([...own, ...acting.slice(1)].map(({ sid }) => sid)));
        const third = await logIn(service, { subject });
        expect(await live()).toEqual(new Set([own[1], third, ...acting.slice(1)].map((one) => one?.sid)));
      });

      test("it ends when its user ends all others", async () => {
        const user = await logIn(service);
        const { sid } = await logIn(service, { subject: user.subject, actor: SUPPORT });
        message(await openPublic(service).call(rpc.revokeOtherSessions, {}, bearer(user.accessToken)));
        expect(await caller.call(admin.getSession, { sessionId: sid }, header())).toMatchObject({ rpc: "not_found" });
      });
    },
  );

  test("every line of the audit and every event of it has both names", async () => {
    const [subject, actor] = [somebody(), { subject: somebody() }];
    const first = await logIn(service, { subject, actor });
    const caller = openAdmin(service);
    const refresh = (token: string) => openPublic(service).call(rpc.refresh, {}, cookie(token));
    message(await caller.call(admin.updateSession, { sessionId: first.sid, claims: { role: "x" } }, header()));
    const second = successor(await refresh(first.refreshToken)) ?? "";
    message(await refresh(successor(await refresh(second)) ?? ""));
    expect((await refresh(first.refreshToken)).ok).toBe(false); // reuse
    const other = await logIn(service, { subject });
    const third = await logIn(service, { subject, actor });
    // What the actor ends in the user's name has both names, too.
    message(await openPublic(service).call(rpc.revokeSession, { sessionId: other.sid }, bearer(third.accessToken)));
    message(await openPublic(service).call(rpc.logoutByCookie, {}, cookie(third.refreshToken)));

    const ofSubject = () =>
      service
        .stderr()
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((line) => line.subject === subject);
    await waitFor(service, () => ofSubject().find(({ sid, event }) => sid === third.sid && event === "session_ended"));
    const kinds = new Set(ofSubject().map(({ event }) => event));
    const named = ["session_created", "session_updated", "session_renewed", "authn_token_reuse", "session_ended"];
    expect(kinds).toEqual(new Set(named));
    const nameless = ofSubject().filter((one) => one.actor !== actor.subject);
    expect(nameless.map(({ sid, event }) => [sid, event])).toEqual([[other.sid, "session_created"]]);

    const events = await until(async () => {
      const found = message(await caller.call(admin.listSessionEvents, { subject, pageSize: 100 }, header())).events;
      const ends = found.filter(({ revocationReason }) => revocationReason !== RevocationReason.UNSPECIFIED);
      if (ends.length < 3) throw new Error(`${ends.length} ends`);
      return found;
    });
    const without = events.filter((one) => one.actor !== actor.subject);
    expect(new Set(without.map(({ sessionId }) => sessionId))).toEqual(new Set([other.sid]));
    expect(without.every(({ revocationReason }) => revocationReason === RevocationReason.UNSPECIFIED)).toBe(true);
  });

  test("it ends with the actor's session, and its tokens are refused at once", async () => {
    const own = await logIn(service);
    const actor = { subject: own.subject, sessionId: own.sid, endWithSession: true };
    const { sid, refreshToken, accessToken } = await logIn(service, { actor });
    message(await openPublic(service).call(rpc.logout, {}, bearer(own.accessToken)));
    await until(async () => {
      const { active } = message(
        await openAdmin(service).call(admin.introspectToken, { token: accessToken }, header()),
      );
      if (active) throw new Error("it is still live");
    });
    expect(await openPublic(service).call(rpc.refresh, {}, cookie(refreshToken))).toMatchObject({
      code: "E001_AUTH_FAILURE",
    });
    const { events } = message(
      await until(async () => {
        const response = await openAdmin(service).call(admin.listSessionEvents, { sessionId: sid }, header());
        if (message(response).events.length < 2) throw new Error("its end is not recorded yet");
        return response;
      }),
    );
    expect(events[0]).toMatchObject({ revocationReason: RevocationReason.ACTOR_ENDED, actor: own.subject });
  });
});
