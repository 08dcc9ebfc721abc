/** The description of the API as it is served. */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, test } from "vitest";
import { request } from "../support/raw-http.ts";
import { type Service, startService } from "../support/service.ts";

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
    expect(response.body).toBe(readFileSync(new URL("../../gen/openapi.json", import.meta.url), "utf8"));
  }
});

/** What a page asks for, by its own words. */
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
  expect((await get("/docs/start.js")).body).toContain("validatorUrl: null");
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
  for (const path of ["/docs", "/docs/start.js", "/docs/swagger-ui.css", "/docs/swagger-ui-bundle.js"]) {
    expect([path, (await get(path, closed)).status]).toEqual([path, 404]);
  }
});

test("the admin API has neither", async () => {
  for (const path of ["/docs", "/openapi.json"]) {
    expect((await request(open.adminUrl, { path })).status).toBe(404);
  }
});
