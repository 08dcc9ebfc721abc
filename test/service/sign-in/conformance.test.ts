/**
 * The checks of the OpenID Foundation's conformance plan for relying parties `oidcc-client-basic-certification-test-plan`, each by the name
 * of its module. The modules of `oidcc-client-back-channel-logout-rp-basic` are in backchannel-logout.test.ts.
 */
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { exportJWK, generateKeyPair, type JWTHeaderParameters, SignJWT, UnsecuredJWT } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { oneProvider } from "../../../src/service/config/providers.ts";
import { createProvider } from "../../../src/service/sign-in/provider.ts";
import { scratch } from "../../support/service.ts";

const SECRET = "a secret of the client, which is long";
const BASIC = `Basic ${Buffer.from(`app:${encodeURIComponent(SECRET).replaceAll("%20", "+")}`).toString("base64")}`;
const [ec, rsa, other] = await Promise.all([
  generateKeyPair("ES256", { extractable: true }),
  generateKeyPair("RS256", { extractable: true }),
  generateKeyPair("RS256", { extractable: true }),
]);

type Claims = Readonly<Record<string, unknown>>;
/** What the provider does in one test. */
type Scenario = {
  readonly claims?: Claims;
  readonly header?: Partial<JWTHeaderParameters>;
  readonly key?: CryptoKey;
  readonly unsigned?: boolean;
  /** The key set; by default the RSA key alone. */
  readonly keys?: "two";
  readonly userinfo?: Claims;
  /** Members of the metadata in place of the usual ones. */
  readonly metadata?: Claims;
  /** What is sent in place of a response of the provider. */
  readonly fault?: Fault;
};
type Fault = { readonly path: string; readonly status: number; readonly headers?: object; readonly body?: object };
let scenario: Scenario = {};
let nonce = "";
let issuer: string;
const authorizations: (string | undefined)[] = [];

async function idToken(): Promise<string> {
  const now = Math.floor(Date.now() / 1000);
  const usual = { iss: issuer, aud: "app", sub: "alice", iat: now, exp: now + 120, nonce };
  const all = Object.entries({ ...usual, ...scenario.claims }).filter(([, value]) => value !== undefined);
  const claims = Object.fromEntries(all);
  if (scenario.unsigned) return new UnsecuredJWT(claims).encode();
  const header = Object.entries({ alg: "RS256", kid: "rsa", ...scenario.header }).filter(([, value]) => value);
  return new SignJWT(claims)
    .setProtectedHeader(Object.fromEntries(header) as JWTHeaderParameters)
    .sign(scenario.key ?? rsa.privateKey);
}

async function responseTo(path: string): Promise<object> {
  const jwk = async (key: CryptoKey, kid: string) => ({ ...(await exportJWK(key)), kid, use: "sig" });
  if (path === "/jwks") {
    const second = scenario.keys === "two" ? [await jwk(other.publicKey, "other")] : [];
    return { keys: [await jwk(rsa.publicKey, "rsa"), ...second] };
  }
  if (path === "/token") return { access_token: "a", token_type: "Bearer", id_token: await idToken() };
  if (path === "/userinfo") return { sub: "alice", ...scenario.userinfo };
  return {
    issuer,
    ...{ authorization_endpoint: `${issuer}/auth`, token_endpoint: `${issuer}/token`, jwks_uri: `${issuer}/jwks` },
    userinfo_endpoint: `${issuer}/userinfo`,
    id_token_signing_alg_values_supported: ["RS256"],
    ...scenario.metadata,
  };
}

const server = createServer((request, response) => {
  const { fault } = scenario;
  if (fault !== undefined && request.url === fault.path) {
    const { status, body, headers = {} } = fault;
    const type = { "content-type": body === undefined ? "text/html" : "application/json" };
    return void response.writeHead(status, { ...type, ...headers }).end(body && JSON.stringify(body));
  }
  if (request.url === "/token") authorizations.push(request.headers.authorization);
  void responseTo(request.url ?? "").then((body) =>
    response.setHeader("content-type", "application/json").end(JSON.stringify(body)),
  );
});
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => void server.close());

function providerFor(
  given: Scenario,
  credential: Parameters<typeof oneProvider>[0]["credential"] = { kind: "secret", secret: SECRET },
) {
  const settings = oneProvider({ issuer, clientId: "app", credential });
  return createProvider({ ...settings, userinfo: given.userinfo !== undefined });
}

/** Signs in at the provider. Returns the claims of the user, or why there are none. */
async function signIn(given: Scenario, provider = providerFor(given)) {
  scenario = given;
  const callback = "https://app.example.com/v1/auth/callback";
  const begun = await provider.begin(callback, {});
  if (!begun.ok) return begun.reason;
  nonce = begun.url.searchParams.get("nonce") ?? "";
  expect(begun.url.searchParams.get("scope")?.split(" ")).toContain("openid");
  const login = { provider: "provider", destination: "/", ...begun.secrets };
  const finished = await provider.finish(new URL(`?code=c&state=${begun.secrets.state}`, callback), login);
  return finished.ok ? finished.claims : finished.reason;
}

test.each<[module: string, Scenario]>([
  ["oidcc-client-test", {}],
  ["oidcc-client-test-idtoken-sig-rs256", { header: { kid: "rsa" } }],
  ["oidcc-client-test-kid-absent-single-jwks", { header: { kid: "" } }],
  ["oidcc-client-test-scope-userinfo-claims", { userinfo: { email: "alice@example.com" } }],
])("%s: the user is signed in", async (_, given) => {
  expect(await signIn(given)).toMatchObject({ sub: "alice", ...given.userinfo });
});

