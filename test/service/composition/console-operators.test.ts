/** Operators sign in to the console by an OpenID Connect provider: in a browser, and with requests that no browser sends. */
import { renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openContext } from "../../support/browser-context.ts";
import { launchChromium } from "../../support/chromium.ts";
import { freePort } from "../../support/free-port.ts";
import { openBrowser, startProvider } from "../../support/oidc-provider.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { logIn, somebody } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const TOKEN = "full-".repeat(8);
const FILE = join(scratch(), "console.json");
const OWN = { "x-session-console": "1" };
const SUPPORT = { require: { groups: "support" }, scopes: ["sessions:read", "sessions:revoke"] };
const LEAD = { require: { groups: ["lead"], email_verified: true }, scopes: ["metrics"] };
type User = { readonly groups: readonly string[]; readonly verified?: boolean; readonly session_expiry?: number };
const USERS: Readonly<Record<string, User>> = {
  alice: { groups: ["support", "lead"] },
  bob: { groups: ["support"] },
  carol: { groups: ["sales"] },
  dave: { groups: ["support", "lead"], verified: false },
  erin: { groups: ["support"], session_expiry: 1_700_000_000 },
};

let provider: Awaited<ReturnType<typeof startProvider>>;
let service: Service;
let chromium: Browser;
let origin: string;

function configure(grants: readonly object[]): void {
  const client = { name: "staff", title: "Staff account", issuer: provider.issuer, client_id: "console" };
  const settings = { ...client, scopes: ["groups"], operator_name: "email", grants };
  writeFileSync(`${FILE}.new`, JSON.stringify(settings));
  renameSync(`${FILE}.new`, FILE);
}

beforeAll(async () => {
  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  provider = await startProvider({
    claims: { openid: ["sub", "session_expiry"], groups: ["groups", "email", "email_verified"] },
    findAccount: (_, id) => {
      const { groups = [], verified = true, ...more } = USERS[id] ?? {};
      const claims = { sub: id, groups, email: `${id}@example.com`, email_verified: verified, ...more };
      return { accountId: id, claims: () => claims };
    },
    conformIdTokenClaims: false,
    clients: [
      {
        client_id: "console",
        token_endpoint_auth_method: "none",
        redirect_uris: [`${origin}/console/callback`, `${origin.replace("http:", "https:")}/console/callback`],
      },
    ],
  });
  configure([SUPPORT, LEAD]);
  service = await startService({
    ADMIN_TOKENS: TOKEN,
    ADMIN_PORT: String(port),
    CONSOLE_PROVIDER_FILE: FILE,
    TRUST_PROXY: "1",
  });
  chromium = await launchChromium();
});
afterAll(async () => {
  await chromium?.close();
  await service?.stop();
  provider?.stop();
});

const console_ = (path: string, { headers = {}, ...init }: RequestInit = {}) =>
  fetch(`${origin}/console/${path}`, { redirect: "manual", headers: { ...OWN, ...headers }, ...init });

/** Begins a sign-in as the page does, and returns the URL of the provider. */
async function begin({ jar }: ReturnType<typeof openBrowser>): Promise<string> {
  const response = await console_("sign-in", { method: "POST", headers: { cookie: cookiesOf(jar) } });
  for (const one of response.headers.getSetCookie()) {
    const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? [];
    jar.set(name, value);
  }
  return ((await response.json()) as { url: string }).url;
}
const cookiesOf = (jar: ReadonlyMap<string, string>) => [...jar].map((pair) => pair.join("=")).join("; ");

async function signIn(name: string, browser = openBrowser()) {
  const end = await browser.signIn(await begin(browser), name);
  const { jar } = browser;
  const cookie = `session_console=${jar.get("session_console")}`;
  return { browser, end, cookie };
}

/** Signs in at the provider, and returns what the callback says to a browser that has not begun this, with the cookies of the one that has. */
async function callbackElsewhere(name: string) {
  const browser = openBrowser();
  const url = await begin(browser);
  const stolen = new Map(browser.jar);
  browser.jar.clear();
  return { end: await browser.signIn(url, name), stolen };
}

