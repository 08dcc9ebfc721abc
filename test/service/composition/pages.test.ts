/** The pages of both listeners that are not RPCs: health, keys, metrics. */
import { describe, expect, test } from "vitest";
import { aService } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const service = aService();

const listeners = [
  ["public", () => service.publicUrl],
  ["admin", () => service.adminUrl],
] as const;

describe.each(listeners)("of the %s listener", (_, url) => {
  test.each(["/healthz", "/readyz"])("%s responds, whatever the query", async (path) => {
    for (const wanted of [
      { path },
      { path: `${path}?verbose=1` },
      { path, headers: { origin: "https://evil.example" } },
    ]) {
      const response = await request(url(), wanted);
      expect([response.status, response.body]).toEqual([200, "ok\n"]);
    }
    const head = await request(url(), { method: "HEAD", path });
    expect([head.status, head.body, head.headers.get("content-length")]).toEqual([200, "", "3"]);
    const options = await request(url(), { method: "OPTIONS", path });
    expect([options.status, options.headers.get("allow")]).toEqual([204, "GET, HEAD, OPTIONS"]);
    const post = await request(url(), { method: "POST", path });
    expect([post.status, post.headers.get("allow")]).toEqual([405, "GET, HEAD, OPTIONS"]);
  });

  test("the key set has public keys only, and may be cached", async () => {
    const response = await request(url(), { path: "/.well-known/jwks.json" });
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(response.headers.get("cache-control")).toBe("public, max-age=300");
    const { keys } = JSON.parse(response.body) as { keys: Record<string, string>[] };
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) {
      expect(key).toMatchObject({ kty: "EC", crv: "P-256", alg: "ES256", use: "sig", kid: expect.any(String) });
      expect(Object.keys(key).sort()).toEqual(["alg", "crv", "kid", "kty", "use", "x", "y"]);
    }
  });
});

test("metrics are on the admin API alone", async () => {
  await logIn(service);
  const read = () => request(service.adminUrl, { path: "/metrics" });
  expect((await read()).headers.get("content-type")).toMatch(/^text\/plain/);
  // A session is counted when its creation is written to the log. That may happen after the response to CreateSession.
  await until(async () => expect((await read()).body).toMatch(/^session_created_total [1-9]/m));
});

test("the admin API has no session routes of browsers", async () => {
  for (const path of ["/v1/auth/refresh", "/auth.v1.SessionService/Refresh", "/nowhere"]) {
    expect((await request(service.adminUrl, { method: "POST", path })).status).toBe(404);
  }
});
