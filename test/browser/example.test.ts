/** `examples/web` as a visitor uses it: started by its one command, and used in a browser. */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { openContext } from "../support/browser-context.ts";
import { launchChromium } from "../support/chromium.ts";
import { scratch } from "../support/service.ts";
import { until } from "../support/until.ts";
import { type Example, startExample } from "./example.ts";

/** The directory for screenshots. `SCREENSHOTS=<directory>` keeps them. */
const SCREENSHOTS = process.env.SCREENSHOTS ?? scratch();

let example: Example;
let browser: Browser;
let url: string;
let context: BrowserContext;
let page: Page;
let problems: string[];

beforeAll(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  example = await startExample();
  url = example.url;
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await example?.stop();
});

beforeEach(async () => {
  await context?.close();
  problems = [];
  context = await openContext(browser, { viewport: { width: 1100, height: 760 } });
  page = await context.newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (entry) => entry.type() === "error" && problems.push(entry.text()));
  await page.goto(url);
});

const isFocused = (selector: string) => page.evaluate(`document.activeElement?.matches(${JSON.stringify(selector)})`);

const screenshot = (name: string, of = page) => of.screenshot({ path: join(SCREENSHOTS, `${name}.png`) });

async function signIn(of: Page): Promise<void> {
  await of.getByLabel("Email").fill("alice@example.com");
  await of.getByLabel("Password").fill("correct horse");
  await of.getByRole("button", { name: "Sign in" }).click();
  await of.getByText("Book the train to Vienna").waitFor();
}

test("a visitor signs in, sees notes and devices, and signs out in every tab", async () => {
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await screenshot("login");
  await signIn(page);
  await page.getByText("Alice Liddell").waitFor();
  await page.getByText("This device").waitFor();
  await screenshot("signed-in");
  const second = await context.newPage();
  await second.goto(url);
  await second.getByText("Book the train to Vienna").waitFor();
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  for (const tab of [page, second]) await tab.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(await second.getByText("Book the train to Vienna").count()).toBe(0);
  expect(await context.cookies()).toEqual([]);
  expect(problems).toEqual([]);
});

test("an anonymous visitor causes no request to the service", async () => {
  const requests: string[] = [];
  page.on("request", (request) => requests.push(new URL(request.url()).pathname));
  await page.reload();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  expect(requests.filter((path) => path.startsWith("/v1/auth"))).toEqual([]);
});

test("a wrong password is refused, and the form says so", async () => {
  await page.getByLabel("Email").fill("alice@example.com");
  await page.getByLabel("Password").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").filter({ hasText: "Wrong email or password." }).waitFor();
  await screenshot("wrong-password");
  expect(await context.cookies()).toEqual([]);
  expect(await isFocused("#password")).toBe(true);
});

test("many wrong passwords are refused before they are checked, and the form says so", async () => {
  await page.getByLabel("Email").fill("mallory@example.com");
  const responses: number[] = [];
  page.on("response", (response) => response.url().endsWith("/login") && responses.push(response.status()));
  while (!responses.includes(429)) {
    const before = responses.length;
    await page.getByLabel("Password").fill(`guess ${before}`);
    await page.keyboard.press("Enter");
    await until(async () => expect(responses.length).toBe(before + 1));
  }
  expect(responses).toEqual([401, 401, 401, 401, 401, 429]);
  await page.getByRole("alert").filter({ hasText: "Too many attempts." }).waitFor();
});

test("a login whose service does not respond is no fault of the visitor, and the form says so", async () => {
  example.pause();
  await page.getByLabel("Email").fill("alice@example.com");
  await page.getByLabel("Password").fill("correct horse");
  const response = page.waitForResponse(`${url}/login`);
  await page.getByRole("button", { name: "Sign in" }).click();
  expect((await response).status()).toBe(503);
  await page.getByRole("alert").filter({ hasText: "Signing in is not possible at the moment." }).waitFor();
  await screenshot("service-down");
  example.resume();
  // After the service was suspended, it counts as overloaded for a moment. It may therefore refuse the first sign-in.
  const signIn = async () => {
    const second = page.waitForResponse(`${url}/login`);
    await page.getByRole("button", { name: "Sign in" }).click();
    return (await second).status();
  };
  await until(async () => expect(await signIn()).toBe(200));
  await page.getByText("Book the train to Vienna").waitFor();
});

test("a form that the browser sends itself leads to the page, and leaves no password in its address", async () => {
  await page.getByLabel("Email").fill("alice@example.com");
  await page.getByLabel("Password").fill("correct horse");
  await page.evaluate("document.getElementById('login').submit()");
  await page.getByText("Book the train to Vienna").waitFor();
  expect(page.url()).toBe(`${url}/`);
});

test("the focus and the announcements follow what happens", async () => {
  const other = await openContext(browser);
  const elsewhere = await other.newPage();
  await elsewhere.goto(url);
  await signIn(elsewhere);
  await signIn(page);
  expect(await isFocused("#notes-title")).toBe(true);
  const says = (text: string) => page.getByRole("status").filter({ hasText: text }).waitFor();
  await says("You are signed in.");
  await page
    .getByRole("button", { name: /^Sign out .* last seen/ })
    .first()
    .click();
  await says("is signed out.");
  expect(await isFocused("#devices-title")).toBe(true);
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await says("You are signed out.");
  expect(await isFocused("#email")).toBe(true);
  await other.close();
});