async function me(cookie: string): Promise<unknown> {
  const response = await console_("session", { headers: { cookie } });
  return response.ok ? response.json() : response.status;
}

/** Calls the admin API by the console. */
function call(cookie: string, method: string, message: object = {}) {
  const headers = { cookie, "content-type": "application/json" };
  const path = `api/auth.admin.v1.SessionAdminService/${method}`;
  return console_(path, { method: "POST", headers, body: JSON.stringify(message) });
}

test("in a browser: an operator signs in at the provider, ends a session under the operator's name, and signs out", async () => {
  const subject = somebody();
  await logIn(service, { subject });
  const context = await openContext(chromium);
  const page = await context.newPage();
  const problems: string[] = [];
  page.on("pageerror", (error) => problems.push(String(error)));
  await page.goto(`${origin}/console`);
  await page.getByRole("button", { name: "Sign in with Staff account" }).click();
  await page.locator("[name=login]").fill("bob");
  await page.locator("[name=password]").fill("any");
  await page.locator("[type=submit]").click();
  await page.locator("[type=submit]").click();
  await page.getByText("staff:bob@example.com").waitFor();
  expect(page.url()).toBe(`${origin}/console`);
  await page.getByRole("link", { name: "Live" }).click();
  await page.getByText("do not have the scope metrics").waitFor();
  await page.goto(`${origin}/console#/sessions?subject=${encodeURIComponent(subject)}`);
  await page.getByText(`of ${subject}`).waitFor();
  await page.getByRole("button", { name: "End all sessions" }).click();
  await page.getByRole("dialog").getByRole("button", { name: /^End/ }).click();
  const ended = expect.stringMatching(/"event":"session_ended".*"by":"staff:bob@example.com"/);
  await until(() => expect(service.stderr().split("\n")).toContainEqual(ended));
  const cookies = await context.cookies(`${origin}/console`);
  expect(cookies.filter(({ name }) => /console/.test(name))).toEqual([
    expect.objectContaining({ name: "session_console", httpOnly: true, sameSite: "Strict", path: "/console" }),
  ]);
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByRole("button", { name: "Sign in with Staff account" }).waitFor();
  expect(await me(`session_console=${cookies[0]?.value}`)).toBe(401);
  expect(problems).toEqual([]);
});

test("what an operator may do follows from the claims, and nothing that the operator sends adds to it", async () => {
  const { cookie: alice } = await signIn("alice");
  expect(await me(alice)).toMatchObject({
    name: "staff:alice@example.com",
    scopes: ["sessions:read", "sessions:revoke", "metrics"],
  });
  const { cookie: dave } = await signIn("dave");
  expect(await me(dave)).toMatchObject({ scopes: ["sessions:read", "sessions:revoke"] });
  expect((await call(dave, "ListSessions")).status).toBe(200);
  expect((await call(dave, "ForgetSubject", { subject: "x" })).status).toBe(403);
  expect((await call(dave, "CreateSession", { subject: "x" })).status).toBe(404);
  expect((await console_("live", { headers: { cookie: dave } })).status).toBe(403);
  const asked = await call(`${dave}; scopes=metrics`, "ExportSubject", { subject: "x", scopes: ["subjects:export"] });
  expect(asked.status).not.toBe(200);
});

test("an operator without a grant is refused clearly, and by name in the log", async () => {
  const { end, browser } = await signIn("carol");
  expect(end.status).toBe(403);
  expect(end.text).toContain("You have no access");
  expect(browser.jar.has("session_console")).toBe(false);
  expect(service.stderr()).toMatch(/"event":"sign_in_failed".*"reason":"grants","by":"staff:carol@example.com"/);
});

test("an operator whose session the provider has ended already is not signed in", async () => {
  const { end, browser } = await signIn("erin");
  expect(end.status).toBe(400);
  expect(end.text).toContain("This sign-in is over");
  expect(browser.jar.has("session_console")).toBe(false);
});

