/** The origins from which a browser may call: cross-site defence through every protocol, and CORS. */
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { PUBLIC_PROTOCOLS } from "../../support/clients.ts";
import { aService, throughEvery } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../../support/sessions.ts";

const { refresh, logout, logoutByCookie, listSessions, revokeSession, revokeOtherSessions } = SessionService.method;
const APP = "https://app.example.com";
const OTHER = "https://other.example.com:8443";
const service = aService({ ALLOWED_ORIGINS: `${APP},${OTHER}` });

type Headers = Readonly<Record<string, string>>;

throughEvery(
  PUBLIC_PROTOCOLS,
  () => service.publicUrl,
  (caller) => {
    test.each<[string, () => Headers]>([
      ["no browser", () => ({})],
      ["the own origin", () => ({ "sec-fetch-site": "same-origin", origin: service.publicUrl })],
      ["the own page, which hides its origin", () => ({ "sec-fetch-site": "same-origin", origin: "null" })],
      ["the own page behind a proxy", () => ({ "sec-fetch-site": "same-origin", origin: "https://public.example" })],
      ["the address bar", () => ({ "sec-fetch-site": "none" })],
      ["a sibling", () => ({ "sec-fetch-site": "same-site", origin: APP })],
      ["an allowed origin", () => ({ origin: OTHER })],
    ])("a request from %s is served", async (_, headers) => {
      const user = await logIn(service);
      message(await caller.call(refresh, {}, { ...cookie(user.refreshToken), ...headers() }));
      message(await caller.call(logout, {}, { ...bearer(user.accessToken), ...headers() }));
    });

    test.each<[string, Headers]>([
      ["another site", { "sec-fetch-site": "cross-site" }],
      ["another site that claims an allowed origin", { "sec-fetch-site": "cross-site", origin: APP }],
      ["a site of a kind that nobody knows", { "sec-fetch-site": "same-planet" }],
      ["a foreign origin", { origin: "https://evil.example" }],
      ["a foreign origin on a sibling", { "sec-fetch-site": "same-site", origin: "https://evil.example.com" }],
      ["an opaque origin", { origin: "null" }],
      ["the own host on another port", { origin: "http://127.0.0.1:1" }],
      ["the own host in another scheme", { origin: "https://127.0.0.1" }],
      ["an allowed origin in other letters", { origin: APP.toUpperCase() }],
      ["an origin that begins as an allowed one", { origin: `${APP}.evil.example` }],
    ])("a request from %s is refused and changes nothing", async (_, headers) => {
      const user = await logIn(service);
      const other = await logIn(service, { subject: user.subject });
      const credentials = { ...cookie(user.refreshToken), ...bearer(user.accessToken), ...headers };
      for (const response of [
        await caller.call(refresh, {}, credentials),
        await caller.call(logout, {}, credentials),
        await caller.call(logoutByCookie, {}, credentials),
        await caller.call(listSessions, {}, credentials),
        await caller.call(revokeSession, { sessionId: other.sid }, credentials),
        await caller.call(revokeOtherSessions, {}, credentials),
      ]) {
        expect(response).toMatchObject({ ok: false, code: "E403_FORBIDDEN" });
        expect(response.headers.getSetCookie()).toEqual([]);
      }
      const { sessions } = message(
        await openAdmin(service).call(admin.listSessions, { subject: user.subject }, bearer(service.adminToken)),
      );
      expect(sessions).toHaveLength(2);
      for (const session of sessions) expect(session.lastRefreshTime).toEqual(session.createTime);
    });

    test("it is refused before any credential is read", async () => {
      const headers = { ...cookie("nonsense"), ...bearer("nonsense"), "sec-fetch-site": "cross-site" };
      for (const response of [await caller.call(refresh, {}, headers), await caller.call(logout, {}, headers)]) {
        expect(response).toMatchObject({ ok: false, code: "E403_FORBIDDEN" });
        expect(response.headers.get("www-authenticate")).toBeNull();
      }
    });
  },
);

describe("with siblings not allowed", () => {
  const strict = aService({ ALLOW_SAME_SITE: "false" });
  throughEvery(
    PUBLIC_PROTOCOLS,
    () => strict.publicUrl,
    (caller) => {
      test("a sibling is refused", async () => {
        const user = await logIn(strict);
        const headers = { ...cookie(user.refreshToken), "sec-fetch-site": "same-site" };
        expect(await caller.call(refresh, {}, headers)).toMatchObject({ ok: false, code: "E403_FORBIDDEN" });
        message(await caller.call(refresh, {}, { ...cookie(user.refreshToken), "sec-fetch-site": "same-origin" }));
      });
    },
  );
});

