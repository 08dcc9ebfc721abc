/** Token exchange (RFC 8693) and resources (RFC 8707) at the token endpoint, on both stores: who gets which token, and what is refused. */
import fc from "fast-check";
import { describe, expect, onTestFinished, test } from "vitest";
import { AccessTokenPolicy } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { OAuthService } from "../../../gen/auth/v1/oauth_pb.ts";
import { createVerifier } from "../../../src/verifier/index.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { type ClientKey, clientKey, dpop } from "../../support/dpop.ts";
import { aService, STORES } from "../../support/every-protocol.ts";
import {
  ACCESS_TOKEN_TYPE,
  basicOf,
  EXCHANGE_GRANT,
  exchangeEnv,
  JWT_TYPE,
  secretOf,
} from "../../support/exchange-clients.ts";
import { type RawResponse, request } from "../../support/raw-http.ts";
import { startService, waitFor } from "../../support/service.ts";
import { admin, bearer, type LoggedIn, logIn, message, openAdmin } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const TOKEN = "/v1/oauth/token";
const REVOKE = "/v1/oauth/revoke";
const GATEWAY = "https://gateway.example";
const ORDERS = "https://orders.example";

const POLICIES = [
  {
    ...{ client_id: "gateway", subject_token_audiences: [GATEWAY], audiences: [ORDERS, "billing", GATEWAY] },
    ...{ claims: ["role", "auth_time"], max_lifetime: "60s", may_act: ["agent-*"] },
  },
  { client_id: "orders", subject_token_audiences: [ORDERS], claims: ["role"], may_act: ["agent-*"], may_rebind: true },
  { client_id: "unscoped", subject_token_audiences: [GATEWAY] },
];

type Form = Readonly<Record<string, string | readonly string[]>>;

const json = (response: RawResponse) => JSON.parse(response.body) as Record<string, string>;
const claims = (token = "") => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());
const outcome = (response: RawResponse) => [response.status, json(response).error];

function encode(form: Form): string {
  const pairs = Object.entries(form).flatMap(([name, value]) => [value].flat().map((each) => [name, each as string]));
  return String(new URLSearchParams(pairs));
}

