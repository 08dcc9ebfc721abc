/** The parts of HTTP responses that do not depend on the method: formats, statuses, headers, pages. */
import { gzipSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { aService } from "../../support/every-protocol.ts";
import { type RawRequest, type RawResponse, request } from "../../support/raw-http.ts";
import { admin, bearer, cookie, logIn, message, openAdmin } from "../../support/sessions.ts";

const service = aService();
const JSON_TYPE = { "content-type": "application/json" };
const REFRESH = { method: "POST", path: "/v1/auth/refresh" } as const;
const LOGOUT = { method: "DELETE", path: "/v1/auth/logout" } as const;
const SESSIONS = { path: "/v1/auth/sessions" } as const;
const OTHERS = { method: "POST", path: "/v1/auth/sessions:revokeOthers" } as const;

const ask = (wanted: RawRequest) => request(service.publicUrl, wanted);

/** Returns the status and the code of a failed response, after checking what all of them have in common. */
function failure(response: RawResponse): [status: number, code: string] {
  const body = JSON.parse(response.body);
  expect(Object.keys(body)).toEqual(["error"]);
  expect(Object.keys(body.error)).toEqual(["code", "message"]);
  expect(response.headers.get("content-type")).toBe("application/json");
  expect(response.headers.get("cache-control")).toBe("no-store");
  expect(response.cookies).toEqual([]);
  return [response.status, body.error.code];
}

describe("success bodies", () => {
  test("refresh", async () => {
    const user = await logIn(service);
    const response = await ask({ ...REFRESH, headers: { ...JSON_TYPE, ...cookie(user.refreshToken) }, body: "{}" });
    expect(response.status).toBe(200);
    expect(response.headers.get("content-type")).toBe("application/json");
    expect(JSON.parse(response.body)).toEqual({
      data: { accessToken: expect.stringMatching(/^ey[^.]+\.[^.]+\.[^.]+$/) },
    });
    expect(response.cookies).toHaveLength(1);
  });

  test("logout", async () => {
    const user = await logIn(service);
    const response = await ask({ ...LOGOUT, headers: { ...JSON_TYPE, ...bearer(user.accessToken) }, body: "{}" });
    expect([response.status, response.body]).toEqual([200, '{"data":{}}']);
  });

  test("the list of sessions, empty fields and all", async () => {
    const user = await logIn(service);
    const response = await ask({ ...SESSIONS, headers: bearer(user.accessToken) });
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/);
    expect(JSON.parse(response.body)).toEqual({
      data: {
        sessions: [
          {
            sessionId: user.sid,
            userAgent: "",
            ipAddress: "",
            displayName: "",
            createTime: time,
            lastRefreshTime: time,
            idleExpireTime: time,
            absoluteExpireTime: time,
            current: true,
            deviceBound: false,
            lastSeenUserAgent: "",
            lastSeenIpAddress: "",
            actor: "",
          },
        ],
        nextPageToken: "",
      },
    });
  });

  test("revoking one and the others", async () => {
    const user = await logIn(service);
    const other = await logIn(service, { subject: user.subject });
    const headers = bearer(user.accessToken);
    const one = await ask({ method: "DELETE", path: `/v1/auth/sessions/${other.sid}`, headers });
    expect([one.status, one.body]).toEqual([200, '{"data":{}}']);
    const others = await ask({ ...OTHERS, headers });
    expect([others.status, others.body]).toEqual([200, '{"data":{"revokedCount":0}}']);
  });

  test("two cookie lines are as one", async () => {
    const [user, other] = [await logIn(service), await logIn(service)];
    const lines = (second: string) => ({ cookie: [`refresh_token=${user.refreshToken}`, `refresh_token=${second}`] });
    const refused = await ask({ ...REFRESH, headers: lines(other.refreshToken) });
    expect([refused.status, JSON.parse(refused.body).error.code]).toEqual([401, "E001_AUTH_FAILURE"]);
    expect((await ask({ ...REFRESH, headers: lines(user.refreshToken) })).status).toBe(200);
  });
});

