/** Status lists over HTTP, and the claim by which access tokens refer to them, in the real service. */
import { inflateSync } from "node:zlib";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { createRemoteJWKSet, decodeJwt, jwtVerify } from "jose";
import { describe, expect, onTestFinished, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { createVerifier } from "../../../src/verifier/index.ts";
import { createVerifier as createWebVerifier } from "../../../src/verifier/web/index.ts";
import { aService } from "../../support/every-protocol.ts";
import { admin, bearer, cookie, type LoggedIn, logIn, message, openAdmin, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

type Status = { readonly status: { readonly status_list: { readonly idx: number; readonly uri: string } } };

const TYPE = "application/statuslist+jwt";

describe("with STATUS_LIST", () => {
  const service = aService({ STATUS_LIST: "on" });

  const statusOf = (accessToken: string) => decodeJwt<Status>(accessToken).status.status_list;

  async function isListed(accessToken: string): Promise<boolean> {
    const { idx, uri } = statusOf(accessToken);
    const keys = createRemoteJWKSet(new URL("/.well-known/jwks.json", service.publicUrl));
    const token = await (await fetch(uri)).text();
    const { payload } = await jwtVerify<{ status_list: { lst: string } }>(token, keys, { typ: "statuslist+jwt" });
    expect(payload.sub).toBe(uri);
    const bytes = inflateSync(Buffer.from(payload.status_list.lst, "base64url"));
    return ((bytes[idx >> 3] ?? 0) & (1 << (idx & 7))) !== 0;
  }

  test("each token of a session refers to the same place, which has the end of the session", async () => {
    const user = await logIn(service);
    const other = await logIn(service);
    expect(statusOf(user.accessToken).uri).toBe(statusOf(other.accessToken).uri);
    expect(statusOf(user.accessToken).idx).not.toBe(statusOf(other.accessToken).idx);
    const refreshed = await openPublic(service).call(SessionService.method.refresh, {}, cookie(user.refreshToken));
    const { accessToken = "" } = message(refreshed).data ?? {};
    expect(statusOf(accessToken)).toEqual(statusOf(user.accessToken));
    expect([await isListed(accessToken), await isListed(other.accessToken)]).toEqual([false, false]);
    message(await openPublic(service).call(SessionService.method.logout, {}, bearer(accessToken)));
    await until(async () => expect(await isListed(accessToken)).toBe(true));
    expect(await isListed(other.accessToken)).toBe(false);
  });

  test("the end of all sessions revokes every token before it, and none after it", async () => {
    const before = await logIn(service);
    message(await openAdmin(service).call(admin.revokeAllSessions, {}, bearer(service.adminToken)));
    await until(async () => expect(await isListed(before.accessToken)).toBe(true));
    const after = await logIn(service);
    expect(await isListed(after.accessToken)).toBe(false);
  });

  test("the end of earlier sessions alone lists the tokens of later ones, too, until these are refreshed", async () => {
    const createdAt = ({ accessToken }: LoggedIn) => decodeJwt<{ sct: number }>(accessToken).sct;
    const earlier = await logIn(service);
    const user = await until(async () => {
      const later = await logIn(service);
      expect(createdAt(later)).toBeGreaterThan(createdAt(earlier));
      return later;
    });
    const issuedBefore = timestampFromMs(createdAt(user));
    message(await openAdmin(service).call(admin.revokeAllSessions, { issuedBefore }, bearer(service.adminToken)));
    await until(async () => expect(await isListed(user.accessToken)).toBe(true));
    const refreshed = await openPublic(service).call(SessionService.method.refresh, {}, cookie(user.refreshToken));
    expect(await isListed(message(refreshed).data?.accessToken ?? "")).toBe(false);
  });

  test.each([
    ["Node", createVerifier],
    ["WebCrypto", createWebVerifier],
  ])(
    "a verifier on %s needs nothing but the public API to see a logout and the end of all sessions",
    async (_, create) => {
      const issuer = new URL(service.publicUrl).origin;
      const verifier = create({
        ...{ issuer, audience: issuer, jwksUrl: `${issuer}/.well-known/jwks.json` },
        ...{ revocations: "status-list", pollIntervalMs: 20 },
      });
      onTestFinished(() => verifier.close());
      const [user, other] = [await logIn(service), await logIn(service)];
      const verdictOf = async ({ accessToken }: LoggedIn) => {
        const verdict = await verifier.verify(accessToken);
        return verdict.ok ? "ok" : verdict.reason;
      };
      expect([await verdictOf(user), await verdictOf(other)]).toEqual(["ok", "ok"]);
      message(await openPublic(service).call(SessionService.method.logout, {}, bearer(user.accessToken)));
      await until(async () => expect(await verdictOf(user)).toBe("revoked"));
      expect(await verdictOf(other)).toBe("ok");
      message(await openAdmin(service).call(admin.revokeAllSessions, {}, bearer(service.adminToken)));
      await until(async () => expect(await verdictOf(other)).toBe("revoked"));
      const later = await logIn(service);
      expect(await verdictOf(later)).toBe("ok");
    },
  );

  test("a session cannot have a claim `status` of its own", async () => {
    await expect(logIn(service, { claims: { status: "gold", plan: "pro" } })).rejects.toThrow(
      "claims.status: is a reserved claim",
    );
  });

  test("the service itself is no watcher of its feed", async () => {
    await until(async () => expect(await isListed((await logIn(service)).accessToken)).toBe(false));
    const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
    expect(/^session_feed_watchers (\d+)$/m.exec(metrics)?.[1]).toBe("0");
  });

  test("lists can be cached, and are confirmed by their entity tag", async () => {
    const { uri } = statusOf((await logIn(service)).accessToken);
    const full = await fetch(uri, { headers: { accept: TYPE } });
    const etag = full.headers.get("etag") ?? "";
    expect([full.status, full.headers.get("content-type"), full.headers.get("access-control-allow-origin")]).toEqual([
      ...[200, TYPE, "*"],
    ]);
    expect(full.headers.get("cache-control")).toMatch(/^public, max-age=([1-9]|10)$/);
    const head = await fetch(uri, { method: "HEAD" });
    expect([head.status, await head.text()]).toEqual([200, ""]);
    await until(async () => {
      const current = (await fetch(uri)).headers.get("etag") ?? etag;
      const again = await fetch(uri, { headers: { "if-none-match": `"x", ${current}` } });
      expect([again.status, await again.text()]).toEqual([304, ""]);
    });
  });

  test("a verifier in a browser may fetch and revalidate lists, from any origin", async () => {
    const { uri } = statusOf((await logIn(service)).accessToken);
    const preflight = await fetch(uri, {
      method: "OPTIONS",
      headers: {
        origin: "https://app.example",
        "access-control-request-method": "GET",
        "access-control-request-headers": "if-none-match",
      },
    });
    expect([preflight.status, Object.fromEntries(preflight.headers)]).toEqual([
      204,
      expect.objectContaining({
        "access-control-allow-origin": "*",
        "access-control-allow-headers": "If-None-Match",
      }),
    ]);
    expect((await fetch(uri)).headers.get("access-control-allow-origin")).toBe("*");
  });

  test.each([
    ["another form", 406, "", { headers: { accept: "application/statuslist+cwt" } }],
    ["no form at all", 406, "", { headers: { accept: `${TYPE};q=0` } }],
    ["one form of several", 200, "", { headers: { accept: `application/statuslist+cwt, ${TYPE};q=0.5` } }],
    ["the past", 501, "?time=1700000000", {}],
    ["another method", 405, "", { method: "POST" }],
    ["what a method may be", 204, "", { method: "OPTIONS" }],
    ["another name", 404, "/x", {}],
  ])("a request for %s: %i", async (_, status, suffix, init) => {
    const { uri } = statusOf((await logIn(service)).accessToken);
    expect((await fetch(uri + suffix, init)).status).toBe(status);
  });
});

describe("without STATUS_LIST", () => {
  const service = aService();

  test("tokens refer to no list, and there is none", async () => {
    const { accessToken } = await logIn(service, { claims: { status: "gold" } });
    expect(decodeJwt(accessToken).status).toBe("gold");
    expect((await fetch(`${service.publicUrl}/v1/status-lists/abcdefgh`)).status).toBe(404);
  });
});
