/** The logout of all users, through every protocol and at every verifier. */
import { cpSync } from "node:fs";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { createVerifier } from "../../../src/verifier/index.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { startService, waitFor } from "../../support/service.ts";
import {
  admin,
  bearer,
  cookie,
  type LoggedIn,
  logIn,
  message,
  openAdmin,
  openPublic,
  successor,
} from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, logout, logoutByCookie, listSessions } = SessionService.method;
const REFUSED = { ok: false, code: "E001_AUTH_FAILURE" };
type Running = Awaited<ReturnType<typeof startService>>;

/** Returns whether the service accepts the refresh token, the access token, and each of them at introspection. */
async function taken(service: Pick<Running, "publicUrl" | "adminUrl" | "adminToken">, user: LoggedIn) {
  const open = openPublic(service);
  const listed = await open.call(listSessions, {}, bearer(user.accessToken));
  const introspected = [];
  for (const token of [user.accessToken, user.refreshToken]) {
    const response = await openAdmin(service).call(admin.introspectToken, { token }, bearer(service.adminToken));
    introspected.push(message(response).active);
  }
  const refreshed = await open.call(refresh, {}, cookie(user.refreshToken));
  return [listed.ok, ...introspected, refreshed.ok];
}
const ALL = [true, true, true, true];
const NONE = [false, false, false, false];

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({}, store);
  const header = () => bearer(service.adminToken);

  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      test("every session ends, of every subject, and logins right after it live", async () => {
        const before = await Promise.all(Array.from({ length: 20 }, () => logIn(service)));
        const { revokedUntilTime } = message(await caller.call(admin.revokeAllSessions, {}, header()));
        const after = await Promise.all(before.map(({ subject }) => logIn(service, { subject })));
        for (const [at, dead] of before.entries()) {
          expect(await taken(service, dead)).toEqual(NONE);
          const fresh = after[at] as LoggedIn;
          const list = message(await caller.call(admin.listSessions, { subject: dead.subject }, header())).sessions;
          expect(list.map(({ sessionId }) => sessionId)).toEqual([fresh.sid]);
          expect(await taken(service, fresh)).toEqual(ALL);
        }
        const created = message(await caller.call(admin.getSession, { sessionId: after[0]?.sid ?? "" }, header()));
        const until = revokedUntilTime && timestampMs(revokedUntilTime);
        expect(created.session?.createTime && timestampMs(created.session.createTime)).toBeGreaterThan(until ?? 1e15);
      });

      test("while others log in and refresh: sessions created before it end, sessions requested after it live", async () => {
        type Login = { readonly user: LoggedIn; readonly askedAt: number; readonly respondedAt: number };
        const logins: Login[] = [];
        let running = true;
        const work = async () => {
          while (running) {
            const askedAt = performance.now();
            const user = await logIn(service);
            logins.push({ user, askedAt, respondedAt: performance.now() });
            await openPublic(service).call(refresh, {}, cookie(user.refreshToken));
          }
        };
        const workers = [work(), work(), work(), work()];
        const enough = (count: number) => until(async () => expect(logins.length).toBeGreaterThan(count));
        await enough(20);
        const from = performance.now();
        message(await caller.call(admin.revokeAllSessions, {}, header()));
        const returnedAt = performance.now();
        await enough(logins.length + 20);
        running = false;
        await Promise.all(workers);
        for (const { user, askedAt, respondedAt } of logins) {
          const { ok } = await caller.call(admin.getSession, { sessionId: user.sid }, header());
          if (respondedAt < from) expect(ok).toBe(false);
          if (askedAt > returnedAt) expect(ok).toBe(true);
        }
      });

      test("a session that has ended so is refused at logout, and needs none by its cookie", async () => {
        const dead = await logIn(service);
        message(await caller.call(admin.revokeAllSessions, {}, header()));
        expect(await openPublic(service).call(logout, {}, bearer(dead.accessToken))).toMatchObject(REFUSED);
        message(await openPublic(service).call(logoutByCookie, {}, cookie(dead.refreshToken)));
        const gone = await caller.call(admin.getSession, { sessionId: dead.sid }, header());
        expect(gone).toMatchObject({ ok: false, code: "E404_NOT_FOUND" });
        const again = message(await caller.call(admin.revokeSession, { sessionId: dead.sid }, header()));
        expect(again.revokedCount).toBe(0);
      });

      test("of a time, those created before it end, whenever they were refreshed", async () => {
        const early = await logIn(service);
        const { createTime } =
          message(await caller.call(admin.getSession, { sessionId: early.sid }, header())).session ?? {};
        const created = Number(createTime && timestampMs(createTime));
        const refreshed = await openPublic(service).call(refresh, {}, cookie(early.refreshToken));
        const accessToken = message(refreshed).data?.accessToken ?? "";
        const user = { ...early, accessToken, refreshToken: successor(refreshed) ?? "" };
        const revoke = async (issuedBefore: { seconds: bigint; nanos: number }) =>
          message(await caller.call(admin.revokeAllSessions, { issuedBefore }, header()));
        await revoke(timestampFromMs(created)); // This excludes the session, which was created exactly at this time.
        expect(await taken(service, user)).toEqual(ALL);
        const moment = timestampFromMs(created);
        // With a time one nanosecond after the creation of the session, the revocation includes it.
        await revoke({ ...moment, nanos: moment.nanos + 1 });
        expect(await taken(service, user)).toEqual(NONE);
      });

      test("verifiers refuse every access token of before, and take those of after", async () => {
        const { publicUrl, adminUrl, adminToken } = service;
        const common = { adminUrl, adminToken, issuer: publicUrl, audience: publicUrl, policy: "refuse" as const };
        const follower = createVerifier(common);
        await follower.ready;
        const before = await Promise.all(Array.from({ length: 5 }, () => logIn(service)));
        for (const { accessToken } of before) expect(await follower.verify(accessToken)).toMatchObject({ ok: true });
        message(await caller.call(admin.revokeAllSessions, {}, header()));
        const after = await logIn(service);
        const newcomer = createVerifier(common);
        onTestFinished(() => {
          follower.close();
          newcomer.close();
        });
        await newcomer.ready;
        for (const verifier of [follower, newcomer]) {
          for (const { accessToken } of before) {
            await until(async () =>
              expect(await verifier.verify(accessToken)).toEqual({ ok: false, reason: "revoked" }),
            );
          }
          expect(await verifier.verify(after.accessToken)).toMatchObject({ ok: true });
        }
      });
    },
  );

  test("it is in the log, with what it ended", async () => {
    const { revokedUntilTime } = message(await openAdmin(service).call(admin.revokeAllSessions, {}, header()));
    const until = revokedUntilTime && timestampMs(revokedUntilTime);
    const line = await waitFor(service, () =>
      service
        .stderr()
        .split("\n")
        .find((text) => text.includes(`"revokedUntil":${until}`)),
    );
    expect(JSON.parse(line)).toMatchObject({ event: "all_sessions_ended", level: "warn", address: "127.0.0.1" });
  });
});