describe("request bodies", () => {
  test.each<[string, Record<string, string>, string | undefined]>([
    ["nothing at all", {}, undefined],
    ["nothing, called JSON", JSON_TYPE, undefined],
    ["an empty object", JSON_TYPE, "{}"],
    ["an empty object without a type", {}, "{}"],
    ["an object with a charset", { "content-type": "application/json; charset=utf-8" }, "{}"],
    ["an object in other letters", { "content-type": "Application/JSON" }, " { } \n"],
    ["unknown fields", JSON_TYPE, '{"remember":true,"nested":{"a":[1,null]}}'],
  ])("%s is fine", async (_, headers, body) => {
    const user = await logIn(service);
    expect((await ask({ ...REFRESH, headers: { ...headers, ...cookie(user.refreshToken) }, body })).status).toBe(200);
    expect((await ask({ ...LOGOUT, headers: { ...headers, ...bearer(user.accessToken) }, body })).status).toBe(200);
  });

  test.each(["{", "}", "[]", "1", '"{}"', "{}{}", "{'a':1}", "\u0000"])("%j is not a JSON object", async (body) => {
    const user = await logIn(service);
    const headers = { ...JSON_TYPE, ...cookie(user.refreshToken), ...bearer(user.accessToken) };
    for (const route of [REFRESH, LOGOUT]) {
      expect(failure(await ask({ ...route, headers, body }))).toEqual([400, "E400_INVALID_REQUEST"]);
    }
  });

  test.each(["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json", ","])(
    "%s is not a type for a body, not even for none",
    async (type) => {
      const user = await logIn(service);
      const headers = { "content-type": type, ...cookie(user.refreshToken), ...bearer(user.accessToken) };
      for (const route of [REFRESH, LOGOUT]) {
        for (const body of ["{}", undefined]) {
          expect(failure(await ask({ ...route, headers, body }))).toEqual([415, "E415_UNSUPPORTED_MEDIA_TYPE"]);
        }
      }
    },
  );

  test("a body of 512 bytes is read where nothing is expected, a longer one is too large", async () => {
    const user = await logIn(service);
    const headers = { ...JSON_TYPE, ...cookie(user.refreshToken) };
    const body = (length: number) => `{"a":"${"x".repeat(length - 8)}"}`;
    const packed = (length: number) => ({
      headers: { ...headers, "content-encoding": "gzip" },
      body: gzipSync(body(length)),
    });
    expect((await ask({ ...REFRESH, headers, body: body(512) })).status).toBe(200);
    expect((await ask({ ...REFRESH, ...packed(512) })).status).toBe(200);
    expect(failure(await ask({ ...REFRESH, headers, body: body(513) }))).toEqual([413, "E413_TOO_LARGE"]);
    expect(failure(await ask({ ...REFRESH, ...packed(513) }))).toEqual([413, "E413_TOO_LARGE"]);
    const chunked = { ...headers, "transfer-encoding": "chunked" };
    expect(failure(await ask({ ...REFRESH, headers: chunked, body: body(513) }))).toEqual([413, "E413_TOO_LARGE"]);
  });

  test("a refresh token in a body or a query is never looked at", async () => {
    const { refreshToken } = await logIn(service);
    const body = JSON.stringify({ refresh_token: refreshToken, refreshToken, data: { refreshToken } });
    const query = `?refresh_token=${refreshToken}&refreshToken=${refreshToken}`;
    for (const path of [REFRESH.path, "/auth.v1.SessionService/Refresh"]) {
      for (const wanted of [{ path }, { path: path + query }, { path: path + query, headers: cookie("x") }]) {
        const headers = { ...JSON_TYPE, ...("headers" in wanted ? wanted.headers : {}) };
        const response = await ask({ method: "POST", path: wanted.path, headers, body });
        expect(response.status).toBe(401);
        expect(response.body).toContain("E001_AUTH_FAILURE");
      }
    }
    const user = await logIn(service);
    const served = await ask({ ...REFRESH, path: REFRESH.path + query, headers: cookie(user.refreshToken), body });
    const { accessToken } = JSON.parse(served.body).data;
    const response = await openAdmin(service).call(
      admin.introspectToken,
      { token: accessToken },
      bearer(service.adminToken),
    );
    expect(message(response).claims?.sub).toBe(user.subject);
  });
});

