/** Mistakes of an integration that responses alone do not show are in the log. */
import { expect, test, vi } from "vitest";
import { CookieAdvice } from "../../../src/service/observability/cookie-advice.ts";
import { aService } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { waitFor } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";

const service = aService({ COOKIE_NAME: "rt", COOKIE_PATH: "/session/v1/auth" });
const lines = (event: string) =>
  service
    .stderr()
    .split("\n")
    .flatMap((line) => (line.startsWith("{") ? [JSON.parse(line) as Record<string, unknown>] : []))
    .filter((line) => line.event === event);
const recorded = (event: string) => waitFor(service, () => lines(event)[0]);

test("refreshes without the cookie after a login are reported once", async () => {
  const refresh = (headers: Record<string, string>) =>
    request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers });
  expect((await refresh({})).status).toBe(401);
  const { refreshToken } = await logIn(service);
  for (let at = 0; at < 3; at++) expect((await refresh({ cookie: "other=1" })).status).toBe(401);
  expect(await recorded("refresh_without_cookie")).toMatchObject({
    level: "warn",
    cookieName: "rt",
    path: "/session/v1/auth",
    causes: expect.stringContaining("credentials: include"),
  });
  expect((await refresh({ cookie: `rt=${refreshToken}` })).status).toBe(200);
  expect(lines("refresh_without_cookie")).toHaveLength(1);
});

test("a page that calls the admin API is reported", async () => {
  const preflight = { origin: "http://localhost:3000", "access-control-request-method": "POST" };
  for (let at = 0; at < 3; at++)
    await request(service.adminUrl, {
      method: "OPTIONS",
      path: "/auth.admin.v1.SessionAdminService/X",
      headers: preflight,
    });
  expect(await recorded("page_calls_admin_api")).toMatchObject({ level: "warn", origin: "http://localhost:3000" });
  expect(lines("page_calls_admin_api")).toHaveLength(1);
});

test("visitors who are not signed in cause no report beside users who are, nor without any login", () => {
  let nowMs = 0;
  const warn = vi.fn();
  const advice = new CookieAdvice({ name: "rt", path: "/v1/auth", domain: undefined }, { warn }, () => nowMs);
  const visit = () => advice.noteMissing();
  for (let at = 0; at < 1000; at++) visit();
  for (let minute = 0; minute < 60; minute++) {
    nowMs = minute * 60_000;
    advice.created++;
    advice.renewed++;
    for (let at = 0; at < 100; at++) visit();
  }
  expect(warn).not.toHaveBeenCalled();
  nowMs += 60_000;
  visit();
  advice.created++;
  for (let at = 0; at < 100; at++) visit();
  expect(warn).toHaveBeenCalledTimes(1);
});
