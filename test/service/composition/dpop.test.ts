/** DPoP (RFC 9449) at the endpoints, on both stores: what a proof permits, and what a thief without the key gets. */
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { Transport } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { type ClientKey, clientKey, dpop } from "../../support/dpop.ts";
import { aService, STORES } from "../../support/every-protocol.ts";
import { type RawResponse, request } from "../../support/raw-http.ts";
import { type Service, startService, waitFor } from "../../support/service.ts";
import { admin, bearer, cookie, type LoggedIn, logIn, message, openAdmin, successor } from "../../support/sessions.ts";

const TOKEN = "/v1/oauth/token";
const REVOKE = "/v1/oauth/revoke";
const SESSIONS = "/v1/auth/sessions";
const LOGOUT = "/v1/auth/logout";
const ALGS = 'algs="ES256 RS256 EdDSA Ed25519"';

const json = (response: RawResponse) => JSON.parse(response.body) as Record<string, string>;
const claims = (token = "") => JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString());

/** @param proof one or several values of the `DPoP` header */
function post(url: string, path: string, form: Readonly<Record<string, string>>, proof?: string | string[]) {
  const headers = { "content-type": "application/x-www-form-urlencoded", ...(proof !== undefined && { dpop: proof }) };
  return request(url, { method: "POST", path, headers, body: String(new URLSearchParams(form)) });
}

const grant = (url: string, refreshToken: string, proof?: string | string[]) =>
  post(url, TOKEN, { grant_type: "refresh_token", refresh_token: refreshToken, client_id: "cli" }, proof);

const challenge = ({ headers }: RawResponse) => headers.get("www-authenticate");
const outcome = (response: RawResponse) => [response.status, json(response).error];