describe.each(STORES)("on the %s store", (store) => {
  const env = exchangeEnv(POLICIES, { unscoped: "introspect", unnamed: "tokens:exchange" });
  const service = aService({ RATE_LIMIT_FAILURES: "off", AUDIENCE: "https://auth.example", ...env }, store);

  const post = (form: Form, headers: Readonly<Record<string, string | string[]>> = {}, path = TOKEN) =>
    request(service.publicUrl, {
      ...{ method: "POST", path, body: encode(form) },
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    });
  const exchange = (subjectToken: string, more: Form = {}, headers: object = basicOf("gateway")) =>
    post(
      { grant_type: EXCHANGE_GRANT, subject_token: subjectToken, subject_token_type: ACCESS_TOKEN_TYPE, ...more },
      { ...headers },
    );
  const granted = async (...given: Parameters<typeof exchange>): Promise<string> => {
    const response = await exchange(...given);
    expect([response.status, response.body]).toEqual([200, expect.any(String)]);
    return json(response).access_token ?? "";
  };
  const user = (more: Parameters<typeof logIn>[1] = {}) =>
    logIn(service, { audience: GATEWAY, clientId: "web", claims: { role: "editor", team: "a" }, ...more });
  const agent = (subject = "agent-7") => user({ subject });
  const acting = ({ accessToken }: LoggedIn) => ({ actor_token: accessToken, actor_token_type: ACCESS_TOKEN_TYPE });
  const proofOf = (key: ClientKey) => ({ dpop: dpop(key, service.publicUrl + TOKEN) });
  const end = ({ sid }: LoggedIn) =>
    openAdmin(service).call(admin.revokeSession, { sessionId: sid }, bearer(service.adminToken));

  test("a token is exchanged for one of the same session with fewer audiences and claims, and without a refresh token", async () => {
    const { accessToken, sid, subject } = await user({ audiences: [GATEWAY, ORDERS], audience: "" });
    const response = await exchange(accessToken, { resource: ORDERS });
    expect([response.headers.get("cache-control"), response.headers.get("set-cookie")]).toEqual(["no-store", null]);
    const { access_token, expires_in, ...rest } = json(response);
    expect(rest).toEqual({ token_type: "Bearer", issued_token_type: ACCESS_TOKEN_TYPE });
    const { iat, exp, jti, ...others } = claims(access_token);
    const { iss, sct } = claims(accessToken);
    expect(others).toEqual({ iss, sub: subject, aud: ORDERS, sid, sct, client_id: "gateway", role: "editor" });
    expect(exp).toBeLessThanOrEqual(claims(accessToken).exp);
    expect(exp - iat).toBeLessThanOrEqual(60);
    expect(Number(expires_in)).toBeLessThanOrEqual(60);
    expect(jti).not.toBe(claims(accessToken).jti);
  });

  test("audiences and resources count together, and either form of authentication does", async () => {
    const { accessToken } = await user();
    const more = { audience: ["billing", GATEWAY], resource: ORDERS, requested_token_type: JWT_TYPE };
    const byForm = await exchange(
      accessToken,
      { ...more, client_id: "gateway", client_secret: secretOf("gateway") },
      {},
    );
    expect(claims(json(byForm).access_token).aud).toEqual(["billing", GATEWAY, ORDERS]);
    expect(json(byForm).issued_token_type).toBe(JWT_TYPE);
    const both = await granted(accessToken, { ...more, client_id: "gateway", subject_token_type: JWT_TYPE });
    expect(claims(both).aud).toEqual(["billing", GATEWAY, ORDERS]);
  });

  test("every parameter that is missing, doubled, foreign or too long has its error", async () => {
    const { accessToken, refreshToken } = await user();
    const actor = acting(await agent());
    const ok = { audience: ORDERS };
    const form = { client_id: "gateway", client_secret: secretOf("gateway") };
    const cases: readonly (readonly [string, Form, object, number, string])[] = [
      ["no subject token", { subject_token: "" }, {}, 400, "invalid_request"],
      ["no subject token type", { subject_token_type: "" }, {}, 400, "invalid_request"],
      ["a foreign subject token type", { subject_token_type: `${ACCESS_TOKEN_TYPE}s` }, {}, 400, "invalid_request"],
      ["a refresh token", { subject_token: refreshToken }, {}, 400, "invalid_request"],
      [
        "the type of a refresh token",
        { subject_token_type: ACCESS_TOKEN_TYPE.replace("access", "refresh") },
        {},
        400,
        "invalid_request",
      ],
      ["two subject tokens", { subject_token: [accessToken, accessToken] }, {}, 400, "invalid_request"],
      ["two clients", { client_id: ["gateway", "gateway"] }, {}, 400, "invalid_request"],
      ["two scopes", { scope: ["a", "b"] }, {}, 400, "invalid_request"],
      ["a scope", { scope: "read" }, {}, 400, "invalid_scope"],
      [
        "a refresh token requested",
        { requested_token_type: ACCESS_TOKEN_TYPE.replace("access", "refresh") },
        {},
        400,
        "invalid_request",
      ],
      ["an actor without a type", { actor_token: actor.actor_token }, {}, 400, "invalid_request"],
      ["a type without an actor", { actor_token_type: ACCESS_TOKEN_TYPE }, {}, 400, "invalid_request"],
      ["an actor of a foreign type", { ...actor, actor_token_type: "x" }, {}, 400, "invalid_request"],
      ["an actor token that is none", { ...actor, actor_token: "x" }, {}, 400, "invalid_request"],
      ["an audience outside the policy", { audience: "https://other.example" }, {}, 400, "invalid_target"],
      ["one of two outside", { audience: [ORDERS, "https://auth.example"] }, {}, 400, "invalid_target"],
      ["an empty audience", { audience: "" }, {}, 400, "invalid_target"],
      ["a resource outside the policy", { resource: "https://other.example" }, {}, 400, "invalid_target"],
      ["a resource with a fragment", { resource: `${ORDERS}#a` }, {}, 400, "invalid_target"],
      ["a resource that is no URI", { resource: "billing" }, {}, 400, "invalid_target"],
      ["a resource with a space", { resource: `${ORDERS}/a b` }, {}, 400, "invalid_target"],
      ["nine audiences", { audience: Array(9).fill(ORDERS) }, {}, 400, "invalid_request"],
      ["a token that is too long", { subject_token: "x".repeat(17_000) }, {}, 400, "invalid_request"],
      ["a form that is too long", { subject_token: "x".repeat(21_000) }, {}, 413, "invalid_request"],
      ["no credential", {}, { authorization: "" }, 401, "invalid_client"],
      ["a wrong secret", {}, basicOf("gateway", "x"), 401, "invalid_client"],
      ["the secret of another client", {}, basicOf("gateway", secretOf("orders")), 401, "invalid_client"],
      ["an unknown client", {}, basicOf("nobody"), 401, "invalid_client"],
      ["a bearer token as credential", {}, bearer(secretOf("gateway")), 401, "invalid_client"],
      ["a client without a secret", { client_id: "gateway" }, { authorization: "" }, 401, "invalid_client"],
      ["two credentials", form, {}, 400, "invalid_request"],
      ["another client than the credential's", { client_id: "orders" }, {}, 400, "invalid_request"],
      ["a credential without the scope", {}, basicOf("unscoped"), 400, "unauthorized_client"],
      ["a client without a policy", {}, basicOf("unnamed"), 400, "unauthorized_client"],
      ["an administrator", {}, basicOf("ADMIN_TOKENS[0]", service.adminToken), 400, "unauthorized_client"],
    ];
    for (const [name, change, headers, status, error] of cases) {
      const given = { ...basicOf("gateway"), ...headers } as Record<string, string>;
      const { authorization = "", ...others } = given;
      const response = await exchange(accessToken, { ...ok, ...change }, authorization === "" ? others : given);
      expect([name, ...outcome(response)]).toEqual([name, status, error]);
      expect(response.headers.get("www-authenticate")).toBe(status === 401 ? 'Basic realm="token"' : null);
      expect(json(response).error_description ?? "").not.toContain(accessToken);
    }
    expect((await exchange(accessToken, ok)).status).toBe(200);
  });

  test("a subject token that is tampered with, or of another issuer, audience or session that is over, is refused", async () => {
    const other = await startService({ AUDIENCE: GATEWAY });
    onTestFinished(async () => void (await other.stop()));
    const ended = await user();
    await end(ended);
    const { accessToken } = await user();
    const foreign = await logIn(other, { audience: GATEWAY });
    const tampered = accessToken.replace(/\.[^.]{6}/, ".AAAAAA");
    const elsewhere = await user({ audience: ORDERS });
    for (const token of [ended.accessToken, foreign.accessToken, tampered, elsewhere.accessToken, "x"]) {
      expect(outcome(await exchange(token, { audience: ORDERS }))).toEqual([400, "invalid_request"]);
      const asActor = { audience: ORDERS, actor_token: token, actor_token_type: JWT_TYPE };
      expect(outcome(await exchange(accessToken, asActor))).toEqual([400, "invalid_request"]);
    }
  });

  test("an actor is named, at most four deep, and an actor that may not act is refused", async () => {
    const { accessToken } = await user({ audiences: [GATEWAY, ORDERS], audience: "" });
    const first = await agent();
    const second = await agent("agent-8");
    const more = { audience: GATEWAY };
    let token = await granted(accessToken, { ...more, ...acting(first) });
    expect(claims(token).act).toEqual({ sub: "agent-7" });
    for (const by of [second, first, second]) token = await granted(token, { ...more, ...acting(by) });
    const chain = { sub: "agent-8", act: { sub: "agent-7", act: { sub: "agent-8", act: { sub: "agent-7" } } } };
    expect(claims(token).act).toEqual(chain);
    expect(outcome(await exchange(token, { ...more, ...acting(first) }))).toEqual([400, "invalid_request"]);
    expect(claims(await granted(token, more)).act).toEqual(chain);
    const mallory = await user({ subject: "mallory" });
    expect(outcome(await exchange(accessToken, { ...more, ...acting(mallory) }))).toEqual([400, "invalid_request"]);
    await end(first);
    expect(outcome(await exchange(accessToken, { ...more, ...acting(first) }))).toEqual([400, "invalid_request"]);
  });

  test("who uses the session in place of its user stays the last one in act", async () => {
    const { accessToken, sid } = await user({ actor: { subject: "support-1", reason: "ticket 7" } });
    const alone = await granted(accessToken, { audience: ORDERS });
    expect(claims(alone).act).toEqual({ sub: "support-1" });
    const byAgent = await granted(accessToken, { audience: ORDERS, ...acting(await agent()) });
    expect(claims(byAgent)).toMatchObject({ sid, act: { sub: "agent-7", act: { sub: "support-1" } } });
  });

  test("a chain of clients widens neither audiences nor life", async () => {
    const { accessToken } = await user({ audiences: [GATEWAY, ORDERS], audience: "" });
    const forOrders = await granted(accessToken, { audience: ORDERS });
    const byOrders = basicOf("orders");
    for (const audience of [GATEWAY, "billing"]) {
      expect(outcome(await exchange(forOrders, { audience }, byOrders))).toEqual([400, "invalid_target"]);
    }
    // Its token is for another service now, so the first client cannot exchange it again.
    expect(outcome(await exchange(forOrders, { audience: GATEWAY }))).toEqual([400, "invalid_request"]);
    const again = claims(await granted(forOrders, {}, byOrders));
    expect([again.aud, again.client_id]).toEqual([ORDERS, "orders"]);
    expect(again.exp).toBeLessThanOrEqual(claims(forOrders).exp);
  });

  test("a verifier accepts the token for its audience, and refuses it once the session has ended", async () => {
    const person = await user();
    const token = await granted(person.accessToken, { audience: ORDERS });
    const { adminUrl, adminToken, publicUrl: issuer } = service;
    const verifiers = [ORDERS, GATEWAY].map((audience) => createVerifier({ adminUrl, adminToken, issuer, audience }));
    onTestFinished(async () => void (await Promise.all(verifiers.map((each) => each.close()))));
    const [orders, gateway] = verifiers;
    await Promise.all(verifiers.map((each) => each.ready));
    const sid = person.sid;
    expect(await orders?.verify(token)).toMatchObject({ ok: true, claims: { sid, client_id: "gateway" } });
    expect(await gateway?.verify(token)).toMatchObject({ ok: false, reason: "wrong_audience" });
    const introspected = () =>
      openAdmin(service).call(admin.introspectToken, { token }, bearer(service.adminToken)).then(message);
    expect(await introspected()).toMatchObject({ active: true });
    await end(person);
    await until(async () => expect(await orders?.verify(token)).toMatchObject({ ok: false, reason: "revoked" }));
    expect(await introspected()).toMatchObject({ active: false });
    expect(outcome(await exchange(token, {}, basicOf("orders")))).toEqual([400, "invalid_request"]);
  });

  test("a change of the session makes the token stale, and its successor is of the new version", async () => {
    const person = await user();
    const token = await granted(person.accessToken, { audience: ORDERS });
    const { adminUrl, adminToken, publicUrl: issuer } = service;
    const orders = createVerifier({ adminUrl, adminToken, issuer, audience: ORDERS });
    onTestFinished(() => orders.close());
    await orders.ready;
    expect(await orders.verify(token)).toMatchObject({ ok: true });
    const change = { sessionId: person.sid, claims: { role: "reader" }, accessTokens: AccessTokenPolicy.REFRESH };
    message(await openAdmin(service).call(admin.updateSession, change, bearer(service.adminToken)));
    await until(async () => expect(await orders.verify(token)).toMatchObject({ ok: false, reason: "stale" }));
    expect(outcome(await exchange(person.accessToken, { audience: ORDERS }))).toEqual([400, "invalid_request"]);
    expect(outcome(await exchange(token, {}, basicOf("orders")))).toEqual([400, "invalid_request"]);
    const form = { grant_type: "refresh_token", refresh_token: person.refreshToken, client_id: "web" };
    const { access_token = "" } = json(await post(form));
    const next = await granted(access_token, { audience: ORDERS });
    expect(claims(next)).toMatchObject({ sid: person.sid, sv: 1, role: "reader" });
    expect(await orders.verify(next)).toMatchObject({ ok: true });
  });

  test("the new token cannot end the session or list the sessions of the user", async () => {
    const person = await user({ audiences: [GATEWAY, "https://auth.example"], audience: "" });
    const token = await granted(person.accessToken, { audience: GATEWAY });
    await post({ token }, {}, REVOKE);
    const listed = await request(service.publicUrl, { path: "/v1/auth/sessions", headers: bearer(token) });
    expect(listed.status).toBe(401);
    expect((await exchange(person.accessToken, { audience: GATEWAY })).status).toBe(200);
  });

  test("with a proof the token is bound to its key, and a bound one needs its key", async () => {
    const [key, other] = [clientKey(), clientKey()];
    const { accessToken } = await user();
    const response = await exchange(accessToken, { audience: ORDERS }, { ...basicOf("gateway"), ...proofOf(key) });
    expect([response.status, json(response).token_type]).toEqual([200, "DPoP"]);
    const bound = json(response).access_token ?? "";
    expect(claims(bound).cnf).toEqual({ jkt: key.thumbprint });
    const session = await user({ dpopJkt: key.thumbprint });
    const stolen = { audience: ORDERS };
    const proven = (by: ClientKey) => ({ ...basicOf("gateway"), ...proofOf(by) });
    expect(outcome(await exchange(session.accessToken, stolen))).toEqual([400, "invalid_dpop_proof"]);
    expect(outcome(await exchange(session.accessToken, stolen, proven(other)))).toEqual([400, "invalid_dpop_proof"]);
    expect((await exchange(session.accessToken, stolen, proven(key))).status).toBe(200);
    expect(outcome(await exchange(session.accessToken, stolen, { ...basicOf("gateway"), dpop: "x" }))).toEqual([
      ...[400, "invalid_dpop_proof"],
    ]);
    // The policy of this client lets it bind the token to a key of its own, and never to none.
    expect(outcome(await exchange(bound, {}, basicOf("orders")))).toEqual([400, "invalid_dpop_proof"]);
    const rebound = await granted(bound, {}, { ...basicOf("orders"), ...proofOf(other) });
    expect(claims(rebound).cnf).toEqual({ jkt: other.thumbprint });
  });

  test("random forms get no token that the policies do not allow, and cause no failure", async () => {
    const { accessToken } = await user();
    const tokens = [accessToken, (await agent()).accessToken, (await user({ audience: ORDERS })).accessToken, "x", ""];
    const known: Readonly<Record<string, readonly string[]>> = {
      ...{ grant_type: [EXCHANGE_GRANT], subject_token: tokens, actor_token: tokens },
      ...{ subject_token_type: [ACCESS_TOKEN_TYPE, JWT_TYPE, "x"], actor_token_type: [ACCESS_TOKEN_TYPE, "", "x"] },
      ...{
        requested_token_type: ["", JWT_TYPE, "x"],
        scope: ["", "a"],
        audience: [ORDERS, "billing", GATEWAY, "x", ""],
      },
      ...{ resource: [ORDERS, GATEWAY, "x", `${ORDERS}#`], client_id: ["gateway", "orders", ""] },
      ...{ client_secret: [secretOf("gateway"), secretOf("orders"), ""], "audience[]": ["x"], __proto__1: ["x"] },
    };
    const pair = fc
      .constantFrom(...Object.keys(known))
      .chain((name) => fc.oneof(fc.constantFrom(...(known[name] ?? [])), fc.string()).map((value) => [name, value]));
    const needed = fc.constantFrom(...tokens).map((token) => [
      ...[
        ["grant_type", EXCHANGE_GRANT],
        ["subject_token", token],
        ["subject_token_type", ACCESS_TOKEN_TYPE],
      ],
    ]);
    const form = fc.tuple(needed, fc.array(pair, { maxLength: 3 })).map((parts) => parts.flat());
    const client = fc.constantFrom(basicOf("gateway"), basicOf("gateway"), basicOf("orders"), basicOf("unnamed"), {});
    let count = 0;
    await fc.assert(
      fc.asyncProperty(form, client, async (pairs, credential) => {
        const headers = { "content-type": "application/x-www-form-urlencoded", ...credential };
        const body = String(new URLSearchParams(pairs));
        const response = await request(service.publicUrl, { method: "POST", path: TOKEN, headers, body });
        expect([200, 400, 401]).toContain(response.status);
        if (response.status !== 200) {
          expect(json(response).error).toMatch(/^(invalid|unauthorized|unsupported)_/);
          return;
        }
        count++;
        const { aud, act, team, client_id } = claims(json(response).access_token);
        expect(client_id === "gateway" ? [ORDERS, "billing", GATEWAY] : [ORDERS]).toEqual(
          expect.arrayContaining([aud].flat()),
        );
        expect([undefined, { sub: "agent-7" }]).toContainEqual(act);
        expect(team).toBeUndefined();
      }),
      { numRuns: 300 },
    );
    expect(count).toBeGreaterThan(0);
    expect(service.stderr()).not.toContain('"event":"bug"');
  });

  test("the metadata lists the grant and how its clients authenticate", async () => {
    const metadata = JSON.parse(
      (await request(service.publicUrl, { path: "/.well-known/oauth-authorization-server" })).body,
    );
    expect(metadata.grant_types_supported).toEqual(["refresh_token", EXCHANGE_GRANT]);
    expect(metadata.token_endpoint_auth_methods_supported).toEqual([
      "none",
      "client_secret_basic",
      "client_secret_post",
    ]);
  });

  test("a refresh gets a token for the resources that it names, among the session's", async () => {
    let { refreshToken: token } = await user({ audiences: [GATEWAY, ORDERS, "billing"], audience: "" });
    const refresh = (resource: readonly string[]) =>
      post({ grant_type: "refresh_token", refresh_token: token, client_id: "web", resource });
    const audiences = async (resource: readonly string[]) => {
      const { access_token, refresh_token = "" } = json(await refresh(resource));
      token = refresh_token;
      return claims(access_token).aud;
    };
    expect(await audiences([ORDERS])).toBe(ORDERS);
    expect(await audiences([ORDERS, GATEWAY, ORDERS])).toEqual([ORDERS, GATEWAY]);
    expect(await audiences([])).toEqual([GATEWAY, ORDERS, "billing"]);
    for (const resource of ["https://other.example", `${ORDERS}/`, `${ORDERS}#a`, "billing", ""]) {
      expect([resource, ...outcome(await refresh([resource]))]).toEqual([resource, 400, "invalid_target"]);
    }
    expect(outcome(await refresh([ORDERS, "https://other.example"]))).toEqual([400, "invalid_target"]);
    expect(outcome(await refresh(Array(9).fill(ORDERS)))).toEqual([400, "invalid_request"]);
    expect(await audiences([GATEWAY])).toBe(GATEWAY);
  });
});

