/** The headers that every response has, and requests that name two hosts. */
import { writeFileSync } from "node:fs";
import { connect as connectHttp2 } from "node:http2";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { selfSigned } from "../../support/certificate.ts";
import { type RawRequest, request } from "../../support/raw-http.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { bearer } from "../../support/sessions.ts";

const { cert, key } = selfSigned();
const ca = Buffer.from(cert);
const ORIGIN = "https://app.example";

let plain: Service;
let secure: Service;
let proxied: Service;
beforeAll(async () => {
  const directory = scratch();
  const [TLS_CERT_FILE, TLS_KEY_FILE] = [join(directory, "cert.pem"), join(directory, "key.pem")];
  writeFileSync(TLS_CERT_FILE, cert);
  writeFileSync(TLS_KEY_FILE, key);
  [plain, secure, proxied] = await Promise.all([
    startService({ ALLOWED_ORIGINS: ORIGIN }),
    startService({ TLS_CERT_FILE, TLS_KEY_FILE, HSTS_MAX_AGE: "1h" }),
    startService({ TRUST_PROXY: "1" }),
  ]);
});
afterAll(() => Promise.all([plain, secure, proxied].map((service) => service.stop())));

const JSON_TYPE = { "content-type": "application/json" };
const PREFLIGHT = { origin: ORIGIN, "access-control-request-method": "POST" };
const RPC = "/auth.v1.SessionService";
const ADMIN_RPC = "/auth.admin.v1.SessionAdminService";
const PUBLIC: [what: string, wanted: RawRequest, status: number][] = [
  ["a page", { path: "/healthz" }, 200],
  ["the key set", { path: "/.well-known/jwks.json" }, 200],
  ["the document", { path: "/openapi.json" }, 200],
  ["the reference page", { path: "/docs" }, 200],
  ["its script", { path: "/docs/swagger-ui-bundle.js" }, 200],
  ["a page by another method", { method: "POST", path: "/healthz" }, 405],
  ["a JSON route", { method: "POST", path: "/v1/auth/refresh" }, 401],
  ["a JSON route by another method", { path: "/v1/auth/refresh" }, 405],
  ["an RPC", { method: "POST", path: `${RPC}/Refresh`, headers: JSON_TYPE, body: "{}" }, 401],
  ["an RPC of another type", { method: "POST", path: `${RPC}/Refresh`, headers: { "content-type": "x/y" } }, 415],
  ["no route", { path: "/nowhere" }, 404],
  ["a path that is none", { path: "/v1/auth/sessions/%zz" }, 405],
];

const fields = (headers: Headers) =>
  ["x-content-type-options", "cross-origin-resource-policy", "strict-transport-security"].map((name) =>
    headers.get(name),
  );

describe("every response of the public API", () => {
  test.each([
    ...PUBLIC,
    ["a preflight", { method: "OPTIONS", path: "/v1/auth/refresh", headers: PREFLIGHT }, 204],
  ] as typeof PUBLIC)("%s", async (_, wanted, status) => {
    const response = await request(plain.publicUrl, wanted);
    expect(response.status).toBe(status);
    expect(fields(response.headers)).toEqual(["nosniff", "same-origin", null]);
  });

  test.each(PUBLIC)("over TLS of ours has HSTS: %s", async (_, wanted, status) => {
    const response = await request(secure.publicUrl, { ...wanted, ca });
    expect(response.status).toBe(status);
    expect(fields(response.headers)).toEqual(["nosniff", "same-origin", "max-age=3600"]);
  });

  test.each(PUBLIC)("has HSTS where a trusted proxy reports https, and nowhere else: %s", async (_, wanted) => {
    const via = (scheme: string) =>
      request(proxied.publicUrl, { ...wanted, headers: { "x-forwarded-proto": scheme, ...wanted.headers } });
    expect(fields((await via("https")).headers)).toEqual(["nosniff", "same-origin", "max-age=31536000"]);
    expect(fields((await via("http")).headers)).toEqual(["nosniff", "same-origin", null]);
    // A proxy appends the scheme that it has seen to those that the client sent, so only the last one is trusted.
    expect(fields((await via("https, http")).headers)).toEqual(["nosniff", "same-origin", null]);
    expect(fields((await request(proxied.publicUrl, wanted)).headers)).toEqual(["nosniff", "same-origin", null]);
  });

  test("no header of a proxy is trusted unless TRUST_PROXY is set", async () => {
    const response = await request(plain.publicUrl, { path: "/healthz", headers: { "x-forwarded-proto": "https" } });
    expect(fields(response.headers)).toEqual(["nosniff", "same-origin", null]);
  });
});