describe.each(STORES)("on the %s store", (store) => {
  const service = aService({ RATE_LIMIT_FAILURES: "off", REUSE_INTERVAL: "0", LOG_LEVEL: "debug" }, store);
  const proofFor = (key: ClientKey, path = TOKEN, change = {}) => dpop(key, service.publicUrl + path, change);
  const signIn = (key?: ClientKey) =>
    logIn(service, { clientId: "cli", ...(key && { dpopJkt: key.thumbprint, transport: Transport.TOKEN }) });
  const isLive = async ({ sid }: LoggedIn) =>
    (await openAdmin(service).call(admin.getSession, { sessionId: sid }, bearer(service.adminToken))).ok;

  test.each(["ES256", "RS256", "EdDSA", "Ed25519"] as const)(
    "%s: any generation is served with a proof",
    async (alg) => {
      const key = clientKey(alg);
      const user = await signIn(key);
      expect(claims(user.accessToken).cnf).toEqual({ jkt: key.thumbprint });
      const first = json(await grant(service.publicUrl, user.refreshToken, proofFor(key)));
      expect(first.token_type).toBe("DPoP");
      expect(claims(first.access_token).cnf).toEqual({ jkt: key.thumbprint });
      await grant(service.publicUrl, first.refresh_token ?? "", proofFor(key));
      const stale = await grant(service.publicUrl, user.refreshToken, proofFor(key));
      expect(stale.status).toBe(200);
    },
  );

  test("the first proof binds, and the session is served without one no longer", async () => {
    const key = clientKey();
    const user = await signIn();
    const bound = json(await grant(service.publicUrl, user.refreshToken, proofFor(key)));
    expect([bound.token_type, claims(bound.access_token).cnf]).toEqual(["DPoP", { jkt: key.thumbprint }]);
    const next = bound.refresh_token ?? "";
    expect(outcome(await grant(service.publicUrl, next))).toEqual([400, "invalid_dpop_proof"]);
    expect(outcome(await grant(service.publicUrl, next, proofFor(clientKey())))).toEqual([400, "invalid_grant"]);
    expect((await grant(service.publicUrl, next, proofFor(key))).status).toBe(200);
  });

  test("a first proof of another client than the session's binds nothing", async () => {
    const user = await signIn();
    const form = { grant_type: "refresh_token", refresh_token: user.refreshToken, client_id: "another" };
    expect(outcome(await post(service.publicUrl, TOKEN, form, proofFor(clientKey())))).toEqual([400, "invalid_grant"]);
    expect(json(await grant(service.publicUrl, user.refreshToken)).token_type).toBe("Bearer");
  });

  test("a thief with every token and no key is served nothing, and ends nothing", async () => {
    const key = clientKey();
    const user = await signIn(key);
    const thief = clientKey();
    const { refreshToken, accessToken } = user;
    const list = (headers: object) => request(service.publicUrl, { path: SESSIONS, headers: { ...headers } });
    const end = (headers: object) =>
      request(service.publicUrl, { method: "DELETE", path: LOGOUT, headers: { ...headers } });
    for (const proof of [undefined, proofFor(thief)]) {
      expect((await grant(service.publicUrl, refreshToken, proof)).status).toBe(400);
    }
    for (const token of [refreshToken, accessToken]) {
      for (const proof of [undefined, proofFor(thief, REVOKE)]) {
        expect(outcome(await post(service.publicUrl, REVOKE, { token }, proof))).toEqual([400, "invalid_dpop_proof"]);
      }
    }
    const byCookie = { method: "POST", headers: cookie(refreshToken) };
    expect((await request(service.publicUrl, { ...byCookie, path: "/v1/auth/refresh" })).status).toBe(401);
    expect((await request(service.publicUrl, { ...byCookie, path: LOGOUT })).status).toBe(401);
    for (const call of [list, end]) {
      expect((await call(bearer(accessToken))).status).toBe(401);
      expect((await call({ authorization: `DPoP ${accessToken}` })).status).toBe(401);
    }
    const stolen = dpop(thief, service.publicUrl + SESSIONS, { accessToken, claims: { htm: "GET" } });
    expect((await list({ authorization: `DPoP ${accessToken}`, dpop: stolen })).status).toBe(401);
    expect(await isLive(user)).toBe(true);
    const recorded = () => service.stderr().match(new RegExp(`"event":"bound_key_missing".*${user.sid}`, "g"))?.length;
    await waitFor(service, () => (recorded() ?? 0) >= 2);
    expect((await grant(service.publicUrl, refreshToken, proofFor(key))).status).toBe(200);
  });

  test("the holder of the key lists and ends its session with the scheme DPoP", async () => {
    const key = clientKey();
    const { accessToken, sid } = await signIn(key);
    const call = (method: string, path: string, change = {}) => {
      const proof = dpop(key, service.publicUrl + path, { accessToken, claims: { htm: method }, ...change });
      const headers = { authorization: `DPoP ${accessToken}`, dpop: proof };
      return request(service.publicUrl, { method, path, headers });
    };
    expect((await call("GET", SESSIONS)).body).toContain(sid);
    const other = await call("GET", SESSIONS, { accessToken: "another" });
    expect([other.status, challenge(other)]).toEqual([401, `DPoP error="invalid_dpop_proof", ${ALGS}`]);
    const late = await call("GET", SESSIONS, { claims: { htm: "GET", iat: 1 } });
    expect([late.status, challenge(late)]).toEqual([401, `DPoP error="use_dpop_nonce", ${ALGS}`]);
    const nonce = late.headers.get("dpop-nonce");
    expect((await call("GET", SESSIONS, { claims: { htm: "GET", iat: 1, nonce } })).status).toBe(200);
    expect((await call("DELETE", LOGOUT)).status).toBe(200);
  });

  test("a token with the scheme DPoP is accepted only with a proof of the key that it is bound to", async () => {
    const key = clientKey();
    const bound = await signIn(key);
    const unbound = await signIn();
    const call = async (token: string, prover?: ClientKey, path = SESSIONS, method = "GET") => {
      const proof = prover && dpop(prover, service.publicUrl + path, { accessToken: token, claims: { htm: method } });
      const headers = { authorization: `DPoP ${token}`, ...(proof && { dpop: proof }) };
      const response = await request(service.publicUrl, { method, path, headers });
      return response.status === 200 ? 200 : [response.status, challenge(response)];
    };
    const refused = [401, `DPoP error="invalid_token", ${ALGS}`];
    expect(await call(bound.accessToken, key)).toBe(200);
    expect(await call(bound.accessToken)).toEqual(refused);
    expect(await call(bound.accessToken, clientKey())).toEqual(refused);
    for (const [path, method] of [
      [SESSIONS, "GET"],
      [`${SESSIONS}/${bound.sid}`, "DELETE"],
      [LOGOUT, "DELETE"],
    ]) {
      expect(await call(unbound.accessToken, undefined, path, method)).toEqual(refused);
      expect(await call(unbound.accessToken, key, path, method)).toEqual(refused);
    }
    for (const garbage of ["", "x", `${bound.accessToken}x`]) expect(await call(garbage)).toEqual(refused);
    expect(await isLive(unbound)).toBe(true);
  });

  test("the holder of the key revokes", async () => {
    const key = clientKey();
    const user = await signIn(key);
    expect((await post(service.publicUrl, REVOKE, { token: user.refreshToken }, proofFor(key, REVOKE))).status).toBe(
      200,
    );
    expect(await isLive(user)).toBe(false);
    expect(outcome(await grant(service.publicUrl, user.refreshToken, proofFor(key)))).toEqual([400, "invalid_grant"]);
  });

  test("a bad proof consumes nothing: the session is served with a good one", async () => {
    const key = clientKey();
    const { refreshToken, sid } = await signIn(key);
    const good = proofFor(key);
    expect((await grant(service.publicUrl, refreshToken, good)).status).toBe(200);
    const bad: readonly (readonly [string, string | string[]])[] = [
      ["proof_replayed", good],
      ["proof_ambiguous", [proofFor(key), proofFor(key)]],
      ["proof_wrong_url", proofFor(key, REVOKE)],
      ["proof_wrong_method", proofFor(key, TOKEN, { claims: { htm: "GET" } })],
      ["proof_wrong_algorithm", proofFor(key, TOKEN, { header: { alg: "none" } })],
      ["proof_bad_key", proofFor(clientKey("RS256", 1024))],
      ["proof_bad_key", proofFor(key, TOKEN, { header: { jwk: key.privateKey.export({ format: "jwk" }) } })],
      ["proof_forged", proofFor(clientKey(), TOKEN, { header: { jwk: key.jwk } })],
      ["proof_malformed", "x".repeat(9000)],
      ["proof_malformed", ""],
    ];
    for (const [reason, proof] of bad) {
      expect([reason, ...outcome(await grant(service.publicUrl, refreshToken, proof))]).toEqual([
        reason,
        400,
        "invalid_dpop_proof",
      ]);
    }
    await waitFor(service, () =>
      bad.every(([reason]) => service.stderr().includes(`"reason":"${reason}"`) && service.stderr().includes(sid)),
    );
    expect((await grant(service.publicUrl, refreshToken, proofFor(key))).status).toBe(200);
  });

  test("a host that is none is the fault of its caller", async () => {
    const { refreshToken } = await signIn();
    for (const host of ["[", "a b", "x:99999", "%"]) {
      const headers = { ...cookie(refreshToken), host, dpop: proofFor(clientKey()) };
      const response = await request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers });
      expect(response.status, host).toBe(400);
    }
  });

  test("a client whose clock is off proves with a nonce of the service", async () => {
    const key = clientKey();
    const { refreshToken } = await signIn(key);
    const off = (hours: number, nonce?: string) => {
      const iat = Math.floor(Date.now() / 1000) + hours * 3600;
      return grant(service.publicUrl, refreshToken, proofFor(key, TOKEN, { claims: { iat, ...(nonce && { nonce }) } }));
    };
    for (const hours of [-1, 1]) {
      const asked = await off(hours);
      expect(outcome(asked)).toEqual([400, "use_dpop_nonce"]);
      const nonce = asked.headers.get("dpop-nonce") ?? "";
      expect((await off(hours, nonce)).status).toBe(200);
      expect(outcome(await off(hours, `${nonce.slice(0, -4)}AAAA`))).toEqual([400, "use_dpop_nonce"]);
    }
  });

  test("introspection says how to present a token", async () => {
    const key = clientKey();
    const user = await signIn(key);
    const headers = { ...bearer(service.adminToken), "content-type": "application/x-www-form-urlencoded" };
    const ask = async (token: string) =>
      json(
        await request(service.adminUrl, {
          method: "POST",
          path: "/v1/oauth/introspect",
          headers,
          body: String(new URLSearchParams({ token })),
        }),
      );
    const cnf = { jkt: key.thumbprint };
    expect(await ask(user.accessToken)).toMatchObject({ active: true, token_type: "DPoP", cnf });
    expect(await ask(user.refreshToken)).toMatchObject({ active: true, cnf });
    const got = await openAdmin(service).call(admin.getSession, { sessionId: user.sid }, bearer(service.adminToken));
    expect(message(got)).toMatchObject({ session: { deviceBinding: { thumbprint: key.thumbprint, bound: true } } });
  });

  test("a browser may prove, too: by cookie", async () => {
    const key = clientKey();
    const user = await logIn(service, { dpopJkt: key.thumbprint });
    const path = "/v1/auth/refresh";
    const byCookie = (token: string, proof?: string) =>
      request(service.publicUrl, {
        method: "POST",
        path,
        headers: { ...cookie(token), ...(proof && { dpop: proof }) },
      });
    const response = await byCookie(user.refreshToken, proofFor(key, path));
    expect(response.status).toBe(200);
    const next = successor(response) ?? "";
    expect((await byCookie(next)).status).toBe(401);
    expect((await byCookie(next, proofFor(key, REVOKE))).status).toBe(400);
    expect((await byCookie(next, proofFor(key, path))).status).toBe(200);
    // Pages that use the browser kit send no proofs. If a script in a page could bind the session to a key, every later refresh of the page
    // would be refused.
    const page = await signIn();
    const unbound = await byCookie(page.refreshToken, proofFor(key, path));
    expect((await byCookie(successor(unbound) ?? "")).status).toBe(200);
  });

  test("a thumbprint that is none is refused at the creation", async () => {
    await expect(logIn(service, { dpopJkt: "x" })).rejects.toThrow("dpop_jkt");
    await expect(logIn(service, { dpopJkt: "x".repeat(43) })).rejects.toThrow("dpop_jkt");
  });
});

