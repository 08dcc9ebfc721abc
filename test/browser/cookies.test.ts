/** The cookies that a real Chromium keeps and sends: those that a sibling domain plants, and those that a response removes. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openContext } from "../support/browser-context.ts";
import { launchChromium } from "../support/chromium.ts";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, type LoggedIn, logIn, message, openAdmin } from "../support/sessions.ts";

const NAME = "__Host-refresh_token";
const FLAGS = ["--disable-quic", "--no-first-run", "--disable-sync"];
const OFFLINE = ["--disable-background-networking", "--disable-component-update"];

/** The cookies that another origin on the service's host sets. It shares the host's cookies, as a sibling domain does with `Domain`. */
let planted: string[] = [];
const neighbour = createServer((_request, response) => {
  response.writeHead(200, { "content-type": "text/html", "set-cookie": planted }).end("<!doctype html>");
});

let browser: Browser;
let service: Service;
let context: BrowserContext;
let page: Page;

beforeAll(async () => {
  await new Promise<void>((resolve) => neighbour.listen(0, "127.0.0.1", resolve));
  service = await startService({ COOKIE_NAME: NAME, SESSION_HINT_COOKIE: "signed_in" });
  browser = await launchChromium([...FLAGS, ...OFFLINE]);
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  neighbour.close();
});
beforeEach(async () => {
  await context?.close();
  context = await openContext(browser);
  page = await context.newPage();
  planted = [];
});

async function plant(...values: string[]): Promise<void> {
  planted = values;
  await page.goto(`http://127.0.0.1:${(neighbour.address() as AddressInfo).port}`);
  await page.goto(`${service.publicUrl}/healthz`);
}

/** Logs in, and sets the cookies as a login page would. */
async function enter(): Promise<LoggedIn> {
  const response = await openAdmin(service).call(admin.createSession, { subject: "a" }, bearer(service.adminToken));
  const { session, ...tokens } = message(response);
  // Playwright separates several values of one header by line breaks.
  const headers = { "set-cookie": tokens.setCookies.join("\n") };
  const url = `${service.publicUrl}/login`;
  await context.route(url, (route) => route.fulfill({ status: 200, headers, body: "<!doctype html>" }));
  await page.goto(url);
  return { subject: "a", sid: session?.sessionId ?? "", ...tokens };
}

const refresh = (): Promise<number> =>
  page.evaluate(async (url) => (await fetch(url, { method: "POST" })).status, `${service.publicUrl}/v1/auth/refresh`);

async function isLive({ sid }: LoggedIn): Promise<boolean> {
  return (await openAdmin(service).call(admin.getSession, { sessionId: sid }, bearer(service.adminToken))).ok;
}
const names = async () => (await context.cookies(service.publicUrl)).map(({ name }) => name).sort();

test.each([
  ["the name after a no-break space", (token: string) => `\u00a0${NAME}=${token}; Path=/; Secure`],
  ["the name after a no-break space in UTF-8", (token: string) => `\u00c2\u00a0${NAME}=${token}; Path=/`],
  ["the name before a no-break space", (token: string) => `${NAME}\u00a0=${token}; Path=/`],
  ["the name after a next-line character", (token: string) => `\u0085${NAME}=${token}; Path=/`],
  ["the name without its prefix", (token: string) => `refresh_token=${token}; Path=/v1/auth`],
  ["the name as a value without a name", (token: string) => `=${NAME}=${token}; Path=/`],
])("a session planted under %s is nobody's", async (_, spell) => {
  const attacker = await logIn(service);
  await plant(spell(attacker.refreshToken));
  expect(await refresh()).toBe(401);
  await enter();
  expect(await refresh()).toBe(200);
  const { session } = message(
    await openAdmin(service).call(admin.getSession, { sessionId: attacker.sid }, bearer(service.adminToken)),
  );
  expect(session?.lastRefreshTime).toEqual(session?.createTime);
});

test("the hint tells scripts of a session, until a logout", async () => {
  await page.goto(`${service.publicUrl}/healthz`);
  expect(await page.evaluate("document.cookie")).toBe("");
  await enter();
  expect(await page.evaluate("document.cookie")).toMatch(/^signed_in=[\w-]{23}$/);
  expect(await refresh()).toBe(200);
  expect(await page.evaluate("document.cookie")).toMatch(/^signed_in=[\w-]{23}$/);
  await page.evaluate(async (url) => fetch(url, { method: "POST" }), `${service.publicUrl}/v1/auth/logout`);
  expect(await page.evaluate("document.cookie")).toBe("");
});

test("a beacon of a page that is left logs out, and takes the cookies along", async () => {
  for (const body of [undefined, "bye"]) {
    const user = await enter();
    expect(await names()).toEqual([NAME, "signed_in"]);
    const responded = page.waitForResponse(`${service.publicUrl}/v1/auth/logout`);
    await page.evaluate(`navigator.sendBeacon("/v1/auth/logout", ${JSON.stringify(body)})`);
    expect((await responded).status()).toBe(200);
    expect(await isLive(user)).toBe(false);
    expect(await names()).toEqual([]);
  }
});

test("a form logs out", async () => {
  const user = await enter();
  await page.setContent(
    `<form method="post" action="/v1/auth/logout"><input name="next" value="/"><button>Out</button></form>`,
  );
  await Promise.all([page.waitForURL(`${service.publicUrl}/v1/auth/logout`), page.getByRole("button").click()]);
  expect(await page.textContent("body")).toContain('{"data":{}}');
  expect(await isLive(user)).toBe(false);
  expect(await names()).toEqual([]);
});
