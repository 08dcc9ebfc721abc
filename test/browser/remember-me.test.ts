/** "Remember me" of `examples/web` in a whole browser: what is kept when its tabs close, and what when it ends. */
import { chromium } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { patient } from "../support/browser-context.ts";
import { scratch } from "../support/service.ts";
import { CHROMIUM_FLAGS } from "./engines/driver.ts";
import { type Example, startExample } from "./example.ts";

let example: Example;
beforeAll(async () => {
  example = await startExample();
});
afterAll(() => example?.stop());

/** Starts a browser with a profile, which is on disk while the browser does not run. */
async function startBrowser(profile: string) {
  const options = { executablePath: "/usr/bin/chromium", args: CHROMIUM_FLAGS };
  const context = patient(await chromium.launchPersistentContext(profile, options));
  return {
    context,
    async open() {
      const page = await context.newPage();
      await page.goto(example.url);
      return page;
    },
  };
}
type Tab = Awaited<ReturnType<Awaited<ReturnType<typeof startBrowser>>["open"]>>;

async function signIn(page: Tab, remember: boolean): Promise<void> {
  await page.getByLabel("Email").fill("alice@example.com");
  await page.getByLabel("Password").fill("correct horse");
  if (remember) await page.getByLabel("Remember me").check();
  await page.getByRole("button", { name: "Sign in" }).click();
  await isSignedIn(page);
}

const isSignedIn = (page: Tab) => page.getByText("Book the train to Vienna").waitFor();
const isSignedOut = (page: Tab) => page.getByRole("heading", { name: "Sign in" }).waitFor();

describe.each([
  ["ticked", true],
  ["not ticked", false],
])("with the box %s", (_, remember) => {
  test(`the session outlives its tabs, and ${remember ? "the browser, too" : "ends with the browser"}`, async () => {
    const profile = scratch();
    const browser = await startBrowser(profile);
    const page = await browser.open();
    await signIn(page, remember);
    // The page has refreshed by now, or does so here: the cookies of a refresh are like those of the login.
    await page.reload();
    await isSignedIn(page);
    await page.close();
    await isSignedIn(await browser.open());
    const cookies = await browser.context.cookies();
    expect(cookies.map(({ name }) => name).sort()).toEqual(["refresh_token", "signed_in"]);
    expect(cookies.map(({ expires }) => expires > 0)).toEqual([remember, remember]);
    await browser.context.close();

    const again = await startBrowser(profile);
    const later = await again.open();
    await (remember ? isSignedIn(later) : isSignedOut(later));
    if (!remember) expect(await again.context.cookies()).toEqual([]);
    await again.context.close();
  });
});
