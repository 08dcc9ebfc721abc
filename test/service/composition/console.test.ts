/** Attacks on the server side of the console: its cookie, its sign-in, its pages. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { renameSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { request } from "../../support/raw-http.ts";
import { type Service, scratch, startService, waitFor } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const TOKEN = "full-".repeat(8);
const OWN = { "x-session-console": "1" };
const JSON_TYPE = { "content-type": "application/json" };
const OPERATOR = "operator".repeat(4);
const ADMINS = join(scratch(), "admins.json");
const LIST = "/console/api/auth.admin.v1.SessionAdminService/ListSessions";

let service: Service;
let cookie: string;

beforeAll(async () => {
  allowOperator(["sessions:read", "metrics"]);
  service = await startService({
    ADMIN_TOKENS: TOKEN,
    ADMIN_TOKENS_FILE: ADMINS,
    RATE_LIMIT_FAILURES: "5/60s",
    TRUST_PROXY: "1",
  });
  cookie = cookieOf(await signIn());
});
afterAll(() => service.stop());

/** Sets the scopes of the operator's token. Without scopes, the token is removed. */
function allowOperator(scopes: readonly string[]): void {
  const hash = createHash("sha256").update(OPERATOR).digest("hex");
  const admins = scopes.length === 0 ? [] : [{ name: "operator", hash, scopes }];
  writeFileSync(`${ADMINS}.new`, JSON.stringify({ admins }));
  renameSync(`${ADMINS}.new`, ADMINS);
}

function signIn(body: string = JSON.stringify({ token: TOKEN }), headers: Readonly<Record<string, string>> = {}) {
  return request(service.adminUrl, {
    method: "POST",
    path: "/console/session",
    headers: { ...OWN, ...JSON_TYPE, ...headers },
    body,
  });
}
const cookieOf = (response: { readonly headers: Headers }) => response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
const list = (headers: Readonly<Record<string, string>>, path = LIST) =>
  request(service.adminUrl, { method: "POST", path, headers: { ...JSON_TYPE, ...headers }, body: "{}" });

test("with the cookie and the page's header the admin API responds; without either it does not", async () => {
  expect((await list({ ...OWN, cookie })).status).toBe(200);
  expect((await list(OWN)).status).toBe(401);
  expect((await list({ cookie })).status).toBe(403);
  expect((await list({ ...OWN, cookie: `${cookie}x` })).status).toBe(401);
});

test.each([
  ["another site", { "sec-fetch-site": "cross-site" }],
  ["a sibling", { "sec-fetch-site": "same-site" }],
  ["another origin", { origin: "http://127.0.0.1:1" }],
  ["no origin", { origin: "null" }],
])("a request from %s is refused, whatever it carries", async (_, headers) => {
  expect((await list({ ...OWN, cookie, ...headers })).status).toBe(403);
  expect((await signIn(undefined, headers)).status).toBe(403);
});

test("no other origin may send the page's header: there is no CORS", async () => {
  const response = await request(service.adminUrl, {
    method: "OPTIONS",
    path: LIST,
    headers: { origin: "https://evil.example", "access-control-request-headers": "x-session-console" },
  });
  expect(response.headers.get("access-control-allow-origin")).toBeNull();
  expect(response.headers.get("access-control-allow-headers")).toBeNull();
});

test("the cookie is no credential anywhere else, and a planted one beside it makes neither count", async () => {
  const direct = await list({ ...OWN, cookie }, "/auth.admin.v1.SessionAdminService/ListSessions");
  expect(direct.status).toBe(401);
  const other = cookieOf(await signIn());
  expect((await list({ ...OWN, cookie: `${cookie}; ${other}` })).status).toBe(401);
  expect((await list({ ...OWN, cookie: `session_console=planted; ${cookie}` })).status).toBe(401);
});

test.each([
  "auth.admin.v1.SessionAdminService/CreateSession",
  "auth.admin.v1.SessionAdminService/WatchRevocations",
  "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
  "metrics",
])("what the page has no use for is not passed on: %s", async (path) => {
  expect((await list({ ...OWN, cookie }, `/console/api/${path}`)).status).toBe(404);
});