describe("routes", () => {
  test.each([
    "/",
    "/v1",
    "/v1/auth",
    "/v1/auth/refresh/",
    "/v1/auth/Refresh",
    "/v2/auth/refresh",
    "/v1/auth//refresh",
    "/v1/auth/sessions/a/b",
    "/v1/auth/sessions:nothing",
    "/auth.v1.SessionService",
    "/auth.v1.SessionService/Nothing",
    "/auth.admin.v1.SessionAdminService/CreateSession",
    "/metrics",
    "/../../etc/passwd",
    "/v1/auth/refresh%00",
  ])("%s is not there", async (path) => {
    for (const method of ["GET", "POST", "DELETE"]) {
      expect(failure(await ask({ method, path }))).toEqual([404, "E404_NOT_FOUND"]);
    }
  });

  test.each([
    ["GET", REFRESH.path, "POST"],
    ["PUT", REFRESH.path, "POST"],
    ["PUT", LOGOUT.path, "DELETE"],
    ["DELETE", SESSIONS.path, "GET"],
    ["GET", `${SESSIONS.path}/x`, "DELETE"],
    ["PATCH", OTHERS.path, "POST"],
  ])("%s %s is not allowed, and Allow lists the methods that are", async (method, path, allowed) => {
    const response = await ask({ method, path });
    expect(failure(response)).toEqual([405, "E405_METHOD_NOT_ALLOWED"]);
    expect(response.headers.get("allow")?.split(", ")).toContain(allowed);
    expect(response.headers.get("allow")?.split(", ")).not.toContain(method);
    const options = await ask({ method: "OPTIONS", path });
    expect([options.status, options.body]).toEqual([204, ""]);
    expect(options.headers.get("allow")).toBe(response.headers.get("allow"));
  });

  test.each([
    ["pageSize=x", "pageSize"],
    ["pageSize=1.5", "pageSize"],
    ["pageSize=99999999999", "pageSize"],
    ["pageSize=-1", "page_size"],
    ["pageSize=%zz", ""],
    ["pageToken=!", "page_token"],
  ])("a query of %s is refused, and the parameter named", async (query, name) => {
    const user = await logIn(service);
    const response = await ask({ path: `${SESSIONS.path}?${query}`, headers: bearer(user.accessToken) });
    expect(failure(response)).toEqual([400, "E400_INVALID_REQUEST"]);
    expect(JSON.parse(response.body).error.message).toContain(name);
  });

  test("large cookies of a sibling domain are read past; too many of them get a 431 that says why", async () => {
    const user = await logIn(service);
    const beside = (count: number) => ({
      cookie:
        [...Array(count).keys()].map((at) => `planted${at}=${"x".repeat(3_900)}; `).join("") +
        cookie(user.refreshToken).cookie,
    });
    expect((await ask({ ...REFRESH, headers: beside(8) })).status).toBe(200);
    const refused = await ask({ ...REFRESH, headers: beside(9) });
    expect([refused.status, refused.body]).toEqual([431, expect.stringContaining("Cookies are the usual cause")]);
  });

  test("Connect serves GET for methods without side effects, and for no others", async () => {
    const user = await logIn(service);
    const get = (method: string) =>
      ask({
        path: `/auth.v1.SessionService/${method}?connect=v1&encoding=json&message=%7B%7D`,
        headers: { ...bearer(user.accessToken), ...cookie(user.refreshToken) },
      });
    expect((await get("ListSessions")).status).toBe(200);
    const refused = await get("Refresh");
    expect([refused.status, refused.cookies]).toEqual([405, []]);
    expect((await get("Logout")).status).toBe(405);
  });
});

describe("failures over Connect have the HTTP status that belongs to their code", () => {
  const connect = (method: string, headers: Record<string, string>, body = "{}") =>
    ask({ method: "POST", path: `/auth.v1.SessionService/${method}`, headers: { ...JSON_TYPE, ...headers }, body });

  test.each<[string, number, string, (token: string) => Promise<RawResponse>]>([
    ["E001_AUTH_FAILURE", 401, "unauthenticated", () => connect("Refresh", {})],
    ["E400_INVALID_REQUEST", 400, "invalid_argument", (t) => connect("ListSessions", bearer(t), '{"pageSize":-1}')],
    ["E403_FORBIDDEN", 403, "permission_denied", () => connect("Refresh", { "sec-fetch-site": "cross-site" })],
    ["E404_NOT_FOUND", 404, "not_found", (t) => connect("RevokeSession", bearer(t), '{"sessionId":"x"}')],
    ["E400_INVALID_REQUEST", 400, "invalid_argument", (t) => connect("ListSessions", bearer(t), "{")],
    ["E400_INVALID_REQUEST", 400, "invalid_argument", (t) => connect("ListSessions", bearer(t), '{"pageSize":{}}')],
    ["E413_TOO_LARGE", 429, "resource_exhausted", (t) => connect("Logout", bearer(t), `{"a":"${"x".repeat(65_536)}"}`)],
  ])("%s: %d %s", async (code, status, rpc, failing) => {
    const response = await failing((await logIn(service)).accessToken);
    const body = JSON.parse(response.body);
    expect([response.status, body.code]).toEqual([status, rpc]);
    expect(body.details).toMatchObject([{ type: "auth.v1.ErrorDetail", debug: { code } }]);
    expect(response.headers.get("cache-control")).toBe("no-store");
  });
});

test.each([
  ["application/proto", Buffer.from([0])],
  ["application/grpc-web+proto", Buffer.from([0, 0, 0, 0, 1, 0])],
  ["application/grpc+proto", Buffer.from([0, 0, 0, 0, 1, 0])],
])("a broken message as %s is the caller's fault", async (type, body) => {
  const path = "/auth.v1.SessionService/Refresh";
  const headers = { "content-type": type, ...cookie((await logIn(service)).refreshToken) };
  const response = await ask({ method: "POST", path, headers, body });
  const details = response.trailers.get("grpc-status-details-bin") ?? /details-bin: (\S+)/i.exec(response.body)?.[1];
  const reported = details === undefined ? response.body : Buffer.from(details, "base64").toString();
  expect(reported).toContain("E400_INVALID_REQUEST");
});