test.each<[module: string, Scenario]>([
  ["oidcc-client-test-invalid-iss", { claims: { iss: "https://other.example" } }],
  ["oidcc-client-test-missing-sub", { claims: { sub: undefined } }],
  ["oidcc-client-test-invalid-aud", { claims: { aud: "other" } }],
  ["oidcc-client-test-missing-iat", { claims: { iat: undefined } }],
  // The plan lets a relying party refuse a token that names none of several keys.
  ["oidcc-client-test-kid-absent-multiple-jwks", { header: { kid: "" }, keys: "two" }],
  // The plan has this module for clients that take unsigned tokens. This one takes none.
  ["oidcc-client-test-idtoken-sig-none", { unsigned: true }],
  ["oidcc-client-test-invalid-sig-rs256", { key: other.privateKey }],
  ["oidcc-client-test-userinfo-invalid-sub", { userinfo: { sub: "mallory" } }],
  ["oidcc-client-test-nonce-invalid", { claims: { nonce: "another" } }],
  ["a signature by an algorithm that the provider does not name", { header: { alg: "ES256" }, key: ec.privateKey }],
])("%s: nobody is signed in", async (_, given) => {
  expect(await signIn(given)).toBe("invalid");
});

test("what the userinfo endpoint says about the authentication does not count, and neither does it replace a claim", async () => {
  const [acr, amr, sid] = ["gold", ["mfa"], "a session"];
  const userinfo = { acr, amr, sid, auth_time: 1, session_expiry: 2, nonce: "another", email: "alice@example.com" };
  const claims = await signIn({ userinfo });
  expect(claims).toMatchObject({ sub: "alice", nonce, email: "alice@example.com" });
  for (const name of ["acr", "amr", "sid", "auth_time", "session_expiry"]) expect(claims).not.toHaveProperty(name);
  expect(await signIn({ userinfo, claims: { acr: "silver" } })).toMatchObject({ acr: "silver" });
});

describe("a provider on this machine that names a URL of another machine by http", () => {
  const ELSEWHERE = "http://login.example/endpoint";
  test.each([
    "authorization_endpoint",
    "pushed_authorization_request_endpoint",
    "token_endpoint",
    "jwks_uri",
    "userinfo_endpoint",
  ])("is not followed there: %s", async (name) => {
    expect(await signIn({ userinfo: {}, metadata: { [name]: ELSEWHERE } })).toBe("invalid");
  });

  test("is not followed there: end_session_endpoint", async () => {
    scenario = { metadata: { end_session_endpoint: ELSEWHERE } };
    expect(await providerFor(scenario).signOutUrl("https://app.example.com/")).toBeUndefined();
    scenario = { metadata: { end_session_endpoint: "https://login.example/out" } };
    expect((await providerFor(scenario).signOutUrl("https://app.example.com/"))?.host).toBe("login.example");
  });
});

describe("a fault of the provider, or of what is in front of it, refuses nobody", () => {
  const elsewhere = { location: "/elsewhere" };
  test.each<[status: number, fault?: Partial<Fault>]>([
    [200],
    [302, { headers: elsewhere }],
    [307, { headers: elsewhere }],
    [404],
    [408],
    [425],
    [429],
    [429, { body: { error: "slow_down" } }],
    [500],
    [503, { body: { error: "temporarily_unavailable" } }],
    [503, { headers: { "www-authenticate": "Bearer" } }],
  ])("%i %j", async (status, fault) => {
    for (const path of ["/.well-known/openid-configuration", "/token", "/jwks", "/userinfo"]) {
      const outcome = await signIn({ userinfo: {}, fault: { path, status, ...fault } });
      expect([path, outcome]).toEqual([path, "unavailable"]);
    }
  });

  test.each(["temporarily_unavailable", "server_error"])("400 %s of the token endpoint", async (error) => {
    expect(await signIn({ fault: { path: "/token", status: 400, body: { error } } })).toBe("unavailable");
  });
});

test.each<[error: string, status: number, reason: string, headers?: object]>([
  ["invalid_grant", 400, "used"],
  ["invalid_client", 401, "invalid"],
  ["invalid_client", 401, "invalid", { "www-authenticate": 'Basic realm="tokens"' }],
])("the error %s of the token endpoint with %i is %s", async (error, status, reason, headers = {}) => {
  expect(await signIn({ fault: { path: "/token", status, headers, body: { error } } })).toBe(reason);
});

test("oidcc-client-test-client-secret-basic: the client authenticates by HTTP Basic", async () => {
  await signIn({});
  expect(authorizations.at(-1)).toBe(BASIC);
});

test("while the file of the secret or of the key cannot be used, sign-in is not available, and no user is refused", async () => {
  const path = join(scratch(), "credential");
  const secret = providerFor({}, { kind: "secret_file", path });
  const key = providerFor({}, { kind: "key_file", path, algorithm: "ES256" });
  const states = [
    () => {},
    () => writeFileSync(path, " \n"),
    () => writeFileSync(path, "-----BEGIN"),
    () => rmSync(path),
  ];
  for (const [index, change] of states.entries()) {
    change();
    expect(await signIn({}, key)).toBe("unavailable");
    // Any text is a secret.
    if (index !== 2) expect(await signIn({}, secret)).toBe("unavailable");
  }
  writeFileSync(path, `${SECRET}\n`);
  expect(await signIn({}, secret)).toMatchObject({ sub: "alice" });
});

test("a login after one by a key that the provider has just published succeeds", async () => {
  const provider = providerFor({});
  expect(await signIn({}, provider)).toMatchObject({ sub: "alice" });
  const next: Scenario = { keys: "two", header: { kid: "other" }, key: other.privateKey };
  expect(await signIn(next, provider)).toBe("invalid");
  expect(await signIn(next, provider)).toMatchObject({ sub: "alice" });
});
