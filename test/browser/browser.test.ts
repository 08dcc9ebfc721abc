/**
 * A real browser against the real service: what Chromium does with our cookie, and what pages of other
 * origins can and cannot do with it.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openContext } from "../support/browser-context.ts";
import { launchChromium } from "../support/chromium.ts";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, type LoggedIn, logIn, message, openAdmin } from "../support/sessions.ts";

const FLAGS = ["--disable-quic", "--no-first-run", "--disable-sync"];
const OFFLINE = ["--disable-background-networking", "--disable-component-update"];

/** Serves an empty page, for pages of other origins. */
const elsewhere = createServer((_request, response) => {
  response.writeHead(200, { "content-type": "text/html" }).end("<!doctype html><title>elsewhere</title>");
});

let browser: Browser;
let service: Service;
/** An origin that the service allows. It is on the same site as the service (127.0.0.1), but is another origin. */
let sibling: string;
/** The origin of a page on another site. */
let stranger: string;
let context: BrowserContext;
let page: Page;
let user: LoggedIn;

beforeAll(async () => {
  await new Promise<void>((resolve) => elsewhere.listen(0, "127.0.0.1", resolve));
  const { port } = elsewhere.address() as AddressInfo;
  sibling = `http://127.0.0.1:${port}`;
  stranger = `http://localhost:${port}`;
  service = await startService({ ALLOWED_ORIGINS: sibling });
  browser = await launchChromium([...FLAGS, ...OFFLINE]);
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  elsewhere.close();
});

beforeEach(async () => {
  await context?.close();
  context = await openContext(browser);
  page = await context.newPage();
  user = await logIn(service);
  // The browser itself processes the Set-Cookie of CreateSession. It gets this header in a response of the login page, as in a real login.
  await context.route(`${service.publicUrl}/v1/auth/login`, (route) =>
    route.fulfill({ status: 200, headers: { "set-cookie": user.setCookie }, body: "logged in" }),
  );
  await page.goto(`${service.publicUrl}/v1/auth/login`);
});

type Init = { readonly headers?: Record<string, string>; readonly body?: string };
type Seen = { readonly status: number; readonly body: string } | { readonly blocked: true };

/** Calls `fetch` in the page, as its scripts would. */
function fetchIn(from: Page, method: string, path: string, init: Init = {}): Promise<Seen> {
  return from.evaluate(
    async ([url, options]) => {
      try {
        const response = await fetch(url, options);
        return { status: response.status, body: await response.text() };
      } catch {
        return { blocked: true as const };
      }
    },
    [`${service.publicUrl}${path}`, { method, credentials: "include" as const, ...init }] as const,
  );
}

const refresh = (from: Page, init: Init = {}) => fetchIn(from, "POST", "/v1/auth/refresh", init);

const refreshCookies = async () => (await context.cookies(`${service.publicUrl}/v1/auth`)).map((cookie) => cookie.name);

/** Returns when the session was last rotated, as the service reports it. */
async function lastRefresh(): Promise<unknown> {
  const response = await openAdmin(service).call(admin.getSession, { sessionId: user.sid }, bearer(service.adminToken));
  return message(response).session?.lastRefreshTime;
}

test("a page refreshes with the cookie that the browser keeps, and its scripts never see it", async () => {
  for (let time = 0; time < 3; time++) expect(await refresh(page)).toMatchObject({ status: 200 });
  expect(await page.evaluate("document.cookie")).toBe("");
  const [cookie] = await context.cookies(`${service.publicUrl}/v1/auth`);
  expect(cookie).toMatchObject({
    name: "refresh_token",
    httpOnly: true,
    secure: true,
    sameSite: "Lax",
    path: "/v1/auth",
  });
  expect(await context.cookies(service.publicUrl)).toEqual([]);
});

test("many tabs at once are all served, and the cookie that is left works", async () => {
  const tabs = await Promise.all(Array.from({ length: 4 }, () => context.newPage()));
  await Promise.all(tabs.map((tab) => tab.goto(`${service.publicUrl}/healthz`)));
  for (let round = 0; round < 5; round++) {
    const responses = await Promise.all(tabs.map((tab) => refresh(tab)));
    expect(responses.map((response) => "status" in response && response.status)).toEqual([200, 200, 200, 200]);
  }
  expect(await refresh(page)).toMatchObject({ status: 200 });
});

test("logout clears the cookie; the page is logged out", async () => {
  const refreshed = await refresh(page);
  const { accessToken } = JSON.parse("body" in refreshed ? refreshed.body : "").data;
  const headers = { authorization: `Bearer ${accessToken}` };
  expect(await fetchIn(page, "DELETE", "/v1/auth/logout", { headers })).toEqual({ status: 200, body: '{"data":{}}' });
  expect(await refreshCookies()).toEqual([]);
  expect(await refresh(page)).toMatchObject({ status: 401 });
});

test("a page of an allowed origin may refresh with credentials, and read the response", async () => {
  await page.goto(sibling);
  expect(await refresh(page, { headers: { "content-type": "application/json" }, body: "{}" })).toMatchObject({
    status: 200,
    body: expect.stringContaining("accessToken"),
  });
});

test.each([
  ["plain", {}],
  ["with JSON, which the browser asks about first", { headers: { "content-type": "application/json" }, body: "{}" }],
] satisfies [string, Init][])("a page of another site can neither read nor change anything: %s", async (_, init) => {
  const before = await lastRefresh();
  await page.goto(stranger);
  expect(await refresh(page, init)).toEqual({ blocked: true });
  expect(await lastRefresh()).toEqual(before);
  await page.goto(`${service.publicUrl}/healthz`);
  expect(await refresh(page)).toMatchObject({ status: 200 });
});

test("a form of another site, which needs no permission to be sent, is refused", async () => {
  const before = await lastRefresh();
  await page.goto(stranger);
  await page.setContent(
    `<form method="post" action="${service.publicUrl}/v1/auth/refresh"><button>Win</button></form>`,
  );
  const [response] = await Promise.all([
    page.waitForResponse(`${service.publicUrl}/v1/auth/refresh`),
    page.getByRole("button").click(),
  ]);
  expect(response.status()).toBe(403);
  expect(await response.headerValue("set-cookie")).toBeNull();
  expect(await lastRefresh()).toEqual(before);
});
