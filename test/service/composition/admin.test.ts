/** The admin RPCs, through every protocol that speaks RPC. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import type { ListSessionsRequestSchema } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { ErrorDetailSchema, SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES, throughEvery } from "../../support/every-protocol.ts";
import { admin, bearer, cookie, logIn, message, openPublic, somebody } from "../../support/sessions.ts";

const { refresh, listSessions } = SessionService.method;
const DAY = 86_400;
const TOKENS = ["first-".repeat(6), "second".repeat(6)] as const;
const header = bearer(TOKENS[0]);
const NOBODY = { sessionId: "A".repeat(23) };
const RESERVED = ["iss", "sub", "aud", "exp", "nbf", "iat", "jti", "sid", "client_id", "cnf", "sct", "sv", "act"];

const badRequest = (field: string) => ({
  ok: false,
  code: "E400_INVALID_REQUEST",
  rpc: "invalid_argument",
  text: expect.stringMatching(new RegExp(`^${field.replaceAll(".", "\\.")}: `)),
});
describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ ADMIN_TOKENS: TOKENS.join(",") }, store);
  /** Returns whether the public API accepts the two tokens of a login. */
  async function accepted(tokens: { readonly refreshToken: string; readonly accessToken: string }): Promise<boolean[]> {
    const listener = openPublic(service);
    const refreshed = await listener.call(refresh, {}, cookie(tokens.refreshToken));
    const listed = await listener.call(listSessions, {}, bearer(tokens.accessToken));
    return [refreshed.ok, listed.ok];
  }

  throughEvery(
    RPC_PROTOCOLS,
    () => service.adminUrl,
    (caller) => {
      describe("authentication", () => {
        test("every admin token is good", async () => {
          for (const token of TOKENS) {
            message(await caller.call(admin.createSession, { subject: somebody() }, bearer(token)));
            message(
              await caller.call(admin.createSession, { subject: somebody() }, { authorization: `bearer ${token}` }),
            );
          }
        });

        test.each([
          ["absent", {}],
          ["wrong", bearer("x".repeat(36))],
          ["a part of a token", bearer(TOKENS[0].slice(0, 35))],
          ["both tokens", bearer(TOKENS.join(","))],
          ["of another scheme", { authorization: `Basic ${TOKENS[0]}` }],
          ["without a scheme", { authorization: TOKENS[0] }],
          ["in a cookie", { cookie: `authorization=${TOKENS[0]}` }],
        ])(
          "a credential that is %s gets the same response, whatever the request",
          async (_, headers: Record<string, string>) => {
            const responses = [
              await caller.call(admin.createSession, { subject: somebody() }, headers),
              await caller.call(admin.createSession, {}, headers),
              await caller.call(admin.createSession, { subject: "x".repeat(70_000) }, headers),
              await caller.call(admin.getSession, NOBODY, headers),
            ];
            for (const response of responses) {
              expect(response).toMatchObject({
                ok: false,
                code: "E001_AUTH_FAILURE",
                rpc: "unauthenticated",
                text: "authentication failed",
              });
              expect(response.headers.get("www-authenticate")).toBe("Bearer");
            }
          },
        );
      });

      describe("CreateSession", () => {
        test("a session is what was asked for, and its tokens work", async () => {
          const wanted = {
            subject: somebody(),
            audiences: ["https://api.example.com", service.publicUrl],
            clientId: "web",
            claims: { roles: ["admin", "user"], tenant: { id: 7, name: "Ünï" }, flag: false, none: null },
            client: { userAgent: "Mozilla/5.0", ipAddress: "2001:db8::1", displayName: "Firefox on Debian" },
            idleTimeout: { seconds: 3600n },
            absoluteLifetime: { seconds: 7200n },
          };
          const created = message(await caller.call(admin.createSession, wanted, header));
          const { subject, audiences, clientId, claims, client } = wanted;
          expect(created.session).toMatchObject({ subject, audiences, clientId, claims, client });
          const { createTime, idleExpireTime, absoluteExpireTime, lastRefreshTime } = created.session ?? {};
          const start = createTime && timestampMs(createTime);
          expect(lastRefreshTime).toEqual(createTime);
          expect(idleExpireTime && timestampMs(idleExpireTime)).toBe(Number(start) + 3_600_000);
          expect(absoluteExpireTime && timestampMs(absoluteExpireTime)).toBe(Number(start) + 7_200_000);
          const payload = JSON.parse(Buffer.from(created.accessToken.split(".")[1] ?? "", "base64url").toString());
          expect(payload).toMatchObject({
            ...claims,
            sub: subject,
            aud: audiences,
            client_id: clientId,
            sid: created.session?.sessionId,
            iss: service.publicUrl,
            exp: created.accessTokenExpireTime && timestampMs(created.accessTokenExpireTime) / 1000,
          });
          expect(created.setCookies).toEqual([created.setCookie]);
          expect(created.setCookie).toBe(
            `refresh_token=${created.refreshToken}; Path=/v1/auth; HttpOnly; Secure; SameSite=Lax; Max-Age=3600`,
          );
          expect(await accepted(created)).toEqual([true, true]);
        });

        test("fields that are not given get the service's defaults", async () => {
          const created = message(await caller.call(admin.createSession, { subject: somebody() }, header));
          expect(created.session).toMatchObject({
            audience: service.publicUrl,
            clientId: service.publicUrl,
            claims: {},
          });
          const { createTime, idleExpireTime, absoluteExpireTime } = created.session ?? {};
          const start = Number(createTime && timestampMs(createTime));
          expect(Number(idleExpireTime && timestampMs(idleExpireTime)) - start).toBe(14 * DAY * 1000);
          expect(Number(absoluteExpireTime && timestampMs(absoluteExpireTime)) - start).toBe(90 * DAY * 1000);
          const exp = Number(created.accessTokenExpireTime && timestampMs(created.accessTokenExpireTime));
          expect((exp - start) / 1000).toBeGreaterThan(300 * 0.8 - 1); // The service shortens the life of an access token by up to 20 %.
          expect((exp - start) / 1000).toBeLessThanOrEqual(300);
        });

        test.each<[string, object]>([
          ["subject", { subject: "" }],
          ["subject", { subject: "é".repeat(128) }],
          ["subject", { subject: "a\nb" }],
          ["audience", { audience: "a".repeat(256) }],
          ["client_id", { clientId: "c".repeat(256) }],
          ["client_id", { clientId: "\u0000" }],
          ["client.user_agent", { client: { userAgent: "u".repeat(513) } }],
          ["client.ip_address", { client: { ipAddress: "1".repeat(65) } }],
          ["client.display_name", { client: { displayName: "d".repeat(129) } }],
          ["claims", { claims: { big: "x".repeat(4096) } }],
          ["idle_timeout", { idleTimeout: { seconds: 0n } }],
          ["idle_timeout", { idleTimeout: { seconds: -1n } }],
          ["idle_timeout", { idleTimeout: { seconds: BigInt(14 * DAY + 1) } }],
          ["idle_timeout", { idleTimeout: { seconds: 315_576_000_000n } }],
          ["absolute_lifetime", { absoluteLifetime: { nanos: 999_999_999 } }],
          ["absolute_lifetime", { absoluteLifetime: { seconds: BigInt(90 * DAY + 1) } }],
          ...RESERVED.map((name): [string, object] => [`claims.${name}`, { claims: { [name]: "x" } }]),
        ])("a bad %s is named, and makes no session", async (field, wanted) => {
          const subject = somebody();
          const response = await caller.call(admin.createSession, { subject, ...wanted }, header);
          expect(response).toMatchObject(badRequest(field));
          expect(message(await caller.call(admin.listSessions, { subject }, header)).sessions).toEqual([]);
        });

        test("the longest of everything is good", async () => {
          const wanted = {
            subject: `${somebody()}${"s".repeat(255 - 44)}`,
            audience: "a".repeat(255),
            clientId: "c".repeat(255),
            client: { userAgent: "u".repeat(512), ipAddress: "1".repeat(64), displayName: "d".repeat(128) },
            claims: { c: "x".repeat(4096 - '{"c":""}'.length) },
            idleTimeout: { seconds: BigInt(14 * DAY) },
            absoluteLifetime: { seconds: BigInt(90 * DAY) },
          };
          const created = message(await caller.call(admin.createSession, wanted, header));
          const sessionId = created.session?.sessionId ?? "";
          const returned = message(await caller.call(admin.getSession, { sessionId }, header)).session;
          expect(returned).toEqual(created.session);
          const token = created.accessToken;
          expect(message(await caller.call(admin.introspectToken, { token }, header)).active).toBe(true);
        });
      });

      test("a message over the limit is refused before it is read", async () => {
        const huge = "x".repeat(70_000);
        const unary = await caller.call(admin.createSession, { subject: huge }, header);
        expect(unary).toMatchObject({ ok: false, code: "E413_TOO_LARGE", rpc: "resource_exhausted" });
        const stream = caller.stream(admin.watchRevocations, { cursor: huge }, header)[Symbol.asyncIterator]();
        const failure = await stream.next().then(
          () => "a batch",
          (error: unknown) => ConnectError.from(error).findDetails(ErrorDetailSchema)[0]?.code,
        );
        expect(failure).toBe("E413_TOO_LARGE");
      });

      describe("GetSession and ListSessions", () => {
        test("a session is returned until it ends", async () => {
          const { sid, subject } = await logIn(service);
          expect(message(await caller.call(admin.getSession, { sessionId: sid }, header)).session).toMatchObject({
            sessionId: sid,
            subject,
          });
          message(await caller.call(admin.revokeSession, { sessionId: sid }, header));
          const gone = await caller.call(admin.getSession, { sessionId: sid }, header);
          expect(gone).toMatchObject({ ok: false, code: "E404_NOT_FOUND", rpc: "not_found" });
          expect(await caller.call(admin.getSession, NOBODY, header)).toMatchObject({
            ok: false,
            code: "E404_NOT_FOUND",
          });
        });

        test("pages of a subject's sessions follow each other without gaps or repeats", async () => {
          const { subject, sid } = await logIn(service);
          const all = [sid];
          for (let i = 0; i < 4; i++) all.push((await logIn(service, { subject })).sid);
          const seen: string[] = [];
          let pageToken = "";
          do {
            const page = message(await caller.call(admin.listSessions, { subject, pageSize: 2, pageToken }, header));
            seen.push(...page.sessions.map(({ sessionId }) => sessionId));
            pageToken = page.nextPageToken;
          } while (pageToken !== "");
          expect(seen.toSorted()).toEqual(all.toSorted());
          expect(message(await caller.call(admin.listSessions, { subject: somebody() }, header)).sessions).toEqual([]);
        });

        test("without a subject the newest sessions of all are listed, and filters choose among them", async () => {
          const clientId = somebody();
          const [a, b] = [await logIn(service, { clientId }), await logIn(service, { clientId })];
          const list = async (wanted: MessageInitShape<typeof ListSessionsRequestSchema>) => {
            const page = message(await caller.call(admin.listSessions, wanted, header));
            return page.sessions.map(({ sessionId }) => sessionId);
          };
          expect((await list({ clientId })).toSorted()).toEqual([a.sid, b.sid].toSorted());
          expect(await list({ clientId, subject: a.subject })).toEqual([a.sid]);
          expect(await list({ clientId, pageSize: 1 })).toHaveLength(1);
          expect((await list({})).length).toBeGreaterThan(1);
          expect(await list({ clientId, device: "no such device" })).toEqual([]);
          expect(await list({ clientId, ipAddress: "192.0.2.99" })).toEqual([]);
          expect(await list({ clientId, subjectPrefix: a.subject.slice(0, -1) })).toEqual([a.sid]);
          const [past, future] = [timestampFromMs(1), timestampFromMs(Date.now() + 3_600_000)];
          expect(await list({ clientId, createdAfter: past, createdBefore: future })).toHaveLength(2);
          expect(await list({ clientId, createdAfter: future })).toEqual([]);
          expect(await list({ clientId, createdBefore: past })).toEqual([]);
        });

        test.each<[string, object]>([
          ["subject", { subject: "\n" }],
          ["client_id", { clientId: "x".repeat(256) }],
          ["device", { device: "\u007f" }],
          ["subject_prefix", { subjectPrefix: "\n" }],
          ["ip_address", { ipAddress: "1".repeat(65) }],
          ["page_size", { pageSize: -1 }],
          ["page_token", { pageToken: "e30" }],
        ])("a bad %s of a list is named", async (field, wanted) => {
          const response = await caller.call(admin.listSessions, { subject: "x", ...wanted }, header);
          expect(response).toMatchObject(badRequest(field));
        });
      });

      describe("RevokeSession and RevokeSubjectSessions", () => {
        test("revoking is idempotent and counts what ended", async () => {
          const user = await logIn(service);
          const revoke = async () => message(await caller.call(admin.revokeSession, { sessionId: user.sid }, header));
          expect((await revoke()).revokedCount).toBe(1);
          expect((await revoke()).revokedCount).toBe(0);
          expect(message(await caller.call(admin.revokeSession, NOBODY, header)).revokedCount).toBe(0);
          expect(await accepted(user)).toEqual([false, false]);
        });

        test("all sessions of a subject end, but the excepted one, and a login afterwards lives", async () => {
          const keep = await logIn(service);
          const { subject } = keep;
          for (let i = 0; i < 3; i++) await logIn(service, { subject });
          const stranger = await logIn(service);
          const revoke = async (exceptSessionId?: string) =>
            message(
              await caller.call(
                admin.revokeSubjectSessions,
                { subject, exceptSessionId: exceptSessionId ?? "" },
                header,
              ),
            ).revokedCount;
          expect(await revoke(keep.sid)).toBe(3);
          expect(await revoke(keep.sid)).toBe(0);
          expect(await revoke()).toBe(1);
          expect(await revoke()).toBe(0);
          const later = await logIn(service, { subject });
          const left = message(await caller.call(admin.listSessions, { subject }, header)).sessions;
          expect(left.map(({ sessionId }) => sessionId)).toEqual([later.sid]);
          message(await caller.call(admin.getSession, { sessionId: stranger.sid }, header));
        });

        test("bad ids are named", async () => {
          for (const sessionId of ["", "nonsense", `${NOBODY.sessionId}A`, `${"A".repeat(22)}B`]) {
            for (const response of [
              await caller.call(admin.revokeSession, { sessionId }, header),
              await caller.call(admin.getSession, { sessionId }, header),
            ]) {
              expect(response).toMatchObject(badRequest("session_id"));
            }
          }
          const wanted = { subject: "x", exceptSessionId: "nonsense" };
          const response = await caller.call(admin.revokeSubjectSessions, wanted, header);
          expect(response).toMatchObject(badRequest("except_session_id"));
          expect(await caller.call(admin.revokeSubjectSessions, {}, header)).toMatchObject({
            code: "E400_INVALID_REQUEST",
          });
        });
      });
    },
  );
});
