/** Lists and ends the sessions of a user, through every protocol. */
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { bearer, cookie, logIn, message } from "../../support/sessions.ts";

const { refresh, listSessions, revokeSession, revokeOtherSessions } = SessionService.method;
const REFUSED = { ok: false, code: "E001_AUTH_FAILURE" };

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({}, store);
  throughEvery(
    PUBLIC_PROTOCOLS,
    () => service.publicUrl,
    (caller) => {
      async function threeOf(subject?: string) {
        const first = await logIn(service, subject === undefined ? {} : { subject });
        const again = { subject: first.subject };
        return [first, await logIn(service, again), await logIn(service, again)] as const;
      }

      test("the caller sees its own live sessions, newest first, the asking one marked", async () => {
        const client = { userAgent: "curl/8", ipAddress: "192.0.2.1", displayName: "Ådas laptop" };
        const [one, two] = await threeOf();
        const mine = await logIn(service, { subject: one.subject, client });
        await logIn(service); // A session of another user, which must not be listed.
        const response = await caller.call(listSessions, {}, bearer(mine.accessToken));
        const { data } = message(response);
        expect(data?.sessions).toHaveLength(4);
        expect(data?.nextPageToken).toBe("");
        const created = data?.sessions.map(({ createTime }) => createTime && timestampMs(createTime)) ?? [];
        expect(created).toEqual(created.toSorted((a, b) => Number(b) - Number(a)));
        const ids = data?.sessions.map(({ sessionId }) => sessionId);
        expect(ids).toEqual(expect.arrayContaining([one.sid, two.sid, mine.sid]));
        expect(data?.sessions.filter(({ current }) => current)).toMatchObject([{ sessionId: mine.sid, ...client }]);
        expect(response.headers.get("cache-control")).toBe("no-store");
      });

      test("pages follow each other without gaps or repeats", async () => {
        const all = await threeOf();
        const seen: string[] = [];
        let pageToken = "";
        do {
          const page = message(
            await caller.call(listSessions, { pageSize: 2, pageToken }, bearer(all[0].accessToken)),
          ).data;
          expect(page?.sessions.length).toBeLessThanOrEqual(2);
          seen.push(...(page?.sessions.map(({ sessionId }) => sessionId) ?? []));
          pageToken = page?.nextPageToken ?? "";
        } while (pageToken !== "");
        expect(seen.toSorted()).toEqual(all.map(({ sid }) => sid).toSorted());
      });

      test.each([
        ["page_size", { pageSize: -1 }],
        ["page_token", { pageToken: "nonsense" }],
      ])("a bad %s is named (%o)", async (field, input) => {
        const { accessToken } = await logIn(service);
        const response = await caller.call(listSessions, input, bearer(accessToken));
        expect(response).toMatchObject({
          ok: false,
          code: "E400_INVALID_REQUEST",
          text: expect.stringContaining(field),
        });
      });

      test("a revoked session is dead, for both of its tokens", async () => {
        const [mine, old] = await threeOf();
        message(await caller.call(revokeSession, { sessionId: old.sid }, bearer(mine.accessToken)));
        expect(await caller.call(refresh, {}, cookie(old.refreshToken))).toMatchObject(REFUSED);
        expect(await caller.call(listSessions, {}, bearer(old.accessToken))).toMatchObject(REFUSED);
        message(await caller.call(refresh, {}, cookie(mine.refreshToken)));
      });

      test("an id that is not of a live session of the caller is not found, of any user", async () => {
        const [mine, old] = await threeOf();
        const stranger = await logIn(service);
        message(await caller.call(revokeSession, { sessionId: old.sid }, bearer(mine.accessToken)));
        const unknown = `${mine.sid.slice(0, 5)}AAAAA${mine.sid.slice(10)}`;
        for (const sessionId of [stranger.sid, old.sid, unknown, "nonsense", "%2e%2e", "a b"]) {
          const response = await caller.call(revokeSession, { sessionId }, bearer(mine.accessToken));
          expect(response, sessionId).toMatchObject({ ok: false, code: "E404_NOT_FOUND", text: "not found" });
        }
        message(await caller.call(refresh, {}, cookie(stranger.refreshToken)));
      });

      test("a caller may revoke the session that asks", async () => {
        const mine = await logIn(service);
        message(await caller.call(revokeSession, { sessionId: mine.sid }, bearer(mine.accessToken)));
        for (const sessionId of [mine.sid, "nonsense"]) {
          expect(await caller.call(revokeSession, { sessionId }, bearer(mine.accessToken))).toMatchObject(REFUSED);
        }
      });

      test("revoking the others leaves the asking session, and counts", async () => {
        const [mine, ...others] = await threeOf();
        const stranger = await logIn(service);
        const count = async () =>
          message(await caller.call(revokeOtherSessions, {}, bearer(mine.accessToken))).data?.revokedCount;
        expect(await count()).toBe(2);
        expect(await count()).toBe(0);
        for (const { refreshToken } of others) {
          expect(await caller.call(refresh, {}, cookie(refreshToken))).toMatchObject(REFUSED);
        }
        message(await caller.call(refresh, {}, cookie(mine.refreshToken)));
        message(await caller.call(refresh, {}, cookie(stranger.refreshToken)));
      });
    },
  );
});
