/** Client certificates instead of tokens on the admin API. */
import { renameSync, writeFileSync } from "node:fs";
import { Agent, get } from "node:https";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { createVerifier } from "../../../src/verifier/index.ts";
import { clientAuthority, type Pem, selfSigned } from "../../support/certificate.ts";
import { type ClientTls, RPC_PROTOCOLS } from "../../support/clients.ts";
import { request } from "../../support/raw-http.ts";
import { runToExit, type Service, scratch, startService } from "../../support/service.ts";
import { admin, bearer, message, somebody } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const server = selfSigned();
const authority = clientAuthority();
const TOKEN = "full-".repeat(8);
const directory = scratch();
const path = (name: string) => join(directory, name);

const byName = (name: string, certificate: string, ...scopes: string[]) => ({ name, certificate, scopes });
const ADMINS = [
  byName("login", "login.internal", "sessions:create"),
  byName("gateway", "spiffe://test/gateway", "watch", "introspect"),
  byName("prometheus", "prometheus", "metrics"),
  byName("operator", "operator", "sessions:revoke", "signals:receive"),
];
function write(admins: readonly object[]): void {
  writeFileSync(path("admins.new"), JSON.stringify({ admins }));
  renameSync(path("admins.new"), path("admins.json"));
}

const ca = Buffer.from(server.cert);
const as = ({ cert, key }: Pem): Exclude<ClientTls, Buffer> => ({ ca, cert: Buffer.from(cert), key: Buffer.from(key) });
const login = as(authority.issue({ commonName: "some login", dns: "login.internal" }));
const gateway = as(authority.issue({ commonName: "gw-1", uri: "spiffe://test/gateway" }));
const prometheus = as(authority.issue({ commonName: "prometheus" }));
const operator = as(authority.issue({ commonName: "operator" }));
const unmapped = as(authority.issue({ commonName: "somebody" }));
const expired = as(authority.issue({ commonName: "x", dns: "login.internal" }, -60_000));
const strangers = clientAuthority("strangers");
const foreign = as(strangers.issue({ commonName: "x", dns: "login.internal" }));
const pretending = as(clientAuthority().issue({ commonName: "x", dns: "login.internal" }));

let service: Service;
let env: Record<string, string>;
beforeAll(async () => {
  writeFileSync(path("cert.pem"), server.cert);
  writeFileSync(path("key.pem"), server.key);
  writeFileSync(path("clients.pem"), authority.cert);
  write(ADMINS);
  env = {
    TLS_CERT_FILE: path("cert.pem"),
    TLS_KEY_FILE: path("key.pem"),
    ADMIN_TLS_CLIENT_CA_FILE: path("clients.pem"),
    ADMIN_TOKENS_FILE: path("admins.json"),
    ADMIN_TOKENS: TOKEN,
    METRICS_AUTH: "true",
    SIGNALS: "on",
    SIGNALS_URL: "https://signals.example",
  };
  service = await startService(env);
});
afterAll(() => service.stop());

