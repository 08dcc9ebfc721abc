/** The OAuth endpoints at the level of HTTP, on both stores: forms, errors, transports. They neither read nor set a cookie. */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { TokenType, Transport } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { OAuthService } from "../../../gen/auth/v1/oauth_pb.ts";
import { OAUTH_ERRORS } from "../../../src/service/api/errors/oauth-errors.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService, STORES } from "../../support/every-protocol.ts";
import { type RawResponse, request } from "../../support/raw-http.ts";
import { admin, bearer, cookie, type LoggedIn, logIn, message, openAdmin, successor } from "../../support/sessions.ts";

const FORM = { "content-type": "application/x-www-form-urlencoded" };
const TOKEN = "/v1/oauth/token";
const REVOKE = "/v1/oauth/revoke";

const post = (url: string, path: string, form: Readonly<Record<string, string>>, headers = {}) =>
  request(url, { method: "POST", path, headers: { ...FORM, ...headers }, body: String(new URLSearchParams(form)) });

const json = (response: RawResponse) => JSON.parse(response.body) as Record<string, string>;
const claims = (token = "") => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ RATE_LIMIT_FAILURES: "off", REUSE_INTERVAL: "60s" }, store);
  const cli = { clientId: "cli" };
  const grant = (refreshToken: string, change = {}, headers = {}) =>
    post(
      service.publicUrl,
      TOKEN,
      { grant_type: "refresh_token", refresh_token: refreshToken, client_id: "cli", ...change },
      headers,
    );
  const revoke = (form: Readonly<Record<string, string>>) => post(service.publicUrl, REVOKE, form);
  const viaCookie = ({ refreshToken }: Pick<LoggedIn, "refreshToken">) =>
    request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers: cookie(refreshToken) });
  const isLive = async ({ sid }: LoggedIn) =>
    (await openAdmin(service).call(admin.getSession, { sessionId: sid }, bearer(service.adminToken))).ok;

  test("a refresh token is exchanged for the tokens of RFC 6749 section 5.1, without a cookie", async () => {
    const user = await logIn(service, cli);
    const response = await grant(user.refreshToken, {}, cookie("something"));
    expect([response.status, response.headers.get("cache-control")]).toEqual([200, "no-store"]);
    expect(response.headers.get("set-cookie")).toBeNull();
    const { access_token, refresh_token, ...rest } = json(response);
    expect(rest).toEqual({
      ...{ token_type: "Bearer", expires_in: expect.any(Number), refresh_token_expires_in: expect.any(Number) },
    });
    // The session's idle timeout is 14 days.
    expect(Number(rest.refresh_token_expires_in)).toBeGreaterThan(14 * 86_400 - 60);
    const { sid, exp, iat } = claims(access_token);
    expect(sid).toBe(user.sid);
    expect(exp - iat - Number(rest.expires_in)).toBeLessThan(60);
    const again = await grant(refresh_token ?? "");
    expect(again.status).toBe(200);
    expect(json(await grant(user.refreshToken)).refresh_token).toBe(json(again).refresh_token);
  });

  test("a session that ended, a token that is none of ours and another client get invalid_grant", async () => {
    const ended = await logIn(service, cli);
    await openAdmin(service).call(admin.revokeSession, { sessionId: ended.sid }, bearer(service.adminToken));
    const other = await logIn(service, { clientId: "another" });
    const forged = `${other.refreshToken.slice(0, -4)}AAAA`;
    for (const text of [ended.refreshToken, other.refreshToken, forged, "x"]) {
      const response = await grant(text);
      expect([response.status, json(response)]).toEqual([
        400,
        { error: "invalid_grant", error_description: "authentication failed" },
      ]);
      expect(response.headers.get("www-authenticate")).toBeNull();
    }
    expect((await grant(other.refreshToken, { client_id: "another" })).status).toBe(200);
  });

  test.each([
    ["no grant type", { grant_type: "" }, "invalid_request"],
    ["another grant type", { grant_type: "authorization_code" }, "unsupported_grant_type"],
    ["no token", { refresh_token: "" }, "invalid_request"],
    ["no client", { client_id: "" }, "invalid_request"],
  ])("%s gets an error of RFC 6749 section 5.2", async (_, change, error) => {
    const response = await grant("x", change);
    expect([response.status, json(response).error]).toEqual([400, error]);
  });

  test("a bad body gets its error in the same form", async () => {
    const send = (headers: Record<string, string>, body: string) =>
      request(service.publicUrl, { method: "POST", path: TOKEN, headers, body });
    const form = "grant_type=refresh_token&grant_type=refresh_token";
    const bodies = [
      [400, await send(FORM, form)],
      [415, await send({ "content-type": "text/plain" }, form)],
      [413, await send(FORM, `a=${"a".repeat(40_000)}`)],
    ] as const;
    for (const [status, response] of bodies) {
      expect([response.status, json(response).error]).toEqual([status, "invalid_request"]);
      expect(json(response).error_description).toMatch(/^[\x20-\x21\x23-\x5B\x5D-\x7E]+$/);
    }
  });

  test("a session for one transport is refused on the other, and lives on", async () => {
    const byToken = await logIn(service, { ...cli, transport: Transport.TOKEN });
    expect(byToken.setCookie).toBe("");
    expect((await viaCookie(byToken)).status).toBe(401);
    expect((await grant(byToken.refreshToken)).status).toBe(200);
    const byCookie = await logIn(service, { ...cli, transport: Transport.COOKIE });
    expect(json(await grant(byCookie.refreshToken)).error).toBe("invalid_grant");
    expect((await viaCookie(byCookie)).status).toBe(200);
  });

  test("a session without cookies cannot have cookies that end with the browser", async () => {
    const wanted = { subject: "a", transport: Transport.TOKEN, persistent: false };
    const refused = await openAdmin(service).call(admin.createSession, wanted, bearer(service.adminToken));
    expect(JSON.stringify(refused)).toContain("persistent");
    expect(refused).toMatchObject({ ok: false });
  });

  test("one session may be used by either form unless it says otherwise", async () => {
    const user = await logIn(service, cli);
    const { refresh_token } = json(await grant(user.refreshToken));
    const response = await viaCookie({ refreshToken: refresh_token ?? "" });
    expect(response.status).toBe(200);
    expect((await grant(successor(response) ?? "")).status).toBe(200);
  });

  test("revocation ends the session of either token, and is 200 for one that is not live", async () => {
    for (const kind of ["refreshToken", "accessToken"] as const) {
      const user = await logIn(service, cli);
      for (let i = 0; i < 2; i++) {
        const response = await revoke({ token: user[kind], token_type_hint: "refresh_token" });
        expect([response.status, response.headers.get("set-cookie")]).toEqual([200, null]);
        expect(await isLive(user)).toBe(false);
      }
      expect(json(await grant(user.refreshToken)).error).toBe("invalid_grant");
    }
    expect((await revoke({ token: "nothing" })).status).toBe(200);
    expect(json(await revoke({})).error).toBe("invalid_request");
  });

  test("the metadata says what there is", async () => {
    const response = await request(service.publicUrl, { path: "/.well-known/oauth-authorization-server" });
    expect(json(response)).toEqual({
      issuer: service.publicUrl,
      token_endpoint: service.publicUrl + TOKEN,
      revocation_endpoint: service.publicUrl + REVOKE,
      jwks_uri: `${service.publicUrl}/.well-known/jwks.json`,
      grant_types_supported: ["refresh_token"],
      response_types_supported: [],
      token_endpoint_auth_methods_supported: ["none"],
      revocation_endpoint_auth_methods_supported: ["none"],
      dpop_signing_alg_values_supported: ["ES256", "RS256", "EdDSA", "Ed25519"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: ["ES256"],
      introspection_endpoint_auth_methods_supported: ["client_secret_basic", "client_secret_post", "Bearer"],
    });
    const same = await request(service.publicUrl, { path: "/.well-known/openid-configuration" });
    expect([same.status, json(same)]).toEqual([200, json(response)]);
  });

  test("introspection has the claims of a live token, and of another one nothing", async () => {
    const user = await logIn(service, cli);
    const ask = (token: string, headers: object = bearer(service.adminToken)) =>
      post(service.adminUrl, "/v1/oauth/introspect", { token, token_type_hint: "access_token" }, headers);
    expect(json(await ask(user.accessToken))).toEqual({
      ...claims(user.accessToken),
      active: true,
      token_type: "Bearer",
    });
    expect(json(await ask(user.refreshToken))).toMatchObject({ active: true, sid: user.sid, client_id: "cli" });
    expect(json(await ask("nothing"))).toEqual({ active: false });
    const refused = await ask(user.accessToken, {});
    expect([refused.status, json(refused).error]).toEqual([401, "invalid_token"]);
    expect(refused.headers.get("www-authenticate")).toBe("Bearer");
    const same = await openAdmin(service).call(
      admin.introspectToken,
      { token: user.accessToken },
      bearer(service.adminToken),
    );
    expect(message(same)).toMatchObject({ active: true, type: TokenType.ACCESS_TOKEN });
  });

  describe("an introspection by an id and a secret", () => {
    const basic = (id: string, secret: string) => ({
      authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}`,
    });
    const ask = async (form: Readonly<Record<string, string>>, headers: object = {}) => {
      const { accessToken } = await logIn(service, cli);
      return post(service.adminUrl, "/v1/oauth/introspect", { token: accessToken, ...form }, headers);
    };
    /** The name of the only token of this service, and its value. */
    const known = () => ({
      id: store === "embedded" ? "DATA_DIR/admin-token" : "ADMIN_TOKENS[0]",
      secret: service.adminToken,
    });

    test("by Basic, whose parts are encoded as in forms (RFC 6749 section 2.3.1)", async () => {
      const { id, secret } = known();
      for (const text of [id, encodeURIComponent(id), id.replace("T", "%54")]) {
        const response = await ask({}, basic(text, secret));
        expect([response.status, json(response).active]).toEqual([200, true]);
      }
    });

    test("by the form", async () => {
      const { id, secret } = known();
      const response = await ask({ client_id: id, client_secret: secret });
      expect([response.status, json(response).active]).toEqual([200, true]);
    });

    test("a wrong one is invalid_client, with the challenge of Basic", async () => {
      const { id, secret } = known();
      const wrong = [
        ...[basic(id, `${secret}x`), basic("other", secret), basic(id, ""), basic("", secret), basic("%zz", secret)],
        ...["Basic", "Basic !", "basic", `Basic ${Buffer.from([255, 58, 255]).toString("base64")}`].map(
          (authorization) => ({ authorization }),
        ),
      ];
      const responses = [
        ...(await Promise.all(wrong.map((headers) => ask({}, headers)))),
        await ask({ client_id: id, client_secret: `${secret}x` }),
        await ask({ client_id: "other", client_secret: secret }),
        await ask({ client_secret: secret }),
      ];
      for (const response of responses) {
        expect([response.status, json(response).error]).toEqual([401, "invalid_client"]);
        expect(response.headers.get("www-authenticate")).toBe('Basic realm="admin"');
      }
    });

    test("two at once are refused, and an id alone is no credential", async () => {
      const { id, secret } = known();
      const form = { client_id: id, client_secret: secret };
      for (const headers of [basic(id, secret), bearer(secret)]) {
        const response = await ask(form, headers);
        expect([response.status, json(response).error]).toEqual([400, "invalid_request"]);
        expect((await ask({ client_id: id }, headers)).status).toBe(200);
      }
      expect((await ask({ client_id: id })).status).toBe(401);
    });

    test("a page of another site cannot use the Basic credential that a browser has", async () => {
      const { id, secret } = known();
      for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.example" }]) {
        const response = await ask({}, { ...basic(id, secret), ...headers });
        expect([response.status, json(response).error]).toEqual([403, "insufficient_scope"]);
      }
    });

    test("no other endpoint takes Basic", async () => {
      const response = await request(service.adminUrl, {
        method: "POST",
        path: "/v1/oauth/global-token-revocation",
        headers: { ...basic(known().id, known().secret), "content-type": "application/json" },
        body: JSON.stringify({ sub_id: { format: "opaque", id: "alice" } }),
      });
      expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    });
  });

  test("a wrong method and an unknown path fail in OAuth's form", async () => {
    const paths = [
      [service.publicUrl, "GET", TOKEN, 405],
      [service.publicUrl, "GET", `${REVOKE}?x=1`, 405],
      [service.publicUrl, "POST", "/.well-known/oauth-authorization-server", 405],
      [service.publicUrl, "POST", "/.well-known/openid-configuration", 405],
      [service.publicUrl, "GET", "/v1/oauth/authorize", 404],
      [service.publicUrl, "GET", "/.well-known/oauth-authorization-server/tenant", 404],
      [service.adminUrl, "GET", "/v1/oauth/introspect", 405],
      [service.adminUrl, "POST", "/v1/oauth/token", 404],
    ] as const;
    for (const [url, method, path, status] of paths) {
      const response = await request(url, { method, path, headers: bearer(service.adminToken) });
      expect([path, response.status, json(response).error]).toEqual([path, status, "invalid_request"]);
      expect(response.headers.get("allow") !== null).toBe(status === 405);
    }
  });

  test("a global revocation ends the sessions of a subject, by either format", async () => {
    const ask = (body: object) =>
      request(service.adminUrl, {
        method: "POST",
        path: "/v1/oauth/global-token-revocation",
        headers: { ...bearer(service.adminToken), "content-type": "application/json" },
        body: JSON.stringify(body),
      });
    const user = await logIn(service);
    const other = await logIn(service);
    const opaque = await ask({ sub_id: { format: "opaque", id: user.subject } });
    expect([opaque.status, opaque.body]).toEqual([204, ""]);
    expect([await isLive(user), await isLive(other)]).toEqual([false, true]);
    const { subject } = other;
    expect((await ask({ sub_id: { format: "iss_sub", iss: "https://idp.example", sub: subject } })).status).toBe(204);
    expect(await isLive(other)).toBe(false);
    for (const sub_id of [{ format: "email", email: "a@b.example" }, { format: "opaque" }, { format: "iss_sub" }]) {
      const response = await ask({ sub_id });
      expect([response.status, json(response).error]).toEqual([400, "invalid_request"]);
    }
  });

  test.each(RPC_PROTOCOLS)("the token endpoint is an RPC as well, over $name", async (kind) => {
    const user = await logIn(service, cli);
    const caller = kind.open(service.publicUrl);
    const given = { grantType: "refresh_token", refreshToken: user.refreshToken, clientId: "cli" };
    const response = message(await caller.call(OAuthService.method.grantToken, given));
    expect(claims(response.accessToken).sid).toBe(user.sid);
    const refused = await caller.call(OAuthService.method.grantToken, { ...given, clientId: "another" });
    expect(refused).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE", rpc: "unauthenticated" });
    await caller.close();
  });
});

test("the documentation has the closed table of errors", () => {
  const page = readFileSync(new URL("../../../docs/tasks/clients.md", import.meta.url), "utf8");
  const rows = [...page.matchAll(/^\| `(E\w+)` \| (\d+) \| `(\w+)` \|/gm)].map(([, code, status, error]) => [
    code,
    { status: Number(status), error },
  ]);
  expect(Object.fromEntries(rows)).toEqual(OAUTH_ERRORS);
});

describe("with an issuer that has a path", () => {
  const service = aService({ ISSUER: "https://auth.example/tenant", SIGNALS: "on", SIGNALS_URL: "https://in.example" });

  test("the metadata is where RFC 8414 and OpenID Connect Discovery expect it", async () => {
    for (const name of ["oauth-authorization-server", "openid-configuration"]) {
      for (const path of [`/.well-known/${name}`, `/.well-known/${name}/tenant`, `/tenant/.well-known/${name}`]) {
        const response = await request(service.publicUrl, { path });
        expect([path, response.status]).toEqual([path, 200]);
        expect(json(response)).toMatchObject({
          issuer: "https://auth.example/tenant",
          token_endpoint: "https://auth.example/tenant/v1/oauth/token",
          introspection_endpoint: "https://in.example/v1/oauth/introspect",
        });
      }
      expect((await request(service.publicUrl, { path: `/.well-known/${name}/other` })).status).toBe(404);
    }
  });
});

describe("with OAUTH_ENDPOINTS=off", () => {
  const service = aService({ OAUTH_ENDPOINTS: "off" });

  test("there are no such routes, and no sessions for them", async () => {
    expect((await post(service.publicUrl, TOKEN, {})).status).toBe(404);
    expect((await post(service.publicUrl, REVOKE, {})).status).toBe(404);
    expect((await request(service.publicUrl, { path: "/.well-known/oauth-authorization-server" })).status).toBe(404);
    expect((await post(service.adminUrl, "/v1/oauth/introspect", {}, bearer(service.adminToken))).status).toBe(404);
    await expect(logIn(service, { transport: Transport.TOKEN })).rejects.toThrow("OAUTH_ENDPOINTS");
  });
});
