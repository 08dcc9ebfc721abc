/** The console as an operator uses it: the real service, a real browser. */
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { ClientKind } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../../gen/auth/v1/session_pb.ts";
import { openContext } from "../../../support/browser-context.ts";
import { launchChromium } from "../../../support/chromium.ts";
import { type RedisServer, startRedis } from "../../../support/redis.ts";
import { type Service, scratch, startService, withKeys } from "../../../support/service.ts";
import { bearer, cookie, logIn, message, openPublic, somebody } from "../../../support/sessions.ts";
import { until } from "../../../support/until.ts";

/** The directory in which the screenshots of the page are kept, from the variable SCREENSHOTS. */
const SCREENSHOTS = process.env.SCREENSHOTS ?? scratch();
const FULL = "full-".repeat(8);
const READER = "reader".repeat(8);
const FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const IPHONE =
  "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1";
const EDGE =
  "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/143.0.0.0 Safari/537.36 Edg/143.0.0.0";
const DEVICES = [
  { userAgent: FIREFOX, ipAddress: "192.0.2.17", displayName: "office" },
  { userAgent: IPHONE, ipAddress: "2001:db8::8a2e", displayName: "" },
  { userAgent: EDGE, ipAddress: "198.51.100.4", displayName: "" },
];

let redis: RedisServer;
let service: Service;
let browser: Browser;
let context: BrowserContext;
let page: Page;
/** Exceptions of the page, and resources that its content security policy has blocked. Tests expect none. */
let problems: string[];

beforeAll(async () => {
  mkdirSync(SCREENSHOTS, { recursive: true });
  const admins = join(scratch(), "admins.json");
  const hash = createHash("sha256").update(READER).digest("hex");
  writeFileSync(admins, JSON.stringify({ admins: [{ name: "support-desk", hash, scopes: ["sessions:read"] }] }));
  redis = await startRedis();
  service = await startService({
    DATA_DIR: withKeys(),
    REDIS_URL: redis.url,
    REDIS_COMMAND_TIMEOUT: "2s",
    ISSUER: "https://auth.example.com",
    ADMIN_TOKENS: FULL,
    ADMIN_TOKENS_FILE: admins,
    LAST_SEEN: "truncated",
  });
  browser = await launchChromium();
});
afterAll(async () => {
  await browser?.close();
  await service?.stop();
  await redis?.stop();
});

beforeEach(async () => {
  await context?.close();
  problems = [];
  context = await openContext(browser, { viewport: { width: 1100, height: 800 } });
  page = await context.newPage();
  page.on("pageerror", (error) => problems.push(String(error)));
  page.on("console", (entry) => /Content Security|Trusted|Refused/.test(entry.text()) && problems.push(entry.text()));
});

const screenshot = (name: string) =>
  page.screenshot({ path: join(SCREENSHOTS, `console-${name}.png`), fullPage: true });
const sessionRows = () => page.locator("tbody.session");

async function signIn(token = FULL, hash = ""): Promise<void> {
  await page.goto(`${service.adminUrl}/console${hash}`);
  await page.getByLabel("Admin token").fill(token);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
}

/** Returns a user with a session on each of three devices. */
async function aUser(subject = somebody()) {
  const users = [];
  for (const client of DEVICES) users.push(await logIn(service, { subject, clientId: "web", client }));
  return { subject, users };
}

async function find(subject: string): Promise<void> {
  await page.getByRole("searchbox").fill(subject);
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByText(`of ${subject}`).waitFor();
}

const refreshes = async (token: string) =>
  (await openPublic(service).call(SessionService.method.refresh, {}, cookie(token))).ok;

test("a token that is none is refused, and one that is leaves no trace in the page", async () => {
  await page.goto(`${service.adminUrl}/console`);
  await page.getByLabel("Admin token").fill("wrong".repeat(8));
  await page.keyboard.press("Enter");
  await page.getByText("This is not an admin token of this service.").waitFor();
  await page.getByText("Which token, and which scopes?").click();
  await screenshot("sign-in");
  await signIn();
  const stored = await page.evaluate(
    "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href, document.body.innerHTML])",
  );
  expect(stored).not.toContain(FULL);
  const [own, ...others] = await context.cookies(`${service.adminUrl}/console`);
  expect(others).toEqual([]);
  expect(own).toMatchObject({ httpOnly: true, sameSite: "Strict", path: "/console" });
  expect(own?.value).not.toContain(FULL);
  expect(problems).toEqual([]);
});