/** Starts a service whose clients may exchange tokens. @returns it, and functions that exchange a token and send any form */
async function startOne(more: Readonly<Record<string, string>> = {}) {
  const service = await startService({ ...exchangeEnv(POLICIES), ...more });
  onTestFinished(async () => void (await service.stop()));
  const post = (form: Form, headers: object = {}) =>
    request(service.publicUrl, {
      ...{ method: "POST", path: TOKEN, body: encode(form) },
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
    });
  const exchange = (token: string, form: Form = {}) =>
    post(
      {
        grant_type: EXCHANGE_GRANT,
        subject_token: token,
        subject_token_type: ACCESS_TOKEN_TYPE,
        audience: ORDERS,
        ...form,
      },
      basicOf("gateway"),
    );
  return { service, post, exchange };
}

test("an exchange is recorded with its client, session, audiences and actor, without a token", async () => {
  const { service, exchange } = await startOne();
  const { accessToken, sid } = await logIn(service, { audience: GATEWAY });
  const agent = await logIn(service, { audience: GATEWAY, subject: "agent-7" });
  const response = await exchange(accessToken, { actor_token: agent.accessToken, actor_token_type: JWT_TYPE });
  const line = await waitFor(service, () => /^.*"token_exchanged".*$/m.exec(service.stderr())?.[0]);
  expect(JSON.parse(line)).toMatchObject({ level: "info", sid, by: "gateway", audiences: [ORDERS], actor: "agent-7" });
  for (const secret of [accessToken, agent.accessToken, json(response).access_token ?? "", secretOf("gateway")]) {
    expect(service.stderr()).not.toContain(secret);
  }
});