describe("with cookies that cross sites (SameSite=None)", () => {
  const open = aService({ COOKIE_SAMESITE: "None", ALLOWED_ORIGINS: APP });
  throughEvery(
    PUBLIC_PROTOCOLS,
    () => open.publicUrl,
    (caller) => {
      test("an allowed origin may call from another site, and nobody else", async () => {
        const user = await logIn(open);
        const from = { ...cookie(user.refreshToken), "sec-fetch-site": "cross-site" };
        for (const headers of [from, { ...from, origin: OTHER }, { ...from, origin: open.publicUrl }]) {
          expect(await caller.call(refresh, {}, headers)).toMatchObject({ ok: false, code: "E403_FORBIDDEN" });
        }
        const response = await caller.call(refresh, {}, { ...from, origin: APP });
        message(response);
        expect(response.headers.getSetCookie()[0]).toContain("; Secure; SameSite=None;");
      });
    },
  );
});

describe("behind a trusted proxy that ends TLS", () => {
  const behind = aService({ TRUST_PROXY: "1" });
  throughEvery(
    PUBLIC_PROTOCOLS,
    () => behind.publicUrl,
    (caller) => {
      test("the own origin is https for requests that a trusted proxy received over https", async () => {
        const user = await logIn(behind);
        const secure = behind.publicUrl.replace("http:", "https:");
        const from = { ...cookie(user.refreshToken), origin: secure };
        message(await caller.call(refresh, {}, { ...from, "x-forwarded-proto": "https" }));
        message(await caller.call(refresh, {}, { ...from, "x-forwarded-proto": "http, https" }));
        for (const headers of [from, { ...from, "x-forwarded-proto": "https, http" }]) {
          expect(await caller.call(refresh, {}, headers)).toMatchObject({ ok: false, code: "E403_FORBIDDEN" });
        }
      });
    },
  );
});

describe("patterns of origins", () => {
  const patterns = aService({
    COOKIE_SAMESITE: "None",
    ALLOWED_ORIGINS: "https://*.example.com,http://localhost:*,capacitor://localhost",
  });

  test.each([
    ["https://a.example.com", 401],
    ["http://localhost:5173", 401],
    ["capacitor://localhost", 401],
    ["https://example.com", 403],
    ["https://a.example.com.evil.net", 403],
    ["capacitor://other", 403],
  ])("%s: status %i, and CORS agrees", async (origin, expected) => {
    const headers = { origin, "sec-fetch-site": "cross-site", "content-type": "application/json" };
    const response = await request(patterns.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers });
    expect(response.status).toBe(expected);
    expect(response.headers.get("access-control-allow-origin")).toBe(expected === 403 ? null : origin);
  });
});