test("support finds a user, ends one session and then all, and sees why they ended", async () => {
  const { subject, users } = await aUser("alice@example.com");
  await signIn();
  await page.getByRole("heading", { name: "Newest sessions" }).waitFor();
  await find(subject);
  await until(async () => expect(await sessionRows().count()).toBe(3));
  for (const text of ["Firefox on Linux", "Safari on iPhone", "Edge on Windows", "192.0.2.17"]) {
    await page.getByText(text).first().waitFor();
  }
  const deviceKeys = sessionRows().locator('[data-name="Device key"]');
  expect(await deviceKeys.allTextContents()).toEqual(["not bound", "not bound", "not bound"]);
  // On a narrow screen each cell is shown with the name of its column.
  const names =
    "[...document.querySelector('.labelled tbody tr').querySelectorAll('[data-name]')].map((cell) => cell.dataset.name)";
  expect(await page.evaluate(names)).toEqual([
    "Place",
    "Application",
    "Created",
    "Last refresh",
    "Expires",
    "Device key",
  ]);
  await screenshot("user");
  await page.getByRole("button", { name: "End the session on Safari on iPhone" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("alice@example.com is signed out on this device").waitFor();
  await dialog.getByText("2001:db8::8a2e").waitFor();
  await screenshot("confirm");
  await dialog.getByRole("button", { name: "Cancel" }).click();
  expect(await refreshes(users[1]?.refreshToken ?? "")).toBe(true);
  await page.getByRole("button", { name: "End the session on Safari on iPhone" }).click();
  await dialog.getByRole("button", { name: "End session" }).click();
  await page.getByText("1 session ended.").waitFor();
  await until(async () => expect(await sessionRows().count()).toBe(2));
  expect(await refreshes(users[1]?.refreshToken ?? "")).toBe(false);
  expect(await refreshes(users[0]?.refreshToken ?? "")).toBe(true);

  let reads = 0;
  page.on("request", (request) => {
    if (request.url().endsWith("/ListSessionEvents")) reads += 1;
  });
  await page.getByRole("button", { name: "End all sessions" }).click();
  await dialog.getByText("is signed out on 2 devices").waitFor();
  await dialog.getByText("Firefox on Linux · office · 192.0.2.17").waitFor();
  await dialog.getByText("Edge on Windows · 198.51.100.4").waitFor();
  await screenshot("confirm-all");
  await dialog.getByRole("button", { name: "End all sessions" }).click();
  await page.getByText("2 sessions ended.").waitFor();
  await page.getByText("No live sessions of this user").waitFor();
  expect(await refreshes(users[0]?.refreshToken ?? "")).toBe(false);

  // The service writes events with a delay, so the page reads them again without a click of the user.
  await until(async () => expect(await page.locator(".timeline li").count()).toBe(9));
  await until(async () => expect(reads).toBeGreaterThan(1));
  const timeline = page.locator(".timeline");
  await timeline.getByText("ended with all sessions of the user").first().waitFor();
  await timeline.getByText(/Safari on iPhone\s+ended by an operator/).waitFor();
  await timeline.getByText(/Edge on Windows\s+is a new device/).waitFor();
  await timeline.getByText(/Firefox on Linux\s+signed in\s*from 192\.0\.2\.17, by \S+ at 127\.0\.0\.1/).waitFor();
  await screenshot("timeline");
  expect(problems).toEqual([]);
});

test("the newest sessions are filtered by application and device", async () => {
  const clientId = somebody();
  await logIn(service, { clientId, client: { userAgent: FIREFOX } });
  await logIn(service, { clientId, client: { userAgent: EDGE } });
  await signIn();
  await page.getByText("Filters").click();
  await page.getByLabel("Application").fill(clientId);
  await page.getByLabel("Device").fill("firefox");
  await page.getByLabel("Created").selectOption("the last hour");
  await page.keyboard.press("Enter");
  await page.getByRole("button", { name: "Find" }).click();
  await until(async () => expect(await sessionRows().count()).toBe(1));
  await screenshot("newest");
  await page.locator(".session a.subject").click();
  await page.getByRole("heading", { name: "Live sessions" }).waitFor();
  await page.goBack();
  await page.getByRole("heading", { name: "Newest sessions" }).waitFor();
});

test("sessions are found by their id, by the begin of the subject and by the address", async () => {
  const { subject, users } = await aUser();
  const wanted = users[1];
  await aUser();
  await signIn();
  await page.getByRole("searchbox").fill(wanted?.sid ?? "");
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("heading", { name: "Live session", exact: true }).waitFor();
  await until(async () => expect(await sessionRows().count()).toBe(1));
  await sessionRows().getByText("Safari on iPhone").waitFor();
  await page.locator(".timeline li").first().waitFor();
  await screenshot("session");
  await page.locator(".session a.subject").click();
  await until(async () => expect(await sessionRows().count()).toBe(3));

  await page.getByRole("searchbox").fill("");
  await page.getByText("Filters").click();
  await page.getByLabel("User begins with").fill(subject.slice(0, -1));
  await page.getByRole("button", { name: "Find" }).click();
  await page.getByRole("heading", { name: "Newest sessions" }).waitFor();
  await page.getByText("Filters").click();
  await page.getByLabel("User begins with").fill(subject.slice(0, -1));
  await page.getByLabel("Place").fill("2001:db8:");
  await page.getByRole("button", { name: "Find" }).click();
  await until(async () => expect(await sessionRows().count()).toBe(1));
  await sessionRows().getByText(subject).waitFor();
  await sessionRows().getByText("2001:db8::8a2e").waitFor();
  expect(problems).toEqual([]);
});

test("a device without a user agent has the name that its login gave", async () => {
  const subject = somebody();
  await logIn(service, { subject, client: { userAgent: "", displayName: "kitchen radio" } });
  await signIn();
  await find(subject);
  await page.getByRole("rowheader", { name: "kitchen radio", exact: true }).waitFor();
  await page.getByRole("button", { name: "End the session on kitchen radio" }).waitFor();
});

test("the kind of client is beside the name of the device", async () => {
  const subject = somebody();
  const client = { userAgent: "curl/8.5.0", displayName: "build", kind: ClientKind.CLI };
  await logIn(service, { subject, client });
  await signIn();
  await find(subject);
  await page.getByRole("rowheader", { name: "curl · build · command line" }).waitFor();
});

test("what clients and users wrote is text, whatever it is", async () => {
  const evil = `"><img src=x onerror="document.title='owned'"><script>document.title='owned'</script>`;
  const subject = `${evil} ${somebody()}`;
  await logIn(service, {
    subject,
    clientId: evil,
    client: { userAgent: evil, displayName: evil, ipAddress: "<b>1</b>" },
  });
  await signIn(FULL, `#/sessions?${new URLSearchParams({ subject })}`);
  await until(async () => expect(await sessionRows().count()).toBe(1));
  await page.getByRole("button", { name: "Details" }).click();
  await page.locator(".timeline li").first().waitFor();
  await page.getByRole("button", { name: "End all sessions" }).click();
  await page.getByRole("dialog").getByText("is signed out").waitFor();
  await screenshot("hostile");
  expect(await page.title()).toBe("Session console");
  expect(await page.locator("main img, main script, dialog img").count()).toBe(0);
  expect(problems).toEqual([]);
});

test("what reorders or hides text is visible, and long texts stay within the question", async () => {
  const subject = `alice\u200b@${"x".repeat(180)}\u202e${somebody()}`;
  const client = { userAgent: "\u202egro.live", displayName: `\u2066${"y".repeat(120)}`, ipAddress: "\u202e1.2.0.291" };
  await logIn(service, { subject, clientId: "we\u202eb", client });
  await page.setViewportSize({ width: 360, height: 740 });
  await signIn(FULL, `#/sessions?${new URLSearchParams({ subject })}`);
  await until(async () => expect(await sessionRows().count()).toBe(1));
  await page.getByRole("button", { name: "Details" }).click();
  await page.locator(".timeline li").first().waitFor();
  await page.getByRole("button", { name: "End all sessions" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("alice\\u{200b}@xxx").waitFor();
  await dialog.getByText("\\u{202e}gro.live · \\u{2066}yyy").waitFor();
  await screenshot("reordered");
  expect(await page.locator("body").innerText()).not.toMatch(/\p{Cf}/u);
  expect(
    await page.evaluate("document.querySelector('dialog').scrollWidth <= document.querySelector('dialog').clientWidth"),
  ).toBe(true);
  await dialog.getByRole("button", { name: "End all sessions" }).click();
  await page.getByText("1 session ended.").waitFor();
});

test("a page that is seen again shows what is in force: nothing, after another tab signed out", async () => {
  const { subject } = await aUser();
  await signIn();
  await find(subject);
  await until(async () => expect(await sessionRows().count()).toBe(3));
  const other = await context.newPage();
  await other.goto(`${service.adminUrl}/console`);
  await other.getByRole("button", { name: "Sign out" }).click();
  await other.getByLabel("Admin token").waitFor();
  // A headless browser treats all tabs as visible, so the test dispatches the event that a switch of tabs would cause.
  await page.evaluate("document.dispatchEvent(new Event('visibilitychange'))");
  await page.getByText("You have been signed out.").waitFor();
  expect(await page.locator("body").innerText()).not.toContain(subject);
});

test("the details of a session say who refreshed it last", async () => {
  const subject = somebody();
  const { refreshToken } = await logIn(service, { subject, client: { userAgent: FIREFOX } });
  const headers = { ...cookie(refreshToken), "user-agent": EDGE };
  await fetch(`${service.publicUrl}/v1/auth/refresh`, { method: "POST", headers });
  await signIn();
  await find(subject);
  await page.getByRole("button", { name: "Details" }).click();
  const facts = page.locator("dl.facts");
  await facts.getByText("Edge on Windows").waitFor();
  await facts.getByText("127.0.0.0/24").waitFor();
});

test("a response to an earlier question does not replace that to a later one", async () => {
  const [early, late, last] = [somebody(), somebody(), somebody()];
  for (const clientId of [early, late, last]) await logIn(service, { clientId, client: { userAgent: FIREFOX } });
  await signIn();
  await page.getByText("Filters").click();
  const held = new Promise<() => void>((resolve) => {
    void page.route("**/ListSessions", (route) => {
      if (route.request().postData()?.includes(early)) resolve(() => void route.continue());
      else void route.continue();
    });
  });
  const ask = async (clientId: string) => {
    await page.getByLabel("Application").fill(clientId);
    await page.getByRole("button", { name: "Find" }).click();
  };
  await ask(early);
  const release = await held;
  await ask(late);
  await sessionRows().getByText(late).waitFor();
  await page.evaluate(`new MutationObserver(() => {
    if (document.querySelector("main").innerText.includes("${early}")) document.title = "outdated";
  }).observe(document.body, { subtree: true, childList: true, characterData: true })`);
  const response = page.waitForResponse((arrived) => arrived.request().postData()?.includes(early) ?? false);
  release();
  await (await response).finished();
  // Once the page displays the result of this search, it has also processed the responses to the two searches before.
  await ask(last);
  await sessionRows().getByText(last).waitFor();
  expect(await page.title()).toBe("Session console");
});

test("a user is forgotten after a confirmation", async () => {
  const { subject, users } = await aUser();
  await signIn(FULL);
  await find(subject);
  await page.getByRole("button", { name: "Forget user" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("is signed out on all devices").waitFor();
  await dialog.getByRole("button", { name: "Cancel" }).click();
  await page.getByRole("button", { name: "Forget user" }).click();
  await dialog.getByRole("button", { name: "Forget user" }).click();
  await page.getByText("The user is forgotten").waitFor();
  await page.getByText("No live sessions of this user").waitFor();
  await until(async () => expect(await page.locator(".timeline li").count()).toBe(0));
  expect(await refreshes(users[0]?.refreshToken ?? "")).toBe(false);
});

test("what is stored of a user is saved as a file", async () => {
  const { subject, users } = await aUser();
  await signIn(FULL);
  await find(subject);
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export user" }).click();
  const saved = JSON.parse(readFileSync(await (await download).path(), "utf8"));
  expect(saved.sessions).toHaveLength(users.length);
  expect(new Set(saved.sessions.map((session: { readonly subject: string }) => session.subject))).toEqual(
    new Set([subject]),
  );
  expect(saved.events.length).toBeGreaterThan(0);
  await page.getByText("saved as a file").waitFor();
});

test("without the scopes, what is not allowed is disabled and says why", async () => {
  const { subject } = await aUser();
  await signIn(READER);
  await page.getByText("support-desk").waitFor();
  await find(subject);
  const end = page.getByRole("button", { name: "End all sessions" });
  await end.waitFor();
  expect(await end.isDisabled()).toBe(true);
  expect(await end.getAttribute("title")).toBe("Needs the scope sessions:revoke");
  for (const name of ["Forget user", "Export user"]) expect(await page.getByRole("button", { name }).count()).toBe(0);
  expect(await page.getByRole("button", { name: "End the session on Firefox on Linux" }).isDisabled()).toBe(true);
  await screenshot("reader");
  await page.getByRole("link", { name: "Live" }).click();
  expect(await page.locator("nav [aria-current]").allTextContents()).toEqual(["Live"]);
  await page.getByText("do not have the scope metrics").waitFor();
});

test("the live page counts what happens, and shows the keys with their next step", async () => {
  const { users } = await aUser();
  await signIn(FULL, "#/live");
  await page.getByRole("heading", { name: "Key ring" }).waitFor();
  const rotated = page.locator(".bars li", { hasText: "rotated" }).locator("b");
  const before = (await rotated.count()) === 0 ? 0 : Number((await rotated.innerText()).replace(",", ""));
  for (const { refreshToken } of users) await refreshes(refreshToken);
  await until(async () => expect(Number((await rotated.innerText()).replace(",", ""))).toBe(before + 3));
  await page.getByText("rotate replaces it").first().waitFor();
  await page
    .getByText(/may sign in \d+ minutes?/)
    .first()
    .waitFor();
  await page.getByText("responds").waitFor();
  await screenshot("live");
  await page.emulateMedia({ colorScheme: "dark" });
  await screenshot("live-dark");
  expect(problems).toEqual([]);
});

test("the live page reads no more once it is left", async () => {
  await page.clock.install();
  let readings = 0;
  let held: PromiseWithResolvers<void> | undefined;
  await page.route("**/console/live", async (route) => {
    readings++;
    await held?.promise;
    await route.continue();
  });
  const leave = async () => {
    await page.getByRole("link", { name: "Sessions" }).click();
    await page.getByRole("heading", { name: "Newest sessions" }).waitFor();
  };
  const later = async () => {
    await page.clock.runFor(20_000);
    // The response to this request shows that all earlier requests of the page have been served.
    expect(await page.evaluate("fetch('/healthz').then(({ status }) => status)")).toBe(200);
  };
  await signIn(FULL, "#/live");
  // The user leaves the page while it waits for the time of its next request.
  await page.getByRole("heading", { name: "Key ring" }).waitFor();
  await leave();
  const before = readings;
  await later();
  expect(readings).toBe(before);
  // The user leaves the page while a request is in flight.
  held = Promise.withResolvers<void>();
  await page.getByRole("link", { name: "Live" }).click();
  await until(async () => expect(readings).toBe(before + 1));
  await leave();
  const response = page.waitForResponse("**/console/live");
  held.resolve();
  await (await response).finished();
  await later();
  expect(readings).toBe(before + 1);
});

test("an outage of the store is shown as one, and passes", async () => {
  const { subject } = await aUser();
  await signIn();
  await find(subject);
  await until(async () => expect(await sessionRows().count()).toBe(3));
  redis.pause();
  try {
    await page.reload();
    await page.getByText("The session store does not respond").first().waitFor();
    expect(await sessionRows().count()).toBe(0);
    expect(await page.getByText("No live sessions").count()).toBe(0);
    await screenshot("outage");
    await page.getByRole("link", { name: "Live" }).click();
    await page.locator(".tile.bad", { hasText: "outage" }).waitFor();
    await screenshot("live-outage");
  } finally {
    redis.resume();
  }
  await page.locator(".tile.good", { hasText: "responds" }).waitFor();
  await page.getByRole("link", { name: "Sessions" }).click();
  await find(subject);
  await until(async () => expect(await sessionRows().count()).toBe(3));
});

test("signing out ends the console's session in this browser and elsewhere", async () => {
  await signIn();
  const stolen = await context.cookies();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Admin token").waitFor();
  expect(await context.cookies()).toEqual([]);
  await context.addCookies(stolen);
  await page.reload();
  await page.getByLabel("Admin token").waitFor();
});

test("a sign-out that cannot be sent does not look like one", async () => {
  await signIn();
  await page.route("**/console/session", (route) =>
    route.request().method() === "DELETE" ? route.abort() : route.continue(),
  );
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByText("The service cannot be reached").waitFor();
  expect(await page.getByText("You have been signed out.").count()).toBe(0);
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("button", { name: "Sign out" }).waitFor();
});

test("it is used by keyboard alone, on a phone, in the dark", async () => {
  const { subject, users } = await aUser();
  const unbroken = { userAgent: "x".repeat(300), displayName: "name".repeat(30), ipAddress: "192.0.2.1" };
  users.push(await logIn(service, { subject, clientId: "https://shop.example.com/application", client: unbroken }));
  await page.setViewportSize({ width: 360, height: 740 });
  await page.emulateMedia({ colorScheme: "dark" });
  await page.goto(`${service.adminUrl}/console`);
  const isFocused = (selector: string) => page.evaluate(`document.activeElement?.matches(${JSON.stringify(selector)})`);
  const tabTo = async (selector: string) => {
    while (!(await isFocused(selector))) await page.keyboard.press("Tab");
  };
  await until(async () => expect(await isFocused("#token")).toBe(true));
  await page.keyboard.type(FULL);
  await page.keyboard.press("Enter");
  await page.getByRole("searchbox").waitFor();
  await tabTo("#subject");
  await page.keyboard.type(subject);
  await page.keyboard.press("Enter");
  await until(async () => expect(await sessionRows().count()).toBe(4));
  await until(async () => expect(await page.locator(".timeline li").count()).toBeGreaterThan(3));
  await screenshot("phone");
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  expect(
    await page.evaluate(
      'document.querySelector(".scroll").scrollWidth <= document.querySelector(".scroll").clientWidth',
    ),
  ).toBe(true);
  await tabTo(".session .danger-text");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await screenshot("phone-confirm");
  await page.keyboard.press("Escape");
  // The dialog is located by its element, because it has no role once it is closed, while its `close` event may still be outstanding.
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  await tabTo("dialog .danger");
  await page.keyboard.press("Enter");
  await page.getByText("1 session ended.").waitFor();
  const alive = await Promise.all(users.map(({ refreshToken }) => refreshes(refreshToken)));
  expect(alive.filter(Boolean)).toHaveLength(3);
  await page.getByRole("link", { name: "Live" }).click();
  await page.getByRole("heading", { name: "Key ring" }).waitFor();
  await screenshot("phone-live");
  const table = 'document.querySelector(".scroll")';
  expect(await page.evaluate(`${table}.scrollWidth <= ${table}.clientWidth`)).toBe(true);
  expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
});

test("a session that its user ends elsewhere is no surprise", async () => {
  const { subject, users } = await aUser();
  await signIn();
  await find(subject);
  await until(async () => expect(await sessionRows().count()).toBe(3));
  const first = users[0]?.accessToken ?? "";
  message(await openPublic(service).call(SessionService.method.logout, {}, bearer(first)));
  await page.getByRole("button", { name: "End the session on Firefox on Linux" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End session" }).click();
  await page.getByText("it had ended already").waitFor();
  await until(async () => expect(await sessionRows().count()).toBe(2));
});
