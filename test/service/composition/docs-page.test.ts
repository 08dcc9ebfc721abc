/** The API reference as a newcomer uses it, in a real browser. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openContext } from "../../support/browser-context.ts";
import { launchChromium } from "../../support/chromium.ts";
import { type Service, scratch, startService } from "../../support/service.ts";

/** The directory for screenshots. `SCREENSHOTS=<directory>` keeps them. */
const SCREENSHOTS = process.env.SCREENSHOTS ?? scratch();

let service: Service;
let browser: Browser;
let page: Page;
let problems: string[];

beforeAll(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  service = await startService();
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
});
beforeEach(async () => {
  await page?.context().close();
  problems = [];
  page = await (await openContext(browser, { viewport: { width: 1280, height: 860 } })).newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (entry) => /Content Security|Refused/.test(entry.text()) && problems.push(entry.text()));
});

const screenshot = (name: string) => page.screenshot({ path: join(SCREENSHOTS, `docs-${name}.png`) });
const printed = () => /http\S+\/docs#key=\S+/.exec(service.stdout())?.[0] ?? "";
const operations = () => page.getByRole("navigation", { name: "Operations" });

/** Executes an operation on the page, and returns the status of the response. */
async function execute(name: RegExp, id: string): Promise<number> {
  await operations().getByRole("button", { name }).click();
  const block = page.locator(`[id$="_${id}"].is-open`);
  const [response] = await Promise.all([
    page.waitForResponse((each) => each.request().method() !== "GET" || each.url().includes("/v1/")),
    block.getByRole("button", { name: "Execute" }).click(),
  ]);
  await block.locator(".live-responses-table").waitFor();
  return response.status();
}

test("the page fits on few screens, and every operation is one click away", async () => {
  await page.goto(`${service.publicUrl}/docs`);
  await operations().getByRole("button", { name: "/v1/auth/refresh" }).first().waitFor();
  await page.locator(".opblock").first().waitFor();
  expect(await page.locator(".opblock-tag").first().textContent()).toContain("SessionService");
  expect(await operations().getByRole("heading").allTextContents()).toEqual([
    "SessionService",
    "OAuthService",
    "Verification",
  ]);
  expect(await page.evaluate("document.documentElement.scrollHeight")).toBeLessThan(1_800);
  expect(await page.getByRole("button", { name: /authorize/i }).count()).toBe(0);
  await operations().getByRole("button", { name: "delete /v1/auth/logout" }).click();
  await page.locator("#operations-SessionService-SessionService_Logout.is-open").waitFor();
  await screenshot("public");
  expect(problems).toEqual([]);
});

test("by the address that was printed a newcomer signs in and tries every step, cookie included", async () => {
  await page.goto(printed());
  await page.getByLabel("Sign in as").fill("bob");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Signed in as bob").waitFor();
  expect(page.url()).not.toContain("key=");
  expect(await execute(/post \/v1\/auth\/refresh/, "Refresh")).toBe(200);
  await page.getByText("The access token of the last refresh is in use.").waitFor();
  expect(await execute(/get \/v1\/auth\/sessions/, "ListSessions")).toBe(200);
  await screenshot("tried");
  expect(await execute(/delete \/v1\/auth\/logout/, "Logout")).toBe(200);
  expect(await execute(/post \/v1\/auth\/refresh/, "Refresh")).toBe(401);
  expect(problems).toEqual([]);
});

test("after a reload the page can still sign in, and no other tab can", async () => {
  await page.goto(printed());
  await page.getByLabel("Sign in as").waitFor();
  await page.reload();
  await page.getByLabel("Sign in as").fill("carol");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Signed in as carol").waitFor();
  const other = await page.context().newPage();
  await other.goto(`${service.publicUrl}/docs`);
  await other.getByText("open the address that the service printed at its start").waitFor();
  await other.close();
});

test("a key of an earlier start is reported, and forgotten", async () => {
  await page.goto(`${service.publicUrl}/docs#key=of-an-earlier-start`);
  await page.getByLabel("Sign in as").fill("dave");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The address is of an earlier start: open the new one.").waitFor();
  await page.reload();
  await page.getByText("open the address that the service printed at its start").waitFor();
});

test("a browser that blocks storage signs in, and reports a key of an earlier start", async () => {
  await page.addInitScript(
    "Object.defineProperty(globalThis, 'sessionStorage', { get() { throw new DOMException('blocked', 'SecurityError'); } })",
  );
  await page.goto(printed());
  await page.getByLabel("Sign in as").fill("erin");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("Signed in as erin").waitFor();
  await page.goto(`${service.publicUrl}/docs?#key=of-an-earlier-start`);
  await page.getByLabel("Sign in as").fill("erin");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("The address is of an earlier start: open the new one.").waitFor();
  expect(problems).toEqual([]);
});

test("without the key it says where it is", async () => {
  await page.goto(`${service.publicUrl}/docs`);
  await page.getByText("open the address that the service printed at its start").waitFor();
  expect(await page.getByRole("button", { name: "Sign in" }).isDisabled()).toBe(true);
});

test("the admin API is tried with an admin token, in the dark", async () => {
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`${service.adminUrl}/docs`);
  await page.getByLabel("Admin token").fill(service.adminToken);
  expect(await execute(/ListSessions/, "ListSessions")).toBe(200);
  await screenshot("admin-dark");
  expect(await page.locator("body").innerText()).not.toContain(service.adminToken);
  expect(await page.getByLabel("Sign in as").isVisible()).toBe(false);
  expect(problems).toEqual([]);
});

test.each(["publicUrl", "adminUrl"] as const)(
  "on a phone no text of %s is squeezed into a narrow column",
  async (api) => {
    await page.setViewportSize({ width: 390, height: 800 });
    await page.goto(`${service[api]}/docs`);
    const heading = page.locator(".opblock-tag").first();
    await heading.waitFor();
    expect((await heading.boundingBox())?.height).toBeLessThan(400);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await screenshot(`phone-${api}`);
  },
);