test.each<[string, RawRequest, number]>([
  ["a page", { path: "/metrics" }, 200],
  ["an RPC", { method: "POST", path: `${ADMIN_RPC}/ListSessions`, headers: JSON_TYPE, body: "{}" }, 401],
  ["no route", { path: "/nowhere" }, 404],
])("every response of the admin API: %s", async (_, wanted, status) => {
  const headers = { ...bearer(plain.adminToken), ...wanted.headers };
  const response = await request(plain.adminUrl, {
    ...wanted,
    headers: status === 401 ? { ...wanted.headers } : headers,
  });
  expect(response.status).toBe(status);
  expect(fields(response.headers)).toEqual(["nosniff", "same-origin", null]);
});

test.each([
  ["two hosts", "Host: a\r\nHost: b"],
  ["two hosts, one of them empty", "Host: a\r\nhost:"],
  ["the same host twice", "HOST: a\r\nHost: a"],
])("%s are refused, with the headers of every response", async (_, hosts) => {
  for (const [url, path] of [
    [plain.publicUrl, "/v1/auth/refresh"],
    [plain.publicUrl, "/healthz"],
    [plain.adminUrl, "/healthz"],
  ] as const) {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.end(`GET ${path} HTTP/1.1\r\n${hosts}\r\nConnection: close\r\n\r\n`);
    let heard = "";
    for await (const chunk of socket.setEncoding("utf8")) heard += chunk;
    expect(heard).toMatch(/^HTTP\/1\.1 400 /);
    expect(heard).toMatch(/nosniff[\s\S]*same-origin/);
    if (url === plain.publicUrl) expect(heard).toContain("E400_INVALID_REQUEST");
  }
});

test("a whole URL as target has one reading on pages, routes and RPCs: its path, and a host that is not another one", async () => {
  const send = async (at: string, method: string, target: (host: string) => string) => {
    const { hostname, port, host } = new URL(at);
    const socket = connect(Number(port), hostname);
    const head = `${method} ${target(host)} HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/json`;
    socket.end(`${head}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
    let heard = "";
    for await (const chunk of socket.setEncoding("utf8")) heard += chunk;
    return heard.slice(9, 12);
  };
  for (const [at, method, path, status] of [
    [plain.publicUrl, "GET", "/healthz", "200"],
    [plain.publicUrl, "GET", "/.well-known/openid-configuration?a", "200"],
    [plain.publicUrl, "POST", "/v1/auth/refresh", "401"],
    [plain.publicUrl, "POST", "/auth.v1.SessionService/Refresh", "401"],
    [plain.publicUrl, "GET", "", "404"],
    [plain.publicUrl, "GET", "?a", "404"],
    [plain.adminUrl, "GET", "/metrics", "200"],
  ] as const) {
    expect(await send(at, method, (host) => `http://${host}${path}`), path).toBe(status);
    expect(await send(at, method, (host) => `HTTP://${host.toUpperCase()}${path}`), path).toBe(status);
    expect(await send(at, method, () => `http://other.example${path}`), path).toBe("400");
  }
});

test.each([
  ["http://app.example:80", "app.example", true],
  ["http://APP.example", "app.example:80", true],
  ["https://app.example:443", "App.example", true],
  ["http://[::1]:80", "[::1]", true],
  ["http://app.example:443", "app.example", false],
  ["https://app.example:80", "app.example", false],
  ["http://app.example:8080", "app.example:80", false],
  ["http://user@app.example", "app.example", false],
  ["http://app.example\\.evil.example", "app.example", false],
  ["http://app.example:80:80", "app.example", false],
])("a whole URL of %s is for the host %s: %s", async (origin, host, expected) => {
  const { hostname, port } = new URL(plain.publicUrl);
  const socket = connect(Number(port), hostname);
  socket.end(`GET ${origin}/healthz HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
  let heard = "";
  for await (const chunk of socket.setEncoding("utf8")) heard += chunk;
  expect(heard.slice(9, 12)).toBe(expected ? "200" : "400");
});

test("over HTTP/2 a host that is not the authority is refused", async () => {
  const session = connectHttp2(plain.publicUrl);
  const statusWith = async (host: string) => {
    const stream = session.request({ ":path": "/healthz", ":authority": "a", host });
    stream.resume();
    const status = await new Promise((resolve) => {
      stream.once("response", (headers) => resolve(headers[":status"])).once("error", () => resolve("reset"));
    });
    return status;
  };
  expect(await statusWith("b")).toBe(400);
  expect(await statusWith("a")).toBe(200);
  session.destroy();
});