describe.each(RPC_PROTOCOLS)("over $name", (kind) => {
  const create = async (tls: ClientTls, headers: Record<string, string> = {}) => {
    const caller = kind.open(service.adminUrl, tls);
    const response = await caller.call(admin.createSession, { subject: somebody() }, headers);
    caller.close();
    return response;
  };
  const UNAUTHENTICATED = { code: "E001_AUTH_FAILURE", rpc: "unauthenticated", text: "authentication failed" };
  const DENIED = { code: "E403_FORBIDDEN", rpc: "permission_denied", text: "not allowed" };

  test("a certificate may do what its name's scopes say", async () => {
    message(await create(login));
    expect(await create(gateway)).toMatchObject(DENIED);
  });

  test("a name that no entry has may do nothing", async () => {
    expect(await create(unmapped)).toMatchObject(DENIED);
  });

  test.each([
    ["that has expired", expired],
    ["of another authority", foreign],
  ])("a certificate %s is no credential", async (_, tls) => {
    expect(await create(tls)).toMatchObject(UNAUTHENTICATED);
  });

  test("a certificate whose signature is not the authority's is refused, or its connection dropped", async () => {
    const response = await create(pretending); // OpenSSL may drop the connection when a signature does not match.
    expect(response.ok).toBe(false);
    expect(["E001_AUTH_FAILURE", undefined]).toContain(!response.ok && response.code);
    message(await create(login));
  });

  test("no certificate and no token: unauthenticated; a token alone is enough", async () => {
    expect(await create(ca)).toMatchObject(UNAUTHENTICATED);
    message(await create(ca, bearer(TOKEN)));
    message(await create(foreign, bearer(TOKEN)));
  });

  test("a token that is sent counts alone, whatever the certificate", async () => {
    expect(await create(login, bearer("x".repeat(40)))).toMatchObject(UNAUTHENTICATED);
    expect(await create(login, { authorization: "Basic eDp4" })).toMatchObject(UNAUTHENTICATED);
    message(await create(unmapped, bearer(TOKEN)));
  });

  test("a stream ends when the name is no longer listed", async () => {
    const caller = kind.open(service.adminUrl, gateway);
    const watch = () => caller.stream(admin.watchRevocations, {}, {})[Symbol.asyncIterator]();
    const batches = await until(async () => {
      const open = watch();
      await open.next();
      return open;
    });
    write(ADMINS.filter(({ name }) => name !== "gateway"));
    const end = await (async () => {
      while (!(await batches.next()).done);
    })().catch(ConnectError.from);
    expect(end).toMatchObject({ code: Code.Unauthenticated });
    write(ADMINS);
    caller.close();
  });
});

test("metrics are for a certificate with their scope", async () => {
  const status = async (tls: ClientTls) => {
    const own = tls instanceof Buffer ? { ca: tls } : tls;
    return (await request(service.adminUrl, { path: "/metrics", ...own })).status;
  };
  expect([await status(ca), await status(foreign), await status(login), await status(prometheus)]).toEqual([
    401, 401, 403, 200,
  ]);
});

test.each([
  ["/v1/oauth/global-token-revocation", { "content-type": "application/x-www-form-urlencoded" }],
  ["/v1/ssf/streams", { "content-type": "text/plain" }],
  ["/auth.admin.v1.SessionAdminService/RevokeAllSessions", { "content-type": "application/json" }],
])("a browser that has a certificate is led to %s by no other page", async (path, headers) => {
  const post = async (from: Record<string, string>) => {
    const { status } = await request(service.adminUrl, {
      ...{ method: "POST", path, headers: { ...headers, ...from }, body: "{}", ...operator },
    });
    return status;
  };
  const own = await post({});
  for (const from of [{ "sec-fetch-site": "cross-site" }, { "sec-fetch-site": "same-site" }, { origin: "null" }]) {
    const status = await post(from);
    expect([from, status]).toEqual([from, 403]);
  }
  expect(await post({ "sec-fetch-site": "same-origin", origin: "null" })).toEqual(own);
  expect(own).not.toBe(403);
});

type TlsState = { isSessionReused(): boolean };

/** Requests the metrics on a separate connection. @returns the status, and whether the TLS session was resumed */
function metricsBy(agent: Agent): Promise<[number | undefined, boolean]> {
  const { port } = new URL(service.adminUrl);
  return new Promise((resolve, reject) => {
    // Connects to an address, because Node resumes no TLS session where the first address of a name refuses the connection.
    const at = { host: "127.0.0.1", servername: "localhost", port };
    const options = { ...at, path: "/metrics", agent, headers: { connection: "close" } };
    get(options, (response) => {
      const reused = "isSessionReused" in response.socket && (response.socket as never as TlsState).isSessionReused();
      response.resume().once("close", () => resolve([response.statusCode, reused]));
    }).once("error", reject);
  });
}

test("a certificate counts on a resumed connection as on the first", async () => {
  const agent = new Agent({ ...prometheus, maxCachedSessions: 10 });
  expect(await metricsBy(agent)).toEqual([200, false]);
  expect(await metricsBy(agent)).toEqual([200, true]);
  agent.destroy();
});

