/** A field that does not exist: the admin API refuses it and names the right one, the public API and standard endpoints ignore it. */
import { describe, expect, test } from "vitest";
import { aService } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { bearer, cookie, logIn } from "../../support/sessions.ts";

const SESSIONS = "auth.admin.v1.SessionAdminService";
const SIGNALS = "auth.admin.v1.SignalsAdminService";

const service = aService({ SIGNALS: "on", SIGNALS_URL: "http://127.0.0.1:8081" });

async function post(path: string, body: string | Buffer, type = "application/json") {
  const headers = { "content-type": type, ...bearer(service.adminToken) };
  const response = await request(service.adminUrl, { method: "POST", path, headers, body });
  return { status: response.status, body: response.body };
}
const call = (rpc: string, message: object) => post(`/${rpc}`, JSON.stringify(message));

describe("the admin API refuses", () => {
  test.each([
    [`${SESSIONS}/CreateSession`, { subject: "a", claim: {} }, "CreateSessionRequest", "claim", "claims"],
    [`${SESSIONS}/CreateSession`, { subject: "a", absolute_lifetme: "1s" }, "CreateSessionRequest", "absolute_lifetme"],
    [`${SESSIONS}/CreateSession`, { subject: "a", client: { userAgnt: "" } }, "Client", "userAgnt", "userAgent"],
    [`${SESSIONS}/RevokeAllSessions`, { issuedBefor: null }, "RevokeAllSessionsRequest", "issuedBefor"],
    [`${SESSIONS}/IntrospectToken`, { tokn: "x" }, "IntrospectTokenRequest", "tokn", "token"],
    [`${SIGNALS}/CreateSubscription`, { ur: "x" }, "CreateSubscriptionRequest", "ur"],
  ])("%s with %j", async (rpc, body, type, field, right = "") => {
    const { status, body: text } = await call(rpc, body);
    const { code, message } = JSON.parse(text) as { code: string; message: string };
    expect([status, code]).toEqual([400, "invalid_argument"]);
    expect(message).toMatch(new RegExp(`${type} has no field "${field}": `));
    expect(message).toContain(right === "" ? "" : `did you mean ${right}?`);
  });

  test("a field that is like no other, with the list of those that exist", async () => {
    const { body } = await call(`${SESSIONS}/GetSession`, { zzzzzzzzzz: 1 });
    expect(JSON.parse(body).message).toBe('GetSessionRequest has no field "zzzzzzzzzz": its fields are sessionId');
  });

  test("a long name, which is cut", async () => {
    const { body } = await call(`${SESSIONS}/GetSession`, { ["a".repeat(3000)]: 1 });
    expect(JSON.parse(body).message.length).toBeLessThan(200);
  });

  test.each([
    ["/v1/sessions/x", "UpdateSessionRequest"],
    ["/v1/subjects/x/sessions", "UpdateSubjectSessionsRequest"],
  ])("at the route %s, too", async (path, type) => {
    const headers = { "content-type": "application/json", ...bearer(service.adminToken) };
    const body = JSON.stringify({ claims: {}, accessToken: "REFRESH" });
    const response = await request(service.adminUrl, { method: "PATCH", path, headers, body });
    const message = `${type} has no field "accessToken": did you mean accessTokens?`;
    expect([response.status, JSON.parse(response.body)]).toEqual([
      400,
      { error: { code: "E400_INVALID_REQUEST", message } },
    ]);
  });

  test("in a stream, too", async () => {
    const json = Buffer.from('{"curso":""}');
    const head = Buffer.alloc(5);
    head.writeUInt32BE(json.length, 1);
    const { body } = await post(
      `/${SESSIONS}/WatchRevocations`,
      Buffer.concat([head, json]),
      "application/connect+json",
    );
    expect(body).toContain("did you mean cursor?");
  });
});

describe("a value in a wrong form is refused, and the error says how it is written", () => {
  test.each([
    [{ idleTimeout: "14d" }, 'seconds as text, such as "3600s"'],
    [{ absoluteLifetime: 3600 }, 'seconds as text, such as "3600s"'],
    [{ authTime: 1_795_957_231 }, 'a time such as "2027-01-31T12:00:00Z"'],
    [{ authTime: "yesterday" }, 'a time such as "2027-01-31T12:00:00Z"'],
    [{ claims: "role=editor" }, "a JSON object"],
    [{ transport: "COOKIE" }, "TRANSPORT_UNSPECIFIED, TRANSPORT_COOKIE, TRANSPORT_TOKEN"],
  ])("%j", async (more, form) => {
    const { status, body } = await call(`${SESSIONS}/CreateSession`, { subject: "a", ...more });
    const { code, message } = JSON.parse(body) as { code: string; message: string };
    expect([status, code]).toEqual([400, "invalid_argument"]);
    expect(message).toMatch(/^cannot decode (message|enum) /);
    expect(message.endsWith(`; write ${form}`), message).toBe(true);
  });
});

test("nothing is created by a refused request", async () => {
  await call(`${SESSIONS}/CreateSession`, { subject: "nobody", claim: {} });
  const { body } = await call(`${SESSIONS}/ListSessions`, { subject: "nobody" });
  expect(JSON.parse(body).sessions).toEqual([]);
});

test("names of both forms are right: claims, client_id, clientId", async () => {
  for (const more of [{ claims: { a: 1 } }, { client_id: "c" }, { clientId: "c" }]) {
    expect((await call(`${SESSIONS}/CreateSession`, { subject: "a", ...more })).status).toBe(200);
  }
});

test("the public API and the endpoints of OAuth ignore it", async () => {
  const { refreshToken } = await logIn(service);
  const headers = { "content-type": "application/json", ...cookie(refreshToken) };
  for (const path of ["/v1/auth/refresh", "/auth.v1.SessionService/Refresh"]) {
    const refreshed = await request(service.publicUrl, { method: "POST", path, headers, body: '{"claim":1}' });
    expect([path, refreshed.status]).toEqual([path, 200]);
  }
  const form = "application/x-www-form-urlencoded";
  const introspected = await post("/v1/oauth/introspect", "token=x&resource=y", form);
  expect([introspected.status, JSON.parse(introspected.body)]).toEqual([200, { active: false }]);
});
