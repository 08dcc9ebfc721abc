/** The cookie with the access token is set and cleared together with the refresh cookie, through every protocol. */
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { Transport } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { aService, throughEvery } from "../../support/every-protocol.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../../support/sessions.ts";

const { refresh, logoutByCookie, listSessions } = SessionService.method;
const service = aService({ ACCESS_COOKIE: "access_token", COOKIE_PATH: "/" });
const SET = /^access_token=([\w.-]+); Path=\/; HttpOnly; Secure; SameSite=Lax; Max-Age=(\d+)$/;

throughEvery(
  PUBLIC_PROTOCOLS,
  () => service.publicUrl,
  (caller) => {
    test("a refresh sets it to the access token of the response, for its life", async () => {
      const user = await logIn(service);
      const response = await caller.call(refresh, {}, cookie(user.refreshToken));
      const [, token = "", maxAge] = SET.exec(response.headers.getSetCookie()[1] ?? "") ?? [];
      const { data } = message(response);
      expect(token).toBe(data?.accessToken);
      const { iat, exp } = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
      expect(Number(maxAge)).toBeLessThanOrEqual(exp - iat);
      expect(Number(maxAge)).toBeGreaterThan(exp - iat - 60);
    });

    test("a logout clears it, and a refusal does not", async () => {
      const user = await logIn(service);
      expect((await caller.call(refresh, {}, cookie("x"))).headers.getSetCookie()).toEqual([]);
      const response = await caller.call(logoutByCookie, {}, cookie(user.refreshToken));
      expect(response.headers.getSetCookie()[1]).toBe(
        "access_token=; Path=/; HttpOnly; Secure; SameSite=Lax; Max-Age=0",
      );
    });

    test("is no credential for the service's own routes: a page elsewhere cannot use it", async () => {
      const user = await logIn(service);
      const response = await caller.call(listSessions, {}, { cookie: `access_token=${user.accessToken}` });
      expect(response.ok).toBe(false);
      expect((await caller.call(listSessions, {}, bearer(user.accessToken))).ok).toBe(true);
    });
  },
);

test("CreateSession returns it with the other cookies", async () => {
  const created = await openAdmin(service).call(admin.createSession, { subject: "a" }, bearer(service.adminToken));
  const { setCookies, accessToken } = message(created);
  expect(SET.exec(setCookies[1] ?? "")?.[1]).toBe(accessToken);
});

describe("one that browsers would drop", () => {
  const MAX_BYTES = 4_096;
  const bytesOf = (length: number) => ({ subject: "a", claims: { text: "x".repeat(length) } });
  const create = (request: object, to = service) =>
    openAdmin(to).call(admin.createSession, request, bearer(to.adminToken));

  test("is refused where it would be made, with its size and what takes it", async () => {
    let [fits, tooLong] = [0, 4_000];
    while (tooLong - fits > 1) {
      const length = Math.floor((fits + tooLong) / 2);
      if ((await create(bytesOf(length))).ok) fits = length;
      else tooLong = length;
    }
    const largest = message(await create(bytesOf(fits - 8))).setCookies[1]?.length;
    expect(largest).toBeLessThanOrEqual(MAX_BYTES);
    expect(largest).toBeGreaterThan(MAX_BYTES - 100);
    const refused = await create(bytesOf(tooLong + 8));
    expect(refused).toMatchObject({ ok: false, code: "E400_INVALID_REQUEST" });
    expect(!refused.ok && refused.text).toMatch(
      /^claims: the access cookie would have 4[01]\d\d bytes .*\d+ bytes of claims$/,
    );
    const session = message(await create(bytesOf(fits - 8))).session;
    const elevation = {
      sessionId: session?.sessionId ?? "",
      authTime: timestampFromMs(Date.now()),
      amr: Array(8).fill("m".repeat(32)),
    };
    expect(await openAdmin(service).call(admin.elevateSession, elevation, bearer(service.adminToken))).toMatchObject({
      ok: false,
      code: "E400_INVALID_REQUEST",
    });
  });

  test("is none where no such cookie is made", async () => {
    const user = await create({ ...bytesOf(3_900), transport: Transport.TOKEN });
    expect(message(user).setCookies).toEqual([]);
  });
});