describe("when the file of the authorities changes", () => {
  const status = async (tls: ClientTls) =>
    (await request(service.adminUrl, { path: "/metrics", ...(tls instanceof Buffer ? { ca: tls } : tls) })).status;
  afterEach(async () => {
    writeFileSync(path("clients.pem"), authority.cert);
    await until(async () => expect(await status(prometheus)).toBe(200));
  });

  test("certificates of the new authority count, and those of the old one no longer, also on resumed connections", async () => {
    const agent = new Agent({ ...prometheus, maxCachedSessions: 10 });
    expect(await metricsBy(agent)).toEqual([200, false]);
    writeFileSync(path("clients.pem"), strangers.cert);
    // This certificate was signed by the new authority, but its name has no scope for metrics (403). With an authority that is not trusted,
    // the status would be 401.
    await until(async () => expect(await status(foreign)).toBe(403));
    expect(await status(prometheus)).toBe(401);
    expect(await metricsBy(agent)).toEqual([401, false]);
    agent.destroy();
  });

  test("a file without an authority is refused, and the authorities before stay in force", async () => {
    writeFileSync(path("clients.pem"), "nonsense");
    await until(async () => expect(service.stderr()).toContain('"certificate_refused"'));
    expect(await status(prometheus)).toBe(200);
    expect(await status(foreign)).toBe(401);
  });
});

test("client certificates go on counting when the server's own certificate is replaced", async () => {
  const next = selfSigned();
  writeFileSync(path("key.pem"), next.key);
  writeFileSync(path("cert.pem"), next.cert);
  const own = { ...prometheus, ca: Buffer.from(next.cert) };
  await until(async () => expect((await request(service.adminUrl, { path: "/metrics", ...own })).status).toBe(200));
  writeFileSync(path("key.pem"), server.key);
  writeFileSync(path("cert.pem"), server.cert);
  await until(async () => expect((await request(service.adminUrl, { path: "/healthz", ca })).status).toBe(200));
});

test("the public listener asks nobody for a certificate", async () => {
  expect((await request(service.publicUrl, { path: "/healthz", ca })).status).toBe(200);
});

test("the verifier follows the feed with a client certificate", async () => {
  const issuer = service.publicUrl;
  const verifier = createVerifier({
    issuer,
    audience: issuer,
    jwksUrl: `${service.adminUrl}/.well-known/jwks.json`,
    adminUrl: service.adminUrl,
    nodeOptions: gateway,
    fetch: async (url) => {
      const { hostname: _, pathname } = new URL(String(url));
      const response = await request(service.adminUrl, { path: pathname, ca });
      return new Response(response.body, { status: response.status, headers: response.headers });
    },
  });
  await verifier.ready;
  const caller = (RPC_PROTOCOLS[0] as (typeof RPC_PROTOCOLS)[number]).open(service.adminUrl, ca);
  const created = message(await caller.call(admin.createSession, { subject: somebody() }, bearer(TOKEN)));
  expect(await verifier.verify(created.accessToken)).toMatchObject({ ok: true });
  const sessionId = created.session?.sessionId ?? "";
  message(await caller.call(admin.revokeSession, { sessionId }, bearer(TOKEN)));
  await until(async () => expect(await verifier.verify(created.accessToken)).toEqual({ ok: false, reason: "revoked" }));
  verifier.close();
  caller.close();
});

describe("at the start", () => {
  test("a file without a certificate is refused", async () => {
    writeFileSync(path("none.pem"), "no certificate\n");
    const exit = await runToExit({ ...env, ADMIN_TLS_CLIENT_CA_FILE: path("none.pem") });
    expect(exit.stderr).toMatch(/^ADMIN_TLS_CLIENT_CA_FILE holds no certificate.*\n$/);
  });

  test("an authority without TLS is refused", async () => {
    const exit = await runToExit({ ADMIN_TLS_CLIENT_CA_FILE: path("clients.pem") });
    expect(exit.stderr).toMatch(/^ADMIN_TLS_CLIENT_CA_FILE needs TLS_CERT_FILE.*\n$/);
  });
});