test("by https the cookie is Secure and of this host alone", async () => {
  const response = await signIn(undefined, { "x-forwarded-proto": "https" });
  expect(response.headers.getSetCookie()).toEqual([
    expect.stringMatching(/^__Host-session_console=[\w-]{43}; Path=\/; Secure; HttpOnly; SameSite=Strict$/),
  ]);
  const secure = cookieOf(response);
  expect((await list({ ...OWN, cookie: secure, "x-forwarded-proto": "https" })).status).toBe(200);
  // A sibling domain can set a cookie without a prefix in its name, so over https the console ignores such a cookie.
  const plain = secure.replace("__Host-", "");
  expect((await list({ ...OWN, cookie: plain, "x-forwarded-proto": "https" })).status).toBe(401);
});

test("signing out ends the sign-in, not only the cookie", async () => {
  const own = cookieOf(await signIn());
  const out = await request(service.adminUrl, {
    method: "DELETE",
    path: "/console/session",
    headers: { ...OWN, cookie: own },
  });
  expect(out.headers.getSetCookie()).toEqual([expect.stringMatching(/^session_console=; .*Max-Age=0$/)]);
  expect((await list({ ...OWN, cookie: own })).status).toBe(401);
});

test("signing out ends the sign-in also if another service on this host has set a cookie of that name", async () => {
  const own = cookieOf(await signIn());
  await request(service.adminUrl, {
    method: "DELETE",
    path: "/console/session",
    headers: { ...OWN, cookie: `session_console=planted; ${own}` },
  });
  expect((await list({ ...OWN, cookie: own })).status).toBe(401);
});

test("signing in takes no text from outside, and ends what the browser was signed in as before", async () => {
  const first = cookieOf(await signIn(undefined, { cookie: "session_console=planted" }));
  expect(first).not.toContain("planted");
  const second = cookieOf(await signIn(undefined, { cookie: first }));
  expect(second).not.toBe(first);
  expect((await list({ ...OWN, cookie: first })).status).toBe(401);
  expect((await list({ ...OWN, cookie: second })).status).toBe(200);
});

test("a sign-in follows its token: scopes that are taken away, and the token itself", async () => {
  const own = cookieOf(await signIn(JSON.stringify({ token: OPERATOR })));
  const get = (path: string) => request(service.adminUrl, { path, headers: { ...OWN, cookie: own } });
  expect([(await list({ ...OWN, cookie: own })).status, (await get("/console/live")).status]).toEqual([200, 200]);
  allowOperator(["metrics"]);
  await until(async () => expect((await list({ ...OWN, cookie: own })).status).toBe(403));
  expect(JSON.parse((await get("/console/session")).body)).toMatchObject({ name: "operator", scopes: ["metrics"] });
  allowOperator([]);
  await until(async () => expect((await list({ ...OWN, cookie: own })).status).toBe(401));
  expect((await get("/console/live")).status).toBe(401);
  expect((await get("/console/session")).status).toBe(401);
});

test("a client that goes away in the middle of its sign-in is no bug", async () => {
  const { port, hostname, host } = new URL(service.adminUrl);
  const socket = connect(Number(port), hostname);
  const head = ["POST /console/session HTTP/1.1", `host: ${host}`, "x-session-console: 1", "content-length: 9"];
  socket.write([...head, "content-type: application/json", "expect: 100-continue", "", ""].join("\r\n"));
  // The response shows that the service now reads the body.
  await once(socket, "data");
  socket.resetAndDestroy();
  await once(socket, "close");
  expect((await signIn()).status).toBe(200);
  expect(service.stderr()).not.toContain('"event":"bug"');
});