test("a client that exchanges too often has to wait, and the session's refreshes do not count", async () => {
  const { service, post, exchange } = await startOne({ RATE_LIMIT_REFRESH: "2/60s" });
  const { accessToken, refreshToken } = await logIn(service, { audience: GATEWAY, clientId: "web" });
  const statuses: number[] = [];
  for (let i = 0; i < 3; i++) statuses.push((await exchange(accessToken)).status);
  expect(statuses).toEqual([200, 200, 429]);
  const refresh = { grant_type: "refresh_token", refresh_token: refreshToken, client_id: "web" };
  expect((await post(refresh)).status).toBe(200);
});

test("without a policy the grant is off", async () => {
  const service = await startService({ ...exchangeEnv([], { gateway: "tokens:exchange" }) });
  onTestFinished(async () => void (await service.stop()));
  const { accessToken } = await logIn(service, { audience: GATEWAY });
  const body = encode({
    grant_type: EXCHANGE_GRANT,
    subject_token: accessToken,
    subject_token_type: ACCESS_TOKEN_TYPE,
  });
  const headers = { "content-type": "application/x-www-form-urlencoded", ...basicOf("gateway") };
  const response = await request(service.publicUrl, { method: "POST", path: TOKEN, headers, body });
  expect(outcome(response)).toEqual([400, "unsupported_grant_type"]);
});

describe.each(RPC_PROTOCOLS)("over $name", (protocol) => {
  const service = aService(exchangeEnv(POLICIES));

  test("a token is exchanged, too", async () => {
    const { accessToken, sid } = await logIn(service, { audience: GATEWAY });
    const caller = protocol.open(service.publicUrl);
    onTestFinished(() => void caller.close());
    const given = {
      ...{ grantType: EXCHANGE_GRANT, subjectToken: accessToken, subjectTokenType: ACCESS_TOKEN_TYPE },
      ...{ audience: [ORDERS], clientId: "gateway", clientSecret: secretOf("gateway") },
    };
    const response = message(await caller.call(OAuthService.method.grantToken, given));
    expect(response).toMatchObject({ tokenType: "Bearer", issuedTokenType: ACCESS_TOKEN_TYPE, refreshToken: "" });
    expect(claims(response.accessToken)).toMatchObject({ sid, aud: ORDERS });
    const refused = await caller.call(OAuthService.method.grantToken, { ...given, clientSecret: "x" });
    expect(refused).toMatchObject({ ok: false, code: "E001_AUTH_FAILURE" });
  });
});