test("it outlives a kill of the service at its acknowledgement", async () => {
  const service = await startService();
  const user = await logIn(service);
  message(await openAdmin(service).call(admin.revokeAllSessions, {}, bearer(service.adminToken)));
  await service.kill9();
  const next = await service.restart();
  onTestFinished(() => next.stop().then(() => {}));
  expect(await taken(next, user)).toEqual(NONE);
  expect(await taken(next, await logIn(next))).toEqual(ALL);
});

test("after a restore from a backup it ends what had been ended since", async () => {
  const service = await startService();
  const user = await logIn(service);
  await service.stop();
  const backup = `${service.dataDir}-backup`;
  cpSync(service.dataDir, backup, { recursive: true });
  const running = await service.restart();
  message(await openPublic(running).call(logoutByCookie, {}, cookie(user.refreshToken)));
  await running.stop();
  cpSync(backup, service.dataDir, { recursive: true, force: true });

  const restored = await running.restart();
  onTestFinished(() => restored.stop().then(() => {}));
  const active = async (token: string) =>
    message(await openAdmin(restored).call(admin.introspectToken, { token }, bearer(restored.adminToken))).active;
  expect(await active(user.refreshToken)).toBe(true); // The session was logged out after the backup, and is live again.
  message(await openAdmin(restored).call(admin.revokeAllSessions, {}, bearer(restored.adminToken)));
  expect(await active(user.refreshToken)).toBe(false);
});