test("a grant that is taken away counts at once, and another one needs another sign-in", async () => {
  const { cookie } = await signIn("alice");
  configure([
    { ...SUPPORT, scopes: ["sessions:read"] },
    { ...LEAD, require: { groups: "support" } },
  ]);
  await until(async () => expect(await me(cookie)).toMatchObject({ scopes: ["sessions:read", "metrics"] }));
  configure([LEAD]);
  await until(async () => expect(await me(cookie)).toMatchObject({ scopes: ["metrics"] }));
  configure([{ require: { groups: "other" }, scopes: ["metrics"] }]);
  await until(async () => expect(await me(cookie)).toBe(401));
  configure([SUPPORT, LEAD]);
  await until(async () => expect((await signIn("bob")).end.status).toBe(200));
});

test("no admin token signs in any more, and none is a credential of a page", async () => {
  const response = await console_("session", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token: TOKEN }),
  });
  expect(response.status).toBe(401);
  expect(response.headers.getSetCookie()).toEqual([]);
});

test("a sign-in has to be begun by the page, in the same browser, and counts once", async () => {
  const foreign = { method: "POST", headers: { "sec-fetch-site": "cross-site", "x-session-console": "1" } };
  expect((await console_("sign-in", foreign)).status).toBe(403);
  expect((await fetch(`${origin}/console/sign-in`, { method: "POST" })).status).toBe(403);

  // Somebody leads the browser of an operator to a callback of their own login.
  const { end, stolen } = await callbackElsewhere("bob");
  expect(end.status).toBe(400);
  expect(end.text).toContain("This sign-in is over");
  expect(end.url).toContain("/console/callback?code=");

  // The browser's own cookie completes it, but only once.
  const complete = () => fetch(end.url, { redirect: "manual", headers: { cookie: cookiesOf(stolen) } });
  const first = await complete();
  expect(first.status).toBe(303);
  const [pending = "", own = ""] = first.headers.getSetCookie();
  expect(pending).toMatch(/^console-login-[\w-]{16}=; Max-Age=0; Path=\/; HttpOnly; SameSite=Lax$/);
  expect(own).toMatch(/^session_console=[\w-]{43}; Path=\/console; HttpOnly; SameSite=Strict$/);
  const again = await complete();
  expect([again.status, again.headers.getSetCookie().some((one) => one.startsWith("session_console"))]).toEqual([
    400,
    false,
  ]);
  const otherState = end.url.replace(/state=[^&]+/, "state=planted");
  expect((await fetch(otherState, { redirect: "manual", headers: { cookie: cookiesOf(stolen) } })).status).toBe(400);
});

test("by https the cookie of a sign-in in progress is Secure and of this host alone", async () => {
  const response = await console_("sign-in", { method: "POST", headers: { "x-forwarded-proto": "https" } });
  expect(response.headers.getSetCookie()).toEqual([
    expect.stringMatching(
      /^__Host-console-login-[\w-]{16}=[\w-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax; Secure$/,
    ),
  ]);
});

test("each sign-in gets a text of its own, and the one before ends when it begins", async () => {
  const browser = openBrowser();
  browser.jar.set("session_console", "planted");
  const { cookie: first } = await signIn("bob", browser);
  expect(first).not.toContain("planted");
  const { cookie: second } = await signIn("bob", browser);
  expect(second).not.toBe(first);
  expect(await me(first)).toBe(401);
  expect(await me(second)).toMatchObject({ name: "staff:bob@example.com" });
});

test("while the provider is away nobody is signed in, and who is signed in stays so", async () => {
  const { cookie } = await signIn("bob");
  const { end, stolen } = await callbackElsewhere("bob");
  provider.setDown(true);
  const response = await fetch(end.url, { redirect: "manual", headers: { cookie: cookiesOf(stolen) } });
  provider.setDown(false);
  expect(response.status).toBe(503);
  expect(await me(cookie)).toMatchObject({ name: "staff:bob@example.com" });
});

test("a callback without a login is no attempt with a bad admin token: operators reload it", async () => {
  const before = service.stderr();
  expect((await console_("callback?state=unknown&code=any")).status).toBe(400);
  const since = () => service.stderr().slice(before.length);
  await until(() => expect(since()).toContain('"reason":"no_login"'));
  expect(since()).not.toContain("authn_failed");
});
