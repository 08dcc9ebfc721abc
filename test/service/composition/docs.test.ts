/** The OpenAPI documents and the page that displays them, as the service serves them. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import manifest from "../../../package.json" with { type: "json" };
import { mayOfferSignIn } from "../../../src/service/composition/announce.ts";
import { readConfig } from "../../../src/service/config/config.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, startService } from "../../support/service.ts";

let open: Service;
let closed: Service;
beforeAll(async () => {
  [open, closed] = await Promise.all([startService(), startService({ DOCS: "false" })]);
});
afterAll(async () => {
  await Promise.all([open.stop(), closed.stop()]);
});

const get = (path: string, service = open) => request(service.publicUrl, { path });

test("the document is the generated one, whether the page is wanted or not", async () => {
  for (const service of [open, closed]) {
    const response = await get("/openapi.json", service);
    expect([response.status, response.headers.get("content-type")]).toEqual([200, "application/json"]);
    expect(response.body).toBe(readFileSync(new URL("../../../gen/openapi.json", import.meta.url), "utf8"));
  }
});

/** Returns the URLs that a page loads. */
const asked = (html: string) => [...html.matchAll(/(?:src|href)="([^"]*)"/g)].map((match) => match[1] as string);

test("the page asks nobody but the service, and all that it asks for is there", async () => {
  const page = await get("/docs");
  expect([page.status, page.headers.get("content-type")]).toEqual([200, "text/html; charset=utf-8"]);
  const files = asked(page.body).filter((url) => !url.startsWith("data:"));
  expect(files.length).toBeGreaterThanOrEqual(3);
  for (const file of files) {
    expect(new URL(file, `${open.publicUrl}/docs`).origin).toBe(open.publicUrl);
    const response = await get(new URL(file, `${open.publicUrl}/docs`).pathname);
    expect([file, response.status]).toEqual([file, 200]);
    expect(response.headers.get("cache-control")).toMatch(/^public, max-age=[1-9]/);
    expect(response.headers.get("x-content-type-options")).toBe("nosniff");
  }
});

test("its policy allows nothing inline, nothing from elsewhere, and no frame around it", async () => {
  const page = await get("/docs");
  const policy = page.headers.get("content-security-policy") ?? "";
  expect(policy).toMatch(/^default-src 'none';/);
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  expect(page.body).not.toMatch(/<style|\sstyle=|\son[a-z]+=|<script(?![^>]*\ssrc=)/);
});

test("Swagger UI does not send the document to its online validator", async () => {
  expect((await get("/docs/reference.js")).body).toContain("validatorUrl: null");
});

test.each([
  "/docs/",
  "/docs/index.html",
  "/docs/package.json",
  "/docs/../package.json",
  "/docs/..%2f..%2fpackage.json",
  "/docs/%2e%2e/%2e%2e/package.json",
  "//docs",
  "/docs/swagger-ui.css/",
  "/docs\\..\\package.json",
])("%s is not there", async (path) => {
  expect((await get(path)).status).toBe(404);
});

test("with DOCS=false there is no page", async () => {
  for (const path of [
    "/docs",
    "/docs/reference.js",
    "/docs/sign-in",
    "/docs/swagger-ui.css",
    "/docs/swagger-ui-bundle.js",
  ]) {
    expect([path, (await get(path, closed)).status]).toEqual([path, 404]);
  }
});

test("the admin API has a document and a page of its own, which the public API has not", async () => {
  const document = await request(open.adminUrl, { path: "/openapi.json" });
  const { info, paths } = JSON.parse(document.body) as { info: { version: string }; paths: object };
  expect(info.version).toBe(manifest.version);
  expect(Object.keys(paths)).toContain("/auth.admin.v1.SessionAdminService/ListSessionEvents");
  // `WatchRevocations` is a stream, which JSON calls cannot carry.
  expect(Object.keys(paths).join()).not.toContain("WatchRevocations");
  expect((await request(open.adminUrl, { path: "/docs" })).body).toContain("Admin API");
  expect((await get("/openapi.json")).body).not.toContain("SessionAdminService");
});

describe("signing in on the page", () => {
  /** Returns the key that the service printed at its start. */
  const keyOf = (service: Service) => /\/docs#key=([\w-]{16,})$/m.exec(service.stdout())?.[1] ?? "";
  const signIn = (headers: Readonly<Record<string, string>>, body = '{"subject":"alice"}', service = open) =>
    request(service.publicUrl, {
      method: "POST",
      path: "/docs/sign-in",
      headers: { "content-type": "application/json", ...headers },
      body,
    });

  test("with the key that was printed it creates a session, whose cookie and token work", async () => {
    const response = await signIn({ "x-docs-key": keyOf(open) });
    expect(response.status).toBe(200);
    const [cookie = ""] = response.headers.getSetCookie();
    expect(cookie).toMatch(/^refresh_token=.*HttpOnly/);
    const headers = { cookie: cookie.split(";")[0] ?? "" };
    expect((await request(open.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers })).status).toBe(200);
    const { accessToken } = JSON.parse(response.body) as { accessToken: string };
    const authorization = `Bearer ${accessToken}`;
    const list = await request(open.publicUrl, { path: "/v1/auth/sessions", headers: { authorization } });
    expect(list.body).toContain("API reference");
  });

  test.each<[string, (key: string) => Record<string, string>]>([
    ["no key", () => ({})],
    ["another key", (key) => ({ "x-docs-key": `${key.slice(1)}A` })],
    ["a request that a proxy passed on", (key) => ({ "x-docs-key": key, "x-forwarded-for": "192.0.2.1" })],
    ["a standard proxy's header", (key) => ({ "x-docs-key": key, forwarded: "for=192.0.2.1" })],
    ["a name that was made to lead here", (key) => ({ "x-docs-key": key, host: "rebound.example" })],
  ])("with %s it is refused", async (_, headers) => {
    const response = await signIn(headers(keyOf(open)));
    expect(response.status).toBe(403);
    expect(response.headers.getSetCookie()).toEqual([]);
  });

  test.each(["", "{}", '{"subject":""}', '{"subject":1}', '{"subject":"a\\n"}', `{"subject":"${"x".repeat(256)}"}`])(
    "a subject that is none is refused: %s",
    async (body) => {
      expect((await signIn({ "x-docs-key": keyOf(open) }, body)).status).toBe(400);
    },
  );

  test("without the page there is none", async () => {
    expect(keyOf(closed)).toBe("");
    expect((await signIn({ "x-docs-key": "x" }, undefined, closed)).status).toBe(404);
  });

  test.each<[string, Record<string, string>]>([
    ["Redis", { REDIS_URL: "redis://127.0.0.1:6379", DOCS: "true" }],
    ["admin tokens", { ADMIN_TOKENS: "x".repeat(40) }],
    ["a public address", { HOST: "0.0.0.0" }],
    ["a proxy", { TRUST_PROXY: "1" }],
    ["an issuer", { ISSUER: "https://auth.example.com" }],
    ["an audience", { AUDIENCE: "https://api.example.com" }],
    ["other origins", { ALLOWED_ORIGINS: "https://app.example.com" }],
    ["a cookie's domain", { COOKIE_DOMAIN: "example.com" }],
    ["no page", { DOCS: "false" }],
  ])("with %s configured it is not offered", (_, env) => {
    expect(mayOfferSignIn(readConfig({}))).toBe(true);
    expect(mayOfferSignIn(readConfig(env))).toBe(false);
  });
});