test("a device signs the others out", async () => {
  const other = await openContext(browser);
  const elsewhere = await other.newPage();
  await elsewhere.goto(url);
  await signIn(elsewhere);
  await signIn(page);
  await page.getByRole("button", { name: "Sign out the others" }).click();
  await until(async () => expect(await page.locator("#devices li").count()).toBe(1));
  await elsewhere.reload();
  await elsewhere.getByRole("heading", { name: "Sign in" }).waitFor();
  await other.close();
});

test("a page that is offline keeps what it shows and says so", async () => {
  await signIn(page);
  await page.route("**/v1/auth/refresh", (route) => route.abort());
  // The page's clock is moved past the life of the token. The page uses the wall clock, which also runs while a machine sleeps.
  await page.evaluate("Date.now = ((now) => () => now() + 3_600_000)(Date.now); dispatchEvent(new Event('online'))");
  await page.getByText("You are offline.").waitFor();
  await page.getByText("Book the train to Vienna").waitFor();
  await screenshot("offline");
  await page.unroute("**/v1/auth/refresh");
  await page.evaluate("dispatchEvent(new Event('online'))");
  await page.getByText("You are offline.").waitFor({ state: "hidden" });
});

test("it works on a phone and by keyboard alone", async () => {
  await page.setViewportSize({ width: 360, height: 740 });
  await until(async () => expect(await isFocused("#email")).toBe(true));
  await screenshot("phone-login");
  await page.keyboard.type("alice@example.com");
  await page.keyboard.press("Tab");
  await page.keyboard.type("correct horse");
  await page.keyboard.press("Enter");
  await page.getByText("Book the train to Vienna").waitFor();
  await page.getByText("This device").waitFor();
  await screenshot("phone-signed-in");
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  while (!(await isFocused("#sign-out"))) await page.keyboard.press("Tab");
  await screenshot("phone-focus");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
});

test("dark mode is legible", async () => {
  await page.emulateMedia({ colorScheme: "dark" });
  await signIn(page);
  await screenshot("dark");
  expect(await page.evaluate("getComputedStyle(document.body).backgroundColor")).toBe("rgb(17, 21, 31)");
});

async function signInAsSam(of: Page): Promise<void> {
  await of.goto(url);
  await of.getByLabel("Email").fill("sam@example.com");
  await of.getByLabel("Password").fill("battery staple");
  await of.getByRole("button", { name: "Sign in" }).click();
  await of.getByText("Sam of support").waitFor();
}

test("a role that support changes is on the user's page after one refresh, without a login or a reload", async () => {
  await signIn(page); // Alice, in her own browser
  await page.getByText("Alice Liddell, editor").waitFor();
  const theirs = await openContext(browser, { viewport: { width: 1100, height: 760 } });
  const sam = await theirs.newPage();
  await signInAsSam(sam);
  await sam.getByLabel("Whose role").fill("alice@example.com");
  await sam.getByLabel("Role", { exact: true }).selectOption("reader");
  await screenshot("change-role", sam);
  await sam.getByRole("button", { name: "Change", exact: true }).click();
  await sam.getByText("The role is changed.").waitFor();
  const refreshes: number[] = [];
  page.on("response", (response) => {
    if (response.url().endsWith("/v1/auth/refresh")) refreshes.push(response.status());
  });
  await until(async () => {
    await page.getByRole("button", { name: "Reload" }).click();
    expect(await page.getByText("Alice Liddell, reader").count()).toBe(1);
  });
  expect(refreshes).toEqual([200]);
  expect(await page.getByText("Book the train to Vienna").count()).toBe(1);
  await theirs.close();
});

test("support signs in as a user: the page says so, the user sees it, and its button ends it", async () => {
  await signIn(page); // Alice, in her own browser
  const theirs = await openContext(browser, { viewport: { width: 1100, height: 760 } });
  const [first, second] = [await theirs.newPage(), await theirs.newPage()];
  await signInAsSam(first);
  const acting = (of: Page) => of.getByText("Signed in as Alice Liddell by sam.");
  expect(await acting(first).count()).toBe(0);
  const signInAs = async () => {
    await first.getByRole("textbox", { name: "User" }).fill("alice@example.com");
    await first.getByLabel("Ticket").fill("4711");
    await first.getByRole("button", { name: "Sign in as this user" }).click();
    await acting(first).waitFor();
  };
  await signInAs();
  await screenshot("acting", first);
  await second.goto(url);
  await acting(second).waitFor();
  // Alice sees it among her devices.
  await page.reload();
  await page.getByText("Used by sam").waitFor();
  await first.getByRole("button", { name: "End", exact: true }).click();
  await second.getByRole("heading", { name: "Sign in" }).waitFor();
  await page.reload();
  await page.getByText("Book the train to Vienna").waitFor();
  expect(await page.getByText("Used by sam").count()).toBe(0);
  await theirs.close();
});