test("bad proofs count as failures of their address", async () => {
  const service = await startService({ RATE_LIMIT_FAILURES: "3/60s" });
  onTestFinished(async () => void (await service.stop()));
  const { refreshToken } = await logIn(service, { clientId: "cli" });
  const statuses: number[] = [];
  for (let times = 0; times < 5; times++) statuses.push((await grant(service.publicUrl, refreshToken, "x")).status);
  expect(statuses).toEqual([400, 400, 400, 429, 429]);
  expect((await grant(service.publicUrl, refreshToken)).status).toBe(200);
});

describe("with DPOP_NONCES=on, behind a proxy", () => {
  let service: Service;
  const issuer = "https://auth.example/sessions";
  beforeAll(async () => {
    service = await startService({ DPOP_NONCES: "on", ISSUER: issuer });
  });
  afterAll(() => service.stop());

  test("every proof needs a nonce of its session, and is for the public URL", async () => {
    const key = clientKey();
    const { refreshToken } = await logIn(service, { clientId: "cli", dpopJkt: key.thumbprint });
    const ask = (claims: object, url = issuer + TOKEN) =>
      grant(service.publicUrl, refreshToken, dpop(key, url, { claims }));
    const asked = await ask({});
    expect(outcome(asked)).toEqual([400, "use_dpop_nonce"]);
    const nonce = asked.headers.get("dpop-nonce");
    expect(outcome(await ask({ nonce }, service.publicUrl + TOKEN))).toEqual([400, "invalid_dpop_proof"]);
    const granted = await ask({ nonce });
    expect(granted.status).toBe(200);
    expect(granted.headers.get("dpop-nonce")).toMatch(/^[\w-]{92}$/);
    const other = await logIn(service, { clientId: "cli", dpopJkt: key.thumbprint });
    const elsewhere = await grant(
      service.publicUrl,
      other.refreshToken,
      dpop(key, issuer + TOKEN, { claims: { nonce } }),
    );
    expect(outcome(elsewhere)).toEqual([400, "use_dpop_nonce"]);
  });
});
