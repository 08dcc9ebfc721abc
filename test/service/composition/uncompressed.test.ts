/** Responses are never compressed: tokens do not become smaller, and compressing them with other data can reveal them (BREACH). */
import { afterAll, beforeAll, expect, test } from "vitest";
import { request } from "../../support/raw-http.ts";
import { type Service, startService } from "../../support/service.ts";
import { bearer, cookie, logIn } from "../../support/sessions.ts";

let service: Service;
beforeAll(async () => {
  service = await startService();
});
afterAll(() => service.stop());

/** Makes responses so long that frameworks with default settings would compress them. */
const claims = { wordy: "very ".repeat(400) };
const willing = { "accept-encoding": "gzip", "content-type": "application/json" };

test.each(["/v1/auth/refresh", "/auth.v1.SessionService/Refresh"])("%s", async (path) => {
  const { refreshToken } = await logIn(service, { claims });
  const headers = { ...willing, ...cookie(refreshToken) };
  const response = await request(service.publicUrl, { method: "POST", path, headers, body: "{}" });
  expect(JSON.parse(response.body).data.accessToken.length).toBeGreaterThan(2_000);
  expect(response.headers.get("content-encoding")).toBeNull();
});

test("/auth.admin.v1.SessionAdminService/CreateSession", async () => {
  const response = await request(service.adminUrl, {
    method: "POST",
    path: "/auth.admin.v1.SessionAdminService/CreateSession",
    headers: { ...willing, ...bearer(service.adminToken) },
    body: JSON.stringify({ subject: "alice", claims }),
  });
  expect(JSON.parse(response.body).accessToken.length).toBeGreaterThan(2_000);
  expect(response.headers.get("content-encoding")).toBeNull();
});