describe("CORS", () => {
  const PATHS = [
    ["POST", "/v1/auth/refresh"],
    ["DELETE", "/v1/auth/logout"],
    ["GET", "/v1/auth/sessions"],
    ["POST", "/auth.v1.SessionService/Refresh"],
  ] as const;
  const varies = (headers: globalThis.Headers) => (headers.get("vary") ?? "").split(/, */);

  test.each(PATHS)("a preflight for %s %s from an allowed origin succeeds", async (method, path) => {
    const response = await request(service.publicUrl, {
      method: "OPTIONS",
      path,
      headers: {
        origin: APP,
        "access-control-request-method": method,
        "access-control-request-headers": "authorization,content-type,connect-protocol-version,dpop",
        "sec-fetch-site": "cross-site",
      },
    });
    expect(response.status).toBe(204);
    expect(response.headers.get("access-control-allow-origin")).toBe(APP);
    expect(response.headers.get("access-control-allow-credentials")).toBe("true");
    expect(response.headers.get("access-control-allow-methods")?.split(", ")).toContain(method);
    const allowed = response.headers.get("access-control-allow-headers")?.toLowerCase().split(", ");
    expect(allowed).toEqual(
      expect.arrayContaining(["authorization", "content-type", "connect-protocol-version", "dpop"]),
    );
    expect(varies(response.headers)).toEqual(
      expect.arrayContaining(["Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers"]),
    );
  });

  const preflight = async (asked: string) => {
    const headers = { origin: APP, "access-control-request-method": "POST", "access-control-request-headers": asked };
    const { headers: allowed } = await request(service.publicUrl, { method: "OPTIONS", path: PATHS[0][1], headers });
    return allowed.get("access-control-allow-headers")?.split(", ");
  };

  test("a preflight allows what tracing libraries add", async () => {
    const added = ["baggage", "content-type", "sentry-trace", "traceparent", "tracestate", "x-requested-with"];
    expect(await preflight(added.join(","))).toEqual(added);
  });

  test.each([
    ["no token", "traceparent,a b"],
    ["an empty name", "traceparent,,a"],
    ["too many names", Array.from({ length: 65 }, (_, index) => `traceparent${index}`).join(",")],
    ["too long a text", `traceparent,${"a".repeat(2_048)}`],
  ])("a preflight that asks for %s gets the headers of the API alone", async (_, asked) => {
    const allowed = await preflight(asked);
    expect(allowed).toContain("Authorization");
    expect(allowed?.filter((name) => name.startsWith("traceparent"))).toEqual([]);
  });

  test.each(["https://evil.example", "null", `${APP}:443`, `${APP}/`, "*"])(
    "an origin of %s is allowed nothing, and the response has Vary all the same",
    async (origin) => {
      for (const method of ["OPTIONS", "POST"]) {
        const headers = { origin, "access-control-request-method": "POST" };
        const response = await request(service.publicUrl, { method, path: "/v1/auth/refresh", headers });
        expect([...response.headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
        expect(varies(response.headers)).toContain("Origin");
      }
    },
  );

  test("responses of every kind may be read by the requesting origin, and by no other", async () => {
    const user = await logIn(service);
    for (let i = 0; i < 9; i++) await logIn(service, { subject: user.subject });
    const from = { origin: APP };
    const responses = [
      await request(service.publicUrl, {
        method: "POST",
        path: "/v1/auth/refresh",
        headers: { ...from, ...cookie(user.refreshToken) },
      }),
      await request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers: from }),
      await request(service.publicUrl, { path: "/v1/auth/refresh", headers: from }),
      await request(service.publicUrl, { path: "/nowhere", headers: from }),
      await request(service.publicUrl, {
        path: "/v1/auth/sessions",
        headers: { ...from, ...bearer(user.accessToken) },
      }),
      await request(service.publicUrl, {
        path: "/v1/auth/sessions",
        headers: { ...from, ...bearer(user.accessToken), "accept-encoding": "gzip" },
      }),
      await request(service.publicUrl, {
        path: `/auth.v1.SessionService/ListSessions?connect=v1&encoding=json&message=%7B%7D`,
        headers: { ...from, ...bearer(user.accessToken), "accept-encoding": "gzip" },
      }),
      await request(service.publicUrl, {
        method: "POST",
        path: "/auth.v1.SessionService/Refresh",
        headers: { ...from, "content-type": "application/json" },
        body: "{}",
      }),
    ];
    expect(responses.map(({ status }) => status)).toEqual([200, 401, 405, 404, 200, 200, 200, 401]);
    for (const { headers } of responses) {
      expect(headers.get("access-control-allow-origin")).toBe(APP);
      expect(headers.get("access-control-allow-credentials")).toBe("true");
      const exposed = headers.get("access-control-expose-headers")?.split(", ");
      expect(exposed).toEqual(
        expect.arrayContaining([
          ...["Retry-After", "WWW-Authenticate", "Secure-Session-Registration", "Secure-Session-Challenge"],
          "DPoP-Nonce",
        ]),
      );
      expect(varies(headers)).toContain("Origin");
    }
  });

  test("keys are for everybody, without credentials", async () => {
    const response = await request(service.publicUrl, { path: "/.well-known/jwks.json", headers: { origin: APP } });
    expect(response.headers.get("access-control-allow-origin")).toBe("*");
    expect(response.headers.get("access-control-allow-credentials")).toBeNull();
  });

  test("the admin API is for no browser", async () => {
    const headers = { origin: APP, "access-control-request-method": "POST" };
    const path = "/auth.admin.v1.SessionAdminService/CreateSession";
    const response = await request(service.adminUrl, { method: "OPTIONS", path, headers });
    expect(response.headers.get("access-control-allow-origin")).toBeNull();
  });
});
