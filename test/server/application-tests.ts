/**
 * The rules for each application of `examples` that renders on a server. Each is built and started by its framework, and used in
 * browsers.
 */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { openContext } from "../support/browser-context.ts";
import { launchChromium } from "../support/chromium.ts";
import { freePort } from "../support/free-port.ts";
import { type Service, startService } from "../support/service.ts";
import { until } from "../support/until.ts";
import { type Built, buildApplication, type FrameworkName, startApplication } from "./application.ts";
import { inFirefox } from "./in-firefox.ts";
import { navigations } from "./navigations.ts";
import { startRelay } from "./relay.ts";
import { unseen } from "./unseen.ts";
import { COOKIES } from "./world.ts";

/** How long the requests of a browser share one response of the service, in ms: a quarter of the reuse interval. */
const SHARED_MS = 2_500;
/** The time limit of the setup, because compiling takes long on a busy machine. */
const SETUP_TIMEOUT_MS = 300_000;

export type Running = { readonly service: Service; readonly built: Built; readonly url: string };

/** @param own further tests that only this application has */
export function describeApplication(framework: FrameworkName, own: (running: () => Running) => void = () => {}): void {
  describe(`examples/${framework}`, () => {
    let service: Service;
    let counter: Awaited<ReturnType<typeof startRelay>>;
    let built: Built;
    let application: Awaited<ReturnType<typeof startApplication>>;
    let browser: Browser;
    let context: BrowserContext;
    let page: Page;
    let problems: string[];
    /** How many connections to the service the build has made. */
    let connections = 0;

    beforeAll(async () => {
      const port = await freePort();
      const own = {
        COOKIE_SECURE: "false",
        ISSUER: "https://auth.example",
        ALLOWED_ORIGINS: `http://localhost:${port}`,
      };
      service = await startService({ ...COOKIES, ...own });
      counter = await startRelay(service.publicUrl);
      const env = {
        SESSION_SERVICE_URL: counter.url,
        SESSION_ADMIN_URL: service.adminUrl,
        SESSION_ADMIN_TOKEN_FILE: join(service.dataDir, "admin-token"),
        ISSUER: "https://auth.example",
      };
      const nowhere = createServer(() => connections++).listen(0, "127.0.0.1");
      await once(nowhere, "listening");
      const unused = `http://127.0.0.1:${(nowhere.address() as AddressInfo).port}`;
      built = await buildApplication(framework, { ...env, SESSION_SERVICE_URL: unused, SESSION_ADMIN_URL: unused });
      nowhere.close();
      application = await startApplication(built, env, port);
      browser = await launchChromium();
    }, SETUP_TIMEOUT_MS);
    afterAll(async () => {
      await browser?.close();
      await application?.program.stop();
      built?.remove();
      counter?.close();
      await service?.stop();
    });

    beforeEach(async () => {
      await context?.close();
      counter.isDown = false;
      problems = [];
      context = await openContext(browser);
      page = await openTab();
    });

    async function openTab(): Promise<Page> {
      const tab = await context.newPage();
      // These errors include failed hydrations.
      tab.on("pageerror", (error) => problems.push(String(error)));
      tab.on("console", (entry) => entry.type() === "error" && problems.push(entry.text()));
      return tab;
    }

    async function signIn(): Promise<void> {
      await page.goto(`${application.url}/account`);
      await fillLogin();
    }

    async function fillLogin(): Promise<void> {
      await page.getByLabel("Email").fill("alice@example.com");
      await page.getByLabel("Password").fill("correct horse");
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.getByRole("heading", { name: "Account of alice" }).waitFor();
    }

    const forgetAccessToken = () => context.clearCookies({ name: "access_token" });
    const cookieHeader = async () => (await context.cookies()).map(({ name, value }) => `${name}=${value}`).join("; ");

    test("a build connects to no service", () => {
      expect(connections).toBe(0);
    });

    test("the process follows one feed", async () => {
      await signIn();
      const metrics = await (await fetch(`${service.adminUrl}/metrics`)).text();
      expect(metrics).toMatch(/^session_feed_watchers 1$/m);
    });

    test("a visitor is led to the login and back, and a server action knows the user", async () => {
      await page.goto(application.url);
      expect(await page.locator("#state").textContent()).toBe("ended");
      await page.getByRole("link", { name: "Account" }).click();
      await page.waitForURL("**/login?next=%2Faccount");
      await signIn();
      expect(new URL(page.url()).pathname).toBe("/account");
      await page.getByText("This device").waitFor();
      await page.getByRole("textbox", { name: "Note" }).fill("Book the train");
      await page.getByRole("button", { name: "Add" }).click();
      await page.getByText("Book the train").waitFor();
      expect(problems).toEqual([]);
    });

    test("a page view with a valid token makes no refresh, and twenty parallel ones without it make one", async () => {
      await signIn();
      const before = counter.refreshes;
      await page.reload();
      expect(counter.refreshes).toBe(before);
      await forgetAccessToken();
      const [tokens, began] = [counter.tokens.size, performance.now()];
      const pages = await page.evaluate(async () => {
        const load = async () => (await fetch("/account", { headers: { accept: "text/html" } })).text();
        return Promise.all(Array.from({ length: 20 }, load));
      });
      expect(pages.filter((html) => html.includes("Account of"))).toHaveLength(20);
      expect(counter.tokens.size).toBe(tokens + 1);
      // On a busy machine some of the requests may begin too late to share the first refresh, and cause further ones.
      const laterFlights = Math.floor((performance.now() - began) / SHARED_MS);
      expect(counter.refreshes - before).toBeLessThanOrEqual(1 + laterFlights);
      expect((await context.cookies()).map(({ name }) => name).sort()).toEqual(["access_token", "refresh_token"]);
      expect(problems).toEqual([]);
    });

    test("the page begins with what the server knew: no refresh, no flash, and a token when it needs one", async () => {
      await signIn();
      const before = counter.refreshes;
      const states: string[] = [];
      await page.exposeFunction("noteState", (state: string) => states.push(state));
      const observe =
        "new MutationObserver(note).observe(document, { childList: true, characterData: true, subtree: true })";
      const note =
        "const { textContent } = document.getElementById('session') ?? {}; if (textContent) noteState(textContent)";
      await page.addInitScript(`const note = () => { ${note} }; ${observe}`);
      const html = await (await page.reload())?.text();
      expect(html).toContain("Signed in as alice");
      await page.waitForLoadState("networkidle");
      expect(new Set(states)).toEqual(new Set(["Signed in as alice"]));
      expect(counter.refreshes).toBe(before);
      expect(problems).toEqual([]);
    });

    test("a page whose components come and go has one session", async () => {
      await signIn();
      await page.addInitScript(`globalThis.channels = new Set();
        globalThis.BroadcastChannel = class extends BroadcastChannel {
          constructor(name) { super(name); channels.add(this); }
          close() { super.close(); channels.delete(this); }
        };`);
      await page.goto(application.url);
      for (let visit = 0; visit < 3; visit++) {
        await page.getByRole("link", { name: "Account" }).click();
        await page.locator("#session", { hasText: "Signed in as alice" }).waitFor();
        if (visit < 2) await page.goBack();
      }
      await until(async () => expect(await page.evaluate("channels.size")).toBe(1));
      expect(problems).toEqual([]);
    });

    test("the kit in the browser renews its token by itself, through the application's server", async () => {
      await signIn();
      const accessCookie = async () => (await context.cookies()).find(({ name }) => name === "access_token")?.value;
      const before = [await accessCookie(), counter.refreshes] as const;
      await page.clock.install();
      await page.reload();
      await page.getByText("Signed in as alice").waitFor();
      const refreshed = page.waitForResponse("**/v1/auth/refresh");
      // The clock moves past the life of the token.
      await page.clock.fastForward(300_000);
      expect((await refreshed).status()).toBe(200);
      expect(await accessCookie()).not.toBe(before[0]);
      expect(counter.refreshes).toBe(before[1] + 1);
      await page.getByText("Signed in as alice").waitFor();
      expect(problems).toEqual([]);
    });

    test("a server action whose token is gone renews it, and the browser has the new one", async () => {
      await signIn();
      await forgetAccessToken();
      await page.getByRole("textbox", { name: "Note" }).fill("Renew");
      await page.getByRole("button", { name: "Add" }).click();
      await page.getByText("Renew", { exact: true }).waitFor();
      expect((await context.cookies()).map(({ name }) => name)).toContain("access_token");
    });

    test("a form that somebody sends whose session has ended leads to the login, and from there to the page", async () => {
      await signIn();
      await context.clearCookies();
      await page.getByRole("textbox", { name: "Note" }).fill("Too late");
      await page.getByRole("button", { name: "Add" }).click();
      await page.waitForURL("**/login?next=%2Faccount");
      await fillLogin();
      expect(problems).toEqual([]);
    });

    test("while the service cannot decide, pages render as unavailable and nobody is sent to the login", async () => {
      await signIn();
      await forgetAccessToken();
      counter.isDown = true;
      for (const path of ["/", "/account"]) {
        await page.goto(application.url + path);
        expect([new URL(page.url()).pathname, await page.locator("#state").textContent()]).toEqual([
          path,
          "unavailable",
        ]);
      }
      counter.isDown = false;
      await page.reload();
      expect(await page.locator("#state").textContent()).toBe("active");
    });

    test("after a logout in one tab the next render of every other shows it", async () => {
      await signIn();
      const other = await openTab();
      await other.goto(`${application.url}/account`);
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.waitForURL(`${application.url}/`);
      expect(await page.locator("#state").textContent()).toBe("ended");
      await other.reload();
      await other.waitForURL("**/login?next=%2Faccount");
      expect(await context.cookies()).toEqual([]);
    });

    test("a logout whose access token is gone leaves no cookie behind", async () => {
      await signIn();
      await forgetAccessToken();
      await page.getByRole("button", { name: "Sign out" }).click();
      await page.waitForURL(`${application.url}/`);
      expect(await page.locator("#state").textContent()).toBe("ended");
      expect(await context.cookies()).toEqual([]);
    });

    test("a login ends the former session of its browser", async () => {
      await signIn();
      const former = await cookieHeader();
      await forgetAccessToken();
      await page.goto(`${application.url}/login?next=/account`);
      await fillLogin();
      const refreshed = await fetch(`${service.publicUrl}/v1/auth/refresh`, {
        method: "POST",
        headers: { cookie: former },
      });
      expect(refreshed.status).toBe(401);
      expect(await page.locator("#state").textContent()).toBe("active");
    });

    test("the application's server passes the query of a call on to the service", async () => {
      await signIn();
      const headers = { cookie: await cookieHeader(), "sec-fetch-site": "same-origin" };
      const call = (path: string) => fetch(`${application.url}/v1/auth/${path}`, { method: "POST", headers });
      expect((await call("logout?session_id=another")).status).toBe(401);
      await page.reload();
      expect(await page.locator("#state").textContent()).toBe("active");
      expect((await call("logout")).status).toBe(200);
    });

    test("a form of another site signs nobody out", async () => {
      await signIn();
      const headers = { cookie: await cookieHeader(), "sec-fetch-site": "cross-site", origin: "https://evil.example" };
      expect((await fetch(`${application.url}/logout`, { method: "POST", headers, redirect: "manual" })).status).toBe(
        403,
      );
      await page.reload();
      expect(await page.locator("#state").textContent()).toBe("active");
    });

    unseen(framework === "next" ? "api" : "login", () => ({ service, url: application.url }));
    // The kit does the same in each framework, so one of them is tried in a second engine, and both in the long form (`npm run proof:pages`).
    if (framework === "next" || process.env.PROOF === "long") inFirefox(() => application.url);
    navigations(() => ({ built, browser }));
    own(() => ({ service, built, url: application.url }));
  });
}