test("what the console logs names the request that caused it", async () => {
  const caused = (id: string) => ({ ...OWN, "x-request-id": id });
  const own = cookieOf(await signIn(undefined, caused("in-1")));
  const out = { method: "DELETE", path: "/console/session", headers: { ...caused("out-1"), cookie: own } };
  await request(service.adminUrl, out);
  await signIn(JSON.stringify({ token: "guess".repeat(8) }), { ...caused("bad-1"), "x-forwarded-for": "192.0.2.10" });
  for (const [event, id] of [
    ["console_signed_in", "in-1"],
    ["console_signed_out", "out-1"],
    ["authn_failed", "bad-1"],
  ]) {
    await waitFor(service, () => {
      const line = service
        .stderr()
        .split("\n")
        .find((each) => each.includes(`"event":"${event}"`) && each.includes(`"${id}"`));
      return line?.includes(`"requestId":"${id}"`) || undefined;
    });
  }
});

test.each([
  ["no JSON", "token"],
  ["no token", "{}"],
  ["a token that is no text", '{"token":1}'],
  ["too much", JSON.stringify({ token: "x".repeat(10_000) })],
])("a sign-in with %s is refused", async (_, body) => {
  expect((await signIn(body)).status).toBe(400);
});

test("a form cannot sign anybody in", async () => {
  const response = await signIn(`token=${TOKEN}`, { "content-type": "application/x-www-form-urlencoded" });
  expect(response.status).toBe(400);
});

test("guessing is limited by address, and the right token still signs in", async () => {
  const guess = () => signIn(JSON.stringify({ token: "guess".repeat(8) }), { "x-forwarded-for": "192.0.2.9" });
  const statuses: number[] = [];
  for (let at = 0; at < 7; at++) statuses.push((await guess()).status);
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429]);
  expect((await guess()).headers.get("retry-after")).toMatch(/^\d+$/);
  expect((await signIn(undefined, { "x-forwarded-for": "192.0.2.9" })).status).toBe(200);
  expect(service.stderr()).toContain('"operation":"ConsoleSignIn"');
  expect(service.stderr()).toContain('"event":"console_signed_in"');
  expect(service.stderr()).not.toContain(TOKEN);
});

test("signing in and out are logged with the credential's name", async () => {
  expect(service.stderr()).toMatch(/"event":"console_signed_in","by":"ADMIN_TOKENS\[0\]","address":"127\.0\.0\.1"/);
  expect(service.stderr()).toMatch(/"event":"console_signed_out","by":"ADMIN_TOKENS\[0\]"/);
});

describe("the page", () => {
  test("it runs nothing that is inline or from elsewhere, and stands in no frame", async () => {
    const response = await request(service.adminUrl, { path: "/console" });
    expect(response.status).toBe(200);
    const policy = response.headers.get("content-security-policy") ?? "";
    expect(policy.split("; ").toSorted()).toEqual([
      "base-uri 'none'",
      "connect-src 'self'",
      "default-src 'none'",
      "form-action 'none'",
      "frame-ancestors 'none'",
      "img-src 'self'",
      "require-trusted-types-for 'script'",
      "script-src 'self'",
      "style-src 'self'",
    ]);
    expect(response.headers.get("x-frame-options")).toBe("DENY");
    expect(response.headers.get("referrer-policy")).toBe("no-referrer");
    expect(response.body).not.toMatch(/<script>|style=|https?:\/\//);
  });

  test("its script names no other host", async () => {
    const { status, body, headers } = await request(service.adminUrl, { path: "/console/main.js" });
    expect(status).toBe(200);
    expect(headers.get("content-type")).toContain("javascript");
    const hosts = [...body.matchAll(/https?:\/\/[\w.-]+/g)].map(([url]) => url);
    expect([...new Set(hosts)].filter((url) => !/w3\.org|127\.0\.0\.1|localhost/.test(url))).toEqual([]);
  });

  test.each(["/console/../data", "/console/main.tsx", "/console/x", "/console/"])("%s is not there", async (path) => {
    expect([401, 403, 404]).toContain((await request(service.adminUrl, { path, headers: { ...OWN, cookie } })).status);
  });

  test("only the admin listener has it", async () => {
    expect((await request(service.publicUrl, { path: "/console" })).status).toBe(404);
  });
});

test("with CONSOLE=off there is none", async () => {
  const without = await startService({ CONSOLE: "off" });
  expect((await request(without.adminUrl, { path: "/console" })).status).toBe(404);
  await without.stop();
});
